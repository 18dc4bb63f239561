"""What `etpe run` says of a name whose lack ended a program, beside its traceback."""

import builtins

import pytest
import tensorflow.compat.v1 as tf
from harness.processes import run_python

from estimator_tpu_embedding.cli import missing_names
from estimator_tpu_embedding.doctor import diagnose
from estimator_tpu_embedding.doctor.facts import Diagnosis, Finding, Place


def finding(code, subject, line=1):
    return Finding(code, Place('/job.py', line), subject, '', f'about {subject}', 'lost')


FOUND = [
    finding('I302', 'tensorflow.placeholder', 3), finding('I302', 'tensorflow.placeholder', 4),
    finding('I303', 'tensorflow.contrib.training.HParams'), finding('E101', 'tensorflow.mul'),
    finding('I301', 'tensorflow.estimator'), finding('E122', 'builtins.xrange'),
    finding('E131', 'line 7')._replace(verdict='')]


def raised(code, space):
    with pytest.raises(Exception) as caught:
        exec(code, space)
    return caught.value


@pytest.fixture
def found(monkeypatch):
    """The paths that were diagnosed; each with the findings above."""
    asked = []

    def answer(paths, deadline):
        asked.append((paths, deadline))
        return Diagnosis([], FOUND, [], {}, 1, 1, {}, [])

    monkeypatch.setattr(diagnose, 'diagnose', answer)
    return asked


@pytest.mark.parametrize('code, flags, first, others', [
    ('tf.placeholder_', (False, False), None, None),
    ('tf.mul', (False, False), 'E101 tensorflow.mul: about tensorflow.mul',
     '3 other missing names, 1 of them whatever the flags are'),
    ('tf.mul', (True, False), 'E101 tensorflow.mul: about tensorflow.mul',
     '2 other missing names, 1 of them whatever the flags are'),
    ('tf.mul', (True, True), 'E101 tensorflow.mul: about tensorflow.mul',
     '1 other missing name, 1 of them whatever the flags are'),
    ('xrange', (False, False), 'E122 builtins.xrange: about builtins.xrange',
     '3 other missing names, 1 of them whatever the flags are'),
    ('import tensorflow.contrib.training', (False, False),
     'I303 tensorflow.contrib.training.HParams: about tensorflow.contrib.training.HParams',
     '3 other missing names, 2 of them whatever the flags are')])
def test_a_missing_name_gets_its_verdict_and_the_number_of_others(found, code, flags, first,
                                                                  others):
    lines = missing_names.remarks(raised(code, {'tf': tf}), '/job.py', tf1=flags[0],
                                  contrib=flags[1])
    assert found == [(['/job.py'], missing_names.DEADLINE)]
    assert lines == ([] if first is None else [
        f'etpe doctor: {first}',
        f'etpe doctor: the program would meet {others}; "etpe doctor /job.py" names all'])


@pytest.mark.parametrize('code', ['1 / 0', 'of_nobody', 'tf.constant(0).of_nobody',
                                  'raise SystemError', 'int("x")'])
def test_errors_of_another_kind_ask_no_doctor(found, code):
    assert missing_names.remarks(raised(code, {'tf': tf}), '/job.py', tf1=False,
                                 contrib=False) == []
    assert found == []


@pytest.mark.parametrize('error', [OSError, KeyboardInterrupt, RecursionError])
def test_a_doctor_that_fails_says_nothing(monkeypatch, error):
    def fail(paths, deadline):
        raise error

    monkeypatch.setattr(diagnose, 'diagnose', fail)
    assert missing_names.remarks(raised('tf.mul', {'tf': tf}), '/job.py', tf1=False,
                                 contrib=False) == []
    assert not hasattr(builtins, 'xrange')


@pytest.mark.soak
def test_etpe_run_says_it_below_the_traceback_and_keeps_the_status(tmp_path):
    (tmp_path / 'helper.py').write_text('import numpy as np\ndef number():\n    return np.in1d\n')
    (tmp_path / 'job.py').write_text(
        'import os\nimport helper\nimport tensorflow as tf\nos.chdir("/")\n'
        'x = tf.placeholder(tf.float32, [])\ny = tf.mul(x, tf.Session())\n')
    done = run_python('-c', '''
import sys
from estimator_tpu_embedding.cli import main, missing_names
missing_names.DEADLINE = 200
sys.exit(main.main(["run", "job.py"]))
''', cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-4:] == [
        "AttributeError: module 'tensorflow' has no attribute 'placeholder'",
        '[etpe] tf.placeholder is a name of TensorFlow 1: "etpe run --tf1" makes "import '
        'tensorflow" give what it gave then',
        '[etpe] etpe doctor: I302 tensorflow.placeholder: it is a name of TensorFlow 1: etpe run '
        '--tf1 restores it',
        '[etpe] etpe doctor: the program would meet 3 other missing names, 2 of them whatever '
        f'the flags are; "etpe doctor {tmp_path}/job.py" names all']
