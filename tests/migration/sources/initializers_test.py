import numpy as np
import pytest
import tensorflow as tf

from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.specs import TableSpec
from estimator_tpu_embedding.migration.sources import initializers
from estimator_tpu_embedding.migration.sources.facts import Table
from estimator_tpu_embedding.migration.sources.text import lines

v1 = tf.compat.v1


def table(initializer, dimension=4):
    return Table(algorithm='adagrad', spec=TableSpec(
        name='t', vocabulary_size=9, dimension=dimension, initializer=initializer,
        optimizer=Adagrad(learning_rate=.1)))


def written(initializer, target='tf2', dimension=4):
    made = initializers.written(table(initializer, dimension), target)
    return None if made is None else '\n'.join(lines('', made))


@pytest.mark.parametrize('initializer', [
    v1.zeros_initializer(), tf.ones_initializer(), tf.constant_initializer(3.),
    v1.constant_initializer(2), tf.random_uniform_initializer(-1., 1., seed=7),
    v1.random_normal_initializer(.5, .25), tf.keras.initializers.TruncatedNormal(stddev=.125),
    v1.glorot_uniform_initializer(), tf.initializers.GlorotNormal(),
    v1.variance_scaling_initializer(2., 'fan_out', distribution='uniform')],
    ids=lambda one: f'{type(one).__module__}.{type(one).__name__}')
@pytest.mark.parametrize('target, module', [('tf2', tf), ('tf1', v1)])
def test_an_initializer_of_one_api_is_that_of_the_other_with_the_same_numbers(
        initializer, target, module):
    again = eval(written(initializer, target), {'tf': module})
    config, new = initializer.get_config(), again.get_config()
    assert type(again).__name__ == type(initializer).__name__
    assert {name: new[name] for name in config if name != 'dtype'} == {
        name: value for name, value in config.items() if name != 'dtype'}


@pytest.mark.parametrize('dimension', [4, 3])
def test_the_default_of_both_is_left_out(dimension):
    assert written(v1.truncated_normal_initializer(stddev=dimension**-.5),
                   dimension=dimension) is None
    assert written(v1.truncated_normal_initializer(stddev=.5, seed=1)) is not None


@pytest.mark.parametrize('initializer', [
    lambda shape, dtype: None, tf.constant_initializer(np.ones([9, 4])),
    type('Zeros', (), {'get_config': lambda self: 1 / 0, '__call__': None})()],
    ids=['function', 'array', 'namesake'])
def test_others_are_told_and_not_guessed(initializer):
    assert written(initializer) is None
    (note,) = initializers.notes_of(table(initializer), 'table "t"')
    assert note.code == 'E673' and 'cannot be written as source' in note.fact
