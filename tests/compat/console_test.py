"""Each line of a log once, no advice to libraries, and no facts of TensorFlow's start."""

import textwrap

from harness.processes import run_etpe, run_python

SCRIPT = '''
    import os, sys
    from absl import app, logging
    import tensorflow.compat.v1 as tf

    def main(_):
        tf.logging.set_verbosity(tf.logging.INFO)
        tf.logging.info('of TensorFlow')
        logging.error('of absl')
        tf.get_logger().warning('From /x/y.py:1: f is deprecated and will be removed soon')
        tf.get_logger().warning(
            'From %s:1: g is deprecated and will be removed soon', tf.__file__)
        tf.raw_ops.Abs(x=1.)
        with tf.Graph().as_default(), tf.Session() as session:
            session.run(tf.constant(1.))
        os.write(2, b'E0000 00:00:1.2 3 cuda.cc:1] an error\\n')
    tf.get_logger().warning('before')
    app.run(main)
'''


def test_what_a_run_logs_is_there_once_and_nothing_of_the_start(tmp_path):
    path = tmp_path / 'job.py'
    path.write_text(textwrap.dedent(SCRIPT))
    done = run_etpe('run', path, TF_CPP_MIN_LOG_LEVEL=None)
    assert done.returncode == 0
    lines = [line.split('] ')[-1].removeprefix('WARNING:tensorflow:')
             for line in done.stderr.splitlines()]
    assert lines == ['before', 'of TensorFlow', 'of absl',
                     'From /x/y.py:1: f is deprecated and will be removed soon',
                     'an error', 'in all: nothing was trained by an Estimator or a TPUEmbedding']


def test_warnings_of_what_a_library_calls_are_left_out_and_those_of_the_job_are_not(tmp_path):
    path = tmp_path / 'job.py'
    path.write_text(textwrap.dedent('''
        import tensorflow.compat.v1 as tf
        with tf.Graph().as_default():  # TensorFlow has `layer.add_variable` called for it.
            price = tf.feature_column.numeric_column('price')
            tf.feature_column.linear_model({'price': tf.ones([2, 1])}, [price])
            tf.layers.dense(tf.ones([2, 1]), 1)
    '''))
    calls = [('add_variable' in line, 'tf.layers.dense' in line)
             for line in run_etpe('run', path).stderr.splitlines() if 'UserWarning' in line]
    assert calls == [(False, True)]
    strict = run_etpe('run', path, PYTHONWARNINGS='error::UserWarning')
    assert strict.returncode == 1 and 'UserWarning: `layer.add_variable`' in strict.stderr


def test_a_run_with_workers_hides_warnings_of_tensorflow_unless_asked(tmp_path):
    path = tmp_path / 'job.py'
    path.write_text('import os; print(os.environ["TF_CPP_MIN_LOG_LEVEL"])')
    done = run_etpe('run', '--processes', '2', '--expose', path, TF_CPP_MIN_LOG_LEVEL=None)
    assert (done.returncode, done.stdout) == (0, '2\n'), done.stderr


FACTS = """\
I0000 00:00:1 2 a.cc:1] a fact
2024-05-01 10:00:00.000001: I tensorflow/core/util/port.cc:113] oneDNN
2024-05-01 10:00:00.000001: E external/xla/a.cc:9] Unable to register cuFFT factory: Attempting
"""
OTHERS = """\
W0000 00:00:1795362879.954238   15928 a.cc:1] careful
E0000 00:00:1795362879.954238   15928 a.cc:1] failed
ImportError: cannot import
F0000 00:00:1 2 b.cc:1] needs AVX
"""


def test_only_facts_are_left_out_and_what_is_written_before_a_crash_is_not_lost():
    done = run_python('-c', f"""
import os
from estimator_tpu_embedding.compat import console
with console.quiet_start():
    os.write(2, {(FACTS + OTHERS).encode()!r})
    os.abort()
""", TF_CPP_MIN_LOG_LEVEL=None)
    assert (done.returncode, done.stderr) == (-6, OTHERS)
