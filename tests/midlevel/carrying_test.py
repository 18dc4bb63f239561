"""Small tensors are sent together, large ones and those of other shapes one by one."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas

from estimator_tpu_embedding.midlevel.carrying import MOST_BYTES, Carrier

api = tf.tpu.experimental.embedding


@pytest.mark.parametrize('shapes, count', [
    ([(2, 1), (2, 3), (2, 1)], 1), ([(2, 3)], 1), ([(2, 1), (4, 1)], 2), ([(2, 1), (2, 3, 1)], 2),
    ([(1, MOST_BYTES // 4 - 1), (1, 1)], 1), ([(1, MOST_BYTES // 4), (1, 1)], 2)])
def test_what_is_split_is_what_was_joined(shapes, count):
    tensors = [tf.random.normal(shape) for shape in shapes]
    carrier = Carrier(shapes)
    joined = carrier.join(tensors)
    assert len(joined) == count
    for found, own in zip(carrier.split(joined), tensors, strict=True):
        np.testing.assert_array_equal(found, own)


@pytest.mark.parametrize('rows', [2, MOST_BYTES // 4])
def test_each_feature_keeps_its_own_whatever_the_order_of_tables(rows):
    """Features a and c share a table, b is between them; row i of a table is filled with i."""
    made = replicas.make('tpu 2')

    def table(name, width):
        return api.TableConfig(3, width, lambda shape, dtype: tf.range(3.)[:, None]
                               * tf.ones(shape), combiner='sum', name=name)

    shared, other = table('s', 2), table('o', 1)
    embedding = replicas.embedding_under(
        made, {'a': api.FeatureConfig(shared), 'b': api.FeatureConfig(other),
               'c': api.FeatureConfig(shared)}, api.SGD(1.))

    @tf.function
    def train():
        def step():
            found = embedding.dequeue()
            embedding.apply_gradients({name: tf.one_hot(tf.zeros([rows], tf.int32), width) * scale
                                       for name, width, scale in (
                                           ('a', 2, 1.), ('b', 1, 10.), ('c', 2, 100.))})
            return found
        embedding.enqueue({name: tf.fill([rows], id) for name, id in (
            ('a', 0), ('b', 1), ('c', 2))})
        return made.run(step)

    found = train()
    for replica in range(2):
        for name, id, width in (('a', 0, 2), ('b', 1, 1), ('c', 2, 2)):
            np.testing.assert_array_equal(
                made.experimental_local_results(found[name])[replica], np.full([rows, width], id))
    values = replicas.values_of(embedding)
    samples = 2. * rows
    np.testing.assert_array_equal(
        values['s']['parameters'], [[-samples, 0], [1, 1], [2 - 100 * samples, 2]])
    np.testing.assert_array_equal(values['o']['parameters'], [[0], [1 - 10 * samples], [2]])
