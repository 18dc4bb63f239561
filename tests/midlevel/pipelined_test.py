"""A pipelined TPUEmbedding looks up before the step before it has updated, as NumPy says."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas
from harness.numpy_reference import ReferenceTable, assert_close

from estimator_tpu_embedding.midlevel import feature_configs

api = tf.tpu.experimental.embedding
ROWS = 7


@pytest.mark.parametrize('strategy, kernels', [
    ('none', 'native'), ('none', 'stock'), ('tpu 2', 'native')])
def test_pipelined_updates_are_one_step_late_unless_somebody_looks(strategy, kernels):
    made, random = replicas.make(strategy), np.random.default_rng(3)
    adagrad = api.Adagrad(.3)
    initial = random.normal(size=(ROWS, 2)).astype(np.float32)
    table = api.TableConfig(ROWS, 2, lambda *_, **__: tf.constant(initial), combiner='sum',
                            name='t')
    embedding = replicas.embedding_under(
        made, {'a': api.FeatureConfig(table)}, adagrad,
        pipeline_execution_with_tensor_core=True, kernels=kernels)
    reference = ReferenceTable(initial, feature_configs.core_optimizer(adagrad), 'sum')

    @tf.function(autograph=False)
    def program(ids, gradients, training):
        def replica(gradients):
            found = embedding.dequeue()['a']
            if training:
                embedding.apply_gradients({'a': gradients})
            return found
        embedding.enqueue({'a': ids}, training=training)
        return tf.concat(made.experimental_local_results(made.run(replica, (gradients,))), 0)

    def rows():
        return replicas.values_of(embedding)['t']['parameters']

    waits = []
    for what in '+++-+r++--+':
        if what == 'r':
            reference.update(waits.pop())
            assert_close(rows(), reference.rows, 1e-6)
            continue
        ids = random.integers(ROWS, size=4)
        gradients = np.float32(random.uniform(.1, 1, (4, 2)))
        if what == '-' and waits:
            reference.update(waits.pop())
        found = program(replicas.split(made, ids), replicas.split(made, gradients), what == '+')
        assert_close(found.numpy(), reference.lookup([[one] for one in ids]), 1e-6)
        if what == '+':
            for one in waits:
                reference.update(one)
            waits = [[([[one] for one in ids], gradients, None)]]
    reference.update(waits.pop())
    assert_close(rows(), reference.rows, 1e-6)
