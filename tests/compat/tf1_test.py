"""Scripts of TensorFlow 1.x, unmodified: `etpe run --tf1`."""

import re

import tensorflow as tf
from harness.processes import ROOT, run_etpe, run_python

SCRIPTS = ROOT / 'tests' / 'scripts'


def test_a_script_of_placeholders_layers_and_sessions_trains_and_saves(tmp_path):
    done = run_etpe('run', '--tf1', SCRIPTS / 'tf1_mnist_like.py', '--steps=150',
                    f'--output_dir={tmp_path}', loaded=True)
    assert done.returncode == 0
    assert float(re.fullmatch(r'step 150, accuracy ([\d.]+)\n', done.stdout)[1]) > .8
    assert (tmp_path / 'done.txt').read_text() == '1.15.5\n'
    stored = dict(tf.train.list_variables(str(tmp_path)))
    assert stored['network/hidden/kernel'] == [6, 16]
    assert stored['network/rnn/basic_lstm_cell/kernel'] == [4 + 8, 4 * 8]
    assert stored['network/logits/bias/Adam_1'] == [2]


def events(directory):
    """(tag, step) of every summary in a directory, sorted."""
    return sorted((value.tag, event.step) for path in directory.glob('events*')
                  for event in tf.compat.v1.train.summary_iterator(str(path))
                  for value in event.summary.value)


def test_a_job_of_tf_contrib_tpu_trains_evaluates_and_writes_its_summaries(tmp_path):
    done = run_etpe('run', '--tf1', '--contrib', '--hosts', 2, '--cores', 2,
                    SCRIPTS / 'tf1_tpu_job.py', '--tpu=local', f'--model_dir={tmp_path}',
                    loaded=True)
    assert done.returncode == 0
    assert done.stdout.startswith('step 20, accuracy 1.00\n')
    assert 'logits/kernel/Momentum (8, 2)\n' in done.stdout
    assert '[etpe] train: global 32 = 2 hosts x 2 cores x 8' in done.stderr
    written = [each for each in events(tmp_path) if each[0] in (
        'training_loss', 'learning_rate', 'unwanted')]
    assert written == [('learning_rate', step) for step in range(0, 20, 2)] + [
        ('training_loss', step) for step in range(20)]


def test_a_language_model_starts_from_a_checkpoint_and_trains(tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        start = tf.compat.v1.get_variable('lm/LayerNorm/beta', initializer=[1., 2., 3., 4.])
        session.run(start.initializer)
        tf.compat.v1.train.Saver([start]).save(session, f'{tmp_path}/pretrained')
    done = run_etpe('run', '--tf1', '--contrib', '--cores', 2,
                    SCRIPTS / 'tf1_language_model.py', f'--init_checkpoint={tmp_path}/pretrained',
                    f'--output_dir={tmp_path}/m', '--hparams=layers=[6,4],learning_rate=0.02',
                    loaded=True)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        '{"hidden_size": 4, "layers": [6, 4], "learning_rate": 0.02, "name": "tiny", '
        '"vocab_size": 16, "warmup": true}', 'gamma (4,), beta (4,), step 60']
    assert float(re.search(r'Loss for final step: (\d+\.\d+)', done.stderr)[1]) < 2  # Of log 16.
    began = tf.train.load_checkpoint(f'{tmp_path}/m/model.ckpt-0')
    assert began.get_tensor('lm/LayerNorm/beta').tolist() == [1, 2, 3, 4]
    shapes = began.get_variable_to_shape_map()
    assert shapes['lm/layer_0/LayerNorm/gamma'] == [6]
    assert shapes['lm/layer_0/LayerNorm/gamma/adam_m'] == [6]


def test_the_face_is_tensorflow_1_and_libraries_keep_theirs(tmp_path):
    (tmp_path / 'mine.py').write_text('import tensorflow as tf; SESSION = tf.Session\n')
    done = run_python('-c', f'''
import sys
sys.path.insert(0, {str(tmp_path)!r})
import estimator_tpu_embedding
estimator_tpu_embedding.install()
import tensorflow as before
assert not hasattr(before, 'Session') and before.executing_eagerly()
for _ in range(2):
    estimator_tpu_embedding.install(tf1=True)
import tensorflow as tf
import mine
assert tf is not before and not hasattr(before, 'Session')
assert mine.SESSION is tf.Session and not tf.executing_eagerly()
assert tf.VERSION == tf.__version__ == tf.version.VERSION == '1.15.5'
assert before.__version__.startswith('2.') and not tf.resource_variables_enabled()
assert 'tf_keras' in tf.keras.layers.Dense.__module__
assert tf.estimator.tpu.TPUEstimator is estimator_tpu_embedding.TPUEstimator
import tensorflow.compat.v1
import tensorflow.compat.v2 as tf2
import tensorflow.keras.backend as backend
import tensorflow.nn
from tensorflow import estimator, keras
from tensorflow.keras.layers import Dense
from tensorflow.train import AdamOptimizer
from tensorflow.core.framework import summary_pb2
from tensorflow.python.estimator import estimator as home, model_fn
from tensorflow.python.estimator.canned import metric_keys
from tensorflow.python.ops import array_ops
assert home.Estimator is tf.estimator.Estimator and model_fn.ModeKeys is tf.estimator.ModeKeys
assert tensorflow is tf and tensorflow.compat.v1.Session is tf.Session
assert tf2 is before.compat.v2 and tf2.__version__.startswith('2.')
assert AdamOptimizer is tf.train.AdamOptimizer and tf.nn.rnn_cell.LSTMCell
assert Dense is tf.keras.layers.Dense and backend.clear_session is tf.keras.backend.clear_session
assert 'v1' in tf.keras.layers.BatchNormalization.__module__
assert keras is tf.keras and estimator is tf.estimator and tf.python.ops.array_ops is array_ops
assert 'placeholder' in dir(tf) and 'placeholder' in tf.__all__

from tensorflow_estimator.python.estimator import estimator_lib
from tensorflow_estimator.python.estimator.head import multi_class_head, sequential_head
assert estimator_lib.tf is before and sequential_head.tf is before  # Loaded before, and now.
multi_class_head.MultiClassHead(3)  # Its default is of the tf.losses.Reduction of TensorFlow 2.

for name in ('contrib', 'pack', 'nonsense'):
    try:
        getattr(tf, name)
    except AttributeError as error:
        print(error)
estimator_tpu_embedding.install(contrib=True)
assert tf.contrib is before.contrib
''')
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        'tf.contrib was removed in TensorFlow 2; "etpe run --contrib" or install(contrib=True) '
        'gives the part of it that jobs for TPUs use',
        'TensorFlow 1.15, as install(tf1=True) gives it, has no tf.pack; use tf.stack',
        'TensorFlow 1.15, as install(tf1=True) gives it, has no tf.nonsense']
