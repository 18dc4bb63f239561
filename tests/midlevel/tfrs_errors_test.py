"""The errors of the TFRS layer arrive as it raises them: same types, same words, before ours."""

import unittest

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas, tfrs

pytestmark = pytest.mark.usefixtures('tfrs_names')

api = tf.tpu.experimental.embedding
IDS = {'a': np.array([0, 1])}


def layer_under(strategy):
    table = api.TableConfig(4, 2, tf.ones_initializer(), None, 'sum', 't')
    return tfrs.layer_under(replicas.make(strategy), {'a': api.FeatureConfig(table)}, 'sgd')


def run(strategy, layer):
    """The activations of a call of the layer in every replica of a strategy."""
    made = replicas.make(strategy)

    @tf.function(autograph=False)
    def program(ids):
        return made.run(layer, (ids,))
    return program({name: replicas.split(made, one) for name, one in IDS.items()})


def raises(text, function, *args):
    """Requires a RuntimeError with this text that is not one of this package."""
    with pytest.raises(RuntimeError, match=text) as caught:
        function(*args)
    assert type(caught.value) is RuntimeError


@pytest.mark.parametrize('strategy', ['tpu 1', 'tpu 2'])
def test_a_layer_that_was_made_elsewhere_cannot_be_called_under_a_tpu_strategy(strategy):
    raises('but is being called under a TPUStrategy. Please create the layer under '
           'a TPUStrategy if you wish to run the layer on TPU.',
           run, strategy, layer_under('none'))


@pytest.mark.parametrize('strategy', ['tpu 1', 'tpu 2'])
def test_a_layer_that_was_made_under_a_tpu_strategy_cannot_be_called_outside(strategy):
    layer = layer_under(strategy)
    ids = {'a': tf.constant(IDS['a'])}
    for call in (layer, tf.function(layer, autograph=False)):
        raises('Please use strategy.run when calling this layer.', call, ids)


@pytest.mark.soak
@pytest.mark.parametrize('strategy', ['tpu 1', 'tpu 2'])
def test_all_tests_of_the_layer_pass(strategy):
    from tensorflow_recommenders.layers.embedding import tpu_embedding_layer_test

    class Test(tpu_embedding_layer_test.TPUEmbeddingLayerTest):
        def setUp(self):
            super().setUp()
            self.enterContext(replicas.scope(replicas.make(strategy)))

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Test).run(result)
    assert [*result.errors, *result.failures] == []
    assert result.testsRun - len(result.skipped) == 12
