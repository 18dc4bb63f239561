"""The errors of the TFRS layer arrive as it raises them: same types, same words, before ours."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas, tfrs

api, keras = tf.tpu.experimental.embedding, tf.keras.optimizers.legacy
IDS = {'a': np.array([0, 1])}


@pytest.fixture(scope='module', autouse=True)
def names():
    with tfrs.names_in_place():
        yield


def config(optimizer=None, name='t'):
    table = api.TableConfig(4, 2, tf.ones_initializer(), optimizer, 'sum', name)
    return {'a': api.FeatureConfig(table)}


def layer_under(strategy, optimizer='sgd', **kwargs):
    return tfrs.layer_under(replicas.make(strategy), config(), optimizer, **kwargs)


def run(strategy, layer, ids=IDS, weights=None):
    """The activations of a call of the layer in every replica of a strategy."""
    made = replicas.make(strategy)

    @tf.function(autograph=False)
    def program(*args):
        return made.run(layer, args)
    return program(*({name: replicas.split(made, one) for name, one in values.items()}
                     for values in (ids, weights) if values is not None))


def raises(kind, text, function, *args, **kwargs):
    """Requires an error of exactly this type and text that is not one of this package."""
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    assert type(caught.value) is kind
    assert text in str(caught.value)


@pytest.mark.parametrize('strategy', ['tpu 1', 'tpu 2'])
def test_a_layer_that_was_made_elsewhere_cannot_be_called_under_a_tpu_strategy(strategy):
    raises(RuntimeError, 'but is being called under a TPUStrategy. Please create the layer under '
           'a TPUStrategy if you wish to run the layer on TPU.',
           run, strategy, layer_under('none'))


@pytest.mark.parametrize('strategy', ['tpu 1', 'tpu 2'])
def test_a_layer_that_was_made_under_a_tpu_strategy_cannot_be_called_outside(strategy):
    layer = layer_under(strategy)
    ids = {'a': tf.constant(IDS['a'])}
    for call in (layer, tf.function(layer, autograph=False)):
        raises(RuntimeError, 'Please use strategy.run when calling this layer.', call, ids)


OPTIMIZERS = [
    (lambda: 'adamw', "Unknown optimizer name 'adamw'. Please use one of 'sgd',"
     "'adagrad', 'adam', or 'ftrl'"),
    (lambda: api.AdagradMomentum(.1), 'Unknown optimizer type'),
    (lambda: keras.Adam(.1, amsgrad=True),
     'Optimizer parameter amsgrad is unsupported for TPU embeddings.'),
    (lambda: keras.RMSprop(.1), 'Keras optimizer RMSprop is unsupported for TPU Embedding.')]


@pytest.mark.parametrize('make, text', OPTIMIZERS)
@pytest.mark.parametrize('of_table', [False, True])
def test_optimizers_that_the_layer_refuses(make, text, of_table):
    made = replicas.make('tpu 2')
    with replicas.scope(made):
        optimizer = make()
    given = (config(optimizer), 'sgd') if of_table else (config(), optimizer)
    raises(ValueError, text, tfrs.layer_under, made, *given)


def test_a_serving_config_of_other_tables_is_refused():
    layer = layer_under('tpu 2')
    raises(ValueError, 'does not match any of the TableConfigs used to configure this layer.',
           layer.call, {'a': tf.constant([1])}, serving_config=config(name='other'))
