"""Aliases of private names that moved, and advice: true of the TensorFlow that is installed."""

import importlib
import importlib.util

import pytest
import tensorflow as tf
from harness.processes import run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.compat import old_names
from estimator_tpu_embedding.compat.hints import flag_that_helps

ALL = sorted({target for targets in old_names.private_advice().values() for target in targets})


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
@pytest.mark.parametrize('name', old_names.private_advice())
def test_advice_is_given_only_of_what_is_gone(name):
    with pytest.raises((ImportError, AttributeError)):
        resolved(name)


@pytest.mark.parametrize('code, advice', [
    ('from tensorflow.python.training.tracking.base import nothing_of_that_name',
     'tensorflow.python.training.tracking.base is private and has moved: use '
     'tensorflow.python.trackable.base, tensorflow.python.checkpoint.restore, '),
    ('from tensorflow.python.eager.function import defun',
     'tensorflow.python.eager.function.defun is private and has moved: use tf.function'),
    ('from tensorflow.python.data.ops import dataset_ops; dataset_ops.MapDataset',
     'tensorflow.python.data.ops.dataset_ops.MapDataset is private and has moved: use tensorf'),
    ('from tensorflow.python.keras.layers.wrappers import TimeDistributed',
     'tensorflow.python.keras.layers.wrappers is private and has moved: use tf.keras')])
def test_an_import_that_failed_is_answered_with_the_name_of_today(code, advice):
    ete.install()
    with pytest.raises((ImportError, AttributeError)) as caught:
        exec(code)
    assert flag_that_helps(caught.value).startswith(advice)


@pytest.mark.parametrize('path', [
    'tensorflow.python.nonsense', 'tensorflow.python', 'tensorflow.training.tracking', '',
    'tensorflow.python.framework.ops.nonsense', 'mine.tensorflow.python.training.tracking'])
def test_nothing_is_said_of_others(path):
    assert old_names.advice(path) is None


NAMES = [(owner, *name) for owner, names in old_names.moved().items() for name in names.items()]


@pytest.mark.parametrize('owner, name, home', NAMES)
def test_each_alias_is_the_very_object(owner, name, home):
    ete.install()
    module, new = home
    assert getattr(resolved(owner), name) is getattr(importlib.import_module(module), new)


@pytest.mark.parametrize('old', old_names.homes())
def test_each_module_that_is_gone_is_that_of_today_or_has_all_its_names(old):
    ete.install()
    module = importlib.import_module(old)
    homes = [importlib.import_module(path) for path in old_names.homes()[old]]
    if len(homes) == 1 and old not in old_names.moved():
        assert module is homes[0]
    for home in homes:
        name = next(name for name, value in vars(home).items()
                    if getattr(value, '__module__', '') == home.__name__ or home is module)
        assert hasattr(module, name)


def test_a_module_that_has_several_homes_gives_all_names_to_a_star():
    ete.install()
    found = {}
    exec('from tensorflow.python.training.tracking.base import *', found)
    assert found['Trackable'] is importlib.import_module(
        'tensorflow.python.trackable.base').Trackable


def test_what_tensorflow_addons_takes_of_keras_2_is_that_of_today():
    ete.install()
    from keras.src.engine import keras_tensor
    assert isinstance(tf.keras.Input([1]), keras_tensor.KerasTensor)


def test_names_that_were_methods_or_functions_work():
    ete.install()
    from tensorflow.python.training import saver
    from tensorflow.python.util import tf_export
    with tf.Graph().as_default():
        variable = tf.compat.v1.get_variable('v', [2])
        assert saver.BaseSaverBuilder.OpListToDict([variable]).keys() == {'v'}

    @tf_export.estimator_export('estimator.Mine')
    class Mine:
        pass

    assert Mine.__mro__ == (Mine, object)
    assert not hasattr(tf.estimator, 'Mine')


FRESH = """
import sys
import estimator_tpu_embedding as ete
ete.install()
from tensorflow.python.ops import cond
before = cond.cond
from estimator_tpu_embedding.compat import old_names
again, finders = set(sys.modules), list(sys.meta_path)
ete.install()
assert (set(sys.modules), sys.meta_path) == (again, finders)
assert not {path for path, homes in old_names.homes().items() if len(homes) == 1} & again
for path, names in old_names.moved().items():
    assert path == old_names.BUILDER or not names.keys() & vars(sys.modules[path]).keys()
from tensorflow.python.ops import control_flow_ops
vars(control_flow_ops)['cond'] = 1  # As in a TensorFlow that still has it.
assert control_flow_ops.cond == 1 and cond.cond is before
"""


def test_nothing_is_imported_before_it_is_asked_for_and_nothing_replaced():
    assert run_python('-c', FRESH).returncode == 0
