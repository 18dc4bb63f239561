"""An engine is closed with its object; rates are right, and features keep their own."""

import gc

import numpy as np
import pytest
import tensorflow as tf
from harness import graphs, replicas

from estimator_tpu_embedding.native import library

pytestmark = graphs.needs_native
api = tf.tpu.experimental.embedding


def test_the_engine_of_an_object_that_is_garbage_is_closed_also_where_a_graph_is_built():
    embedding = replicas.embedding_under(
        replicas.make('none'), api.FeatureConfig(api.TableConfig(3, 2)), api.SGD(.1))
    embedding.build(per_replica_batch_size=1)
    handle = embedding._runtime._engine.handle

    def group():
        return library.load().ete_group(
            engine=handle, samples=[[0]], ids=[tf.constant([0], tf.int64)], weights=[],
            weighted=[0])

    group()
    del embedding
    with tf.Graph().as_default():
        gc.collect()
    with pytest.raises(tf.errors.InvalidArgumentError, match='no engine'):
        group()


@pytest.mark.parametrize('built', ['before', 'around the replicas', 'in a replica'])
def test_a_schedule_of_keras_may_be_asked_first_in_a_loop_over_replicas(built):
    """Rates .5 and .25, then .25; two replicas look row 0 up once each, with gradients of 1."""
    strategy = replicas.make('tpu 2')
    with strategy.scope():
        optimizer = tf.keras.optimizers.legacy.SGD(
            tf.keras.optimizers.schedules.PiecewiseConstantDecay([0], [.5, .25]))
        other = tf.Variable(0.)
    table = api.TableConfig(3, 1, tf.zeros_initializer(), combiner='sum', name='t')
    embedding = replicas.embedding_under(strategy, [api.FeatureConfig(table)], api.SGD(
        lambda: optimizer.learning_rate(optimizer.iterations)))

    if built == 'before':
        with strategy.scope():
            embedding.build(per_replica_batch_size=1)

    @tf.function
    def steps(count):
        def step(ids):
            if built == 'in a replica':
                embedding.enqueue([ids])
            embedding.apply_gradients([tf.ones_like(embedding.dequeue()[0])])
            optimizer.apply_gradients([(tf.constant(0.), other)])

        for _ in tf.range(count):
            ids = tf.constant([0])
            if built != 'in a replica':
                embedding.enqueue([ids])
            strategy.run(step, (ids,))

    steps(tf.constant(3))
    assert replicas.values_of(embedding)['t']['parameters'][0] == -2 * (.5 + .25 + .25)


def test_a_rate_is_asked_once_where_a_step_is_traced():
    """Row 0 is looked up once, with a gradient of 1: the rate is the first of the numbers."""
    numbers = iter([.5, .25])
    table = api.TableConfig(3, 1, tf.zeros_initializer(), combiner='sum', name='t')
    embedding = replicas.embedding_under(
        replicas.make('none'), [api.FeatureConfig(table)], api.SGD(lambda: next(numbers)))

    @tf.function
    def step(ids):
        embedding.enqueue([ids])
        embedding.apply_gradients([tf.ones_like(embedding.dequeue()[0])])

    for after in (-.5, -1.):
        step(tf.constant([0]))
        assert embedding.embedding_tables[table].numpy()[0] == after
    assert list(numbers) == [.25]


def test_each_feature_keeps_its_own_whatever_the_order_of_tables():
    """Features a and c share a table, b is between them; row i of a table is filled with i."""
    made, rows = replicas.make('tpu 2'), 2

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
