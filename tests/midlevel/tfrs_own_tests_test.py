"""TFRS's own tests of its layer, which it runs on a CPU, pass within an emulated TPUStrategy."""

import unittest

import pytest
from harness import replicas, tfrs


@pytest.fixture(scope='module', autouse=True)
def names():
    with tfrs.names_in_place():
        yield


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
