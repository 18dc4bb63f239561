"""The ids of several features of replicas are refused together as each is alone."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas
from harness.parts import soak_except

api = tf.tpu.experimental.embedding
FAILS = tf.errors.InvalidArgumentError
BATCH = 2  # Of a replica.
SPECS = {
    'one': tf.TensorSpec([BATCH], tf.int32), 'two': tf.TensorSpec([BATCH], tf.int64),
    'sparse': tf.SparseTensorSpec([BATCH, 2], tf.int64),
    'ragged': tf.RaggedTensorSpec([BATCH, None], tf.int64),
    'weights': tf.SparseTensorSpec([BATCH, 2], tf.float32)}
GOOD = {'one': [4, 0], 'two': [9, 5], 'sparse': [4, 5, 6], 'ragged': [1, 2, 3],
        'weights': [1., 2., 3.]}
PLACES = np.array([[0, 0], [0, 1], [1, 0]])


def fed(**changed):
    """Values of `SPECS`, of which some are `changed`."""
    found = {}
    for name, spec in SPECS.items():
        value = tf.constant(changed.get(name, GOOD[name]), spec.dtype)
        if isinstance(spec, tf.SparseTensorSpec):
            value = tf.SparseTensor(PLACES[:len(value)], value, [BATCH, 2])
        elif isinstance(spec, tf.RaggedTensorSpec):
            value = tf.RaggedTensor.from_row_splits(value, tf.constant([0, 2, 3], tf.int64))
        found[name] = value
    return found


class Loop:
    """A training step of several features, of small and of large tables, on some replicas."""

    def __init__(self, strategy, kernels='native'):
        tables = {name: api.TableConfig(rows, 1, tf.ones_initializer(), combiner='sum', name=name)
                  for name, rows in (('small', 5), ('large', 10))}
        made = replicas.make(strategy)
        self.count = made.num_replicas_in_sync
        self.embedding = embedding = replicas.embedding_under(made, {
            name: api.FeatureConfig(tables['small' if name == 'one' else 'large'])
            for name in SPECS if name != 'weights'}, api.SGD(1.), kernels=kernels)
        embedding.build(per_replica_batch_size=BATCH)

        @tf.function(autograph=False, input_signature=[[SPECS] * self.count])
        def train(given):
            def step(own):
                ids = {name: value for name, value in own.items() if name != 'weights'}
                embedding.enqueue(ids, {
                    name: own['weights'] if name == 'sparse' else None for name in ids})
                embedding.apply_gradients(
                    tf.nest.map_structure(tf.ones_like, embedding.dequeue()))
            made.run(step, (made.experimental_distribute_values_from_function(
                lambda context: given[context.replica_id_in_sync_group]),))
        self._train = train

    def step(self, **changed):
        """Trains on `GOOD`, with something `changed` on the last replica."""
        self._train([fed()] * (self.count - 1) + [fed(**changed)])

    def rows(self):
        return {name: own['parameters'][:, 0].tolist()
                for name, own in replicas.values_of(self.embedding).items()}


CASES = [
    ({'one': [4, 5]}, 'E501', 'one', '5 in sample 1 (1 in all)'),
    ({'one': [-1, 7]}, 'E501', 'one', '-1, 7 in sample 0, 1 (2 in all)'),
    ({'two': [10, 5]}, 'E501', 'two', '10 in sample 0 (1 in all)'),
    ({'two': [2**32 + 1, 5]}, 'E501', 'two', '4294967297 in sample 0 (1 in all)'),
    ({'sparse': [4, -5, 6]}, 'E501', 'sparse', '-5 in sample 0 (1 in all)'),
    ({'ragged': [1, 2, 12]}, 'E501', 'ragged', '12 in sample 1 (1 in all)'),
    ({'weights': [1., np.nan, 3.]}, 'E518', 'sparse', 'nan'),
    ({'weights': [1., 2.]}, 'E518', 'sparse', '2 weights for 3 ids'),
    # Two are bad. Features are in the order of their names.
    ({'two': [10, 5], 'one': [5, 0]}, 'E501', 'one', '5 in sample 0 (1 in all)')]


@pytest.mark.parametrize('strategy, kernels', soak_except([
    ('tpu 2', 'native'), ('tpu 4', 'stock'), ('none', 'native')], 0))
def test_a_bad_feature_of_the_last_replica_is_named_and_changes_no_table(strategy, kernels):
    loop, expected = Loop(strategy, kernels), {}
    for changed, code, feature, got in CASES:
        loop.step()
        before = loop.rows()
        with pytest.raises(FAILS) as caught:
            loop.step(**changed)
        said = ' '.join(caught.value.message.replace('\\', '').split())
        assert f'{code} feature "{feature}"' in said and f'; got {got}' in said, said
        assert loop.rows() == before != expected
        expected = before
