"""Advice about private modules that moved: true of the TensorFlow that is installed."""

import importlib

import pytest
import tensorflow as tf
from harness.processes import run_etpe

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.compat import moved
from estimator_tpu_embedding.compat.hints import flag_that_helps

ALL = sorted({target for targets in moved.TODAY.values() for target in targets})


def resolved(path):
    """The module, or what a module has by that name; raises for neither."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        package, _, name = path.rpartition('.')
        if not package:
            raise
        return getattr(resolved(package), name)


@pytest.mark.parametrize('name', ALL)
def test_what_is_advised_is_there(name):
    ete.install()  # As etpe run does, where it gives such advice.
    root, *others = name.split('.')
    found = tf if root == 'tf' else resolved(name)
    for part in others if root == 'tf' else ():
        found = getattr(found, part)


@pytest.mark.skipif([int(number) for number in tf.__version__.split('.')[:2]] < [2, 21],
                    reason='an older TensorFlow still has some of these modules')
@pytest.mark.parametrize('name', moved.TODAY)
def test_advice_is_given_only_of_what_is_gone(name):
    with pytest.raises((ImportError, AttributeError)):
        resolved(f'tensorflow.python.{name}')


@pytest.mark.parametrize('code, advice', [
    ('from tensorflow.python.training.tracking import base',
     'tensorflow.python.training.tracking is private and has moved: use '
     'tensorflow.python.trackable.base, tensorflow.python.trackable.autotrackable, '
     'tensorflow.python.trackable.data_structures, tensorflow.python.checkpoint.checkpoint'),
    ('import tensorflow.python.training.checkpointable.util',
     'tensorflow.python.training.checkpointable is private and has moved: use tensorflow'),
    ('from tensorflow.python.framework.ops import Tensor',
     'tensorflow.python.framework.ops.Tensor is private and has moved: use tf.Tensor'),
    ('from tensorflow.python.ops import control_flow_ops; control_flow_ops.cond',
     'tensorflow.python.ops.control_flow_ops.cond is private and has moved: use tf.cond'),
    ('import tensorflow_core.python.framework', 'tensorflow_core is called tensorflow today')])
def test_an_import_that_failed_is_answered_with_the_name_of_today(code, advice):
    with pytest.raises((ImportError, AttributeError)) as caught:
        exec(code)
    assert flag_that_helps(caught.value).startswith(advice)


@pytest.mark.parametrize('path', [
    'tensorflow.python.nonsense', 'tensorflow.python', 'tensorflow.training.tracking', '',
    'tensorflow.python.framework.ops.nonsense', 'mine.tensorflow.python.training.tracking'])
def test_nothing_is_said_of_others(path):
    assert moved.advice(path) is None


@pytest.mark.soak
def test_the_tool_says_it(tmp_path):
    path = tmp_path / 'job.py'
    path.write_text('from tensorflow.python.training.tracking import tracking\n')
    done = run_etpe('run', path, loaded=True)
    assert done.returncode == 1
    assert ('[etpe] tensorflow.python.training.tracking is private and has moved: use '
            in done.stderr)
