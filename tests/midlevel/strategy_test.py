"""The emulated TPUStrategy, over two hosts of two cores."""

import inspect

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute import tpu_strategy

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.midlevel import strategy

CLASSES = {'V2': strategy.TPUStrategyV2, 'experimental': strategy.TPUStrategy,
           'V1': strategy.TPUStrategyV1}
TO_HOST = tf.distribute.InputOptions(experimental_fetch_to_device=False)


@pytest.fixture(scope='module')
def resolver():
    strategy.configure_devices(8)  # As many as any test of this process wants.
    return ete.TPUClusterResolver(hosts=2, cores=2)


@pytest.fixture(scope='module')
def tpu(resolver):
    return strategy.TPUStrategyV2(resolver)


@pytest.mark.parametrize('name', CLASSES)
def test_each_of_the_three_is_one_of_all_three_and_has_a_replica_per_core(resolver, name):
    made = CLASSES[name](resolver)
    assert made.num_replicas_in_sync == 4
    assert (made.extended.num_hosts, made.extended.num_replicas_per_host) == (2, 2)
    assert made.cluster_resolver is resolver
    assert all(isinstance(made, cls) for cls in CLASSES.values())
    assert strategy.is_tpu_strategy(made)
    other = tf.distribute.get_strategy()
    assert not any(isinstance(other, cls) for cls in CLASSES.values())

    class Mine(CLASSES[name]):
        pass

    assert isinstance(Mine(resolver), CLASSES['V2']) and not isinstance(made, Mine)


def test_arguments_are_those_of_tensorflow():
    for cls in CLASSES.values():
        original = getattr(tpu_strategy, cls.__name__)
        assert (list(inspect.signature(cls).parameters)
                == list(inspect.signature(original).parameters))


def test_steps_in_a_loop_reduce_and_change_variables_once(tpu):
    with tpu.scope():
        total = tf.Variable(0., aggregation=tf.VariableAggregation.SUM)
    seen = []

    @tf.function
    def steps(count):
        def step():
            context = tf.distribute.get_replica_context()
            mine = tf.cast(context.replica_id_in_sync_group, tf.float32)
            total.assign_add(mine)
            return context.all_reduce('sum', mine)

        last = 0.
        for _ in tf.range(count):
            last = tpu.reduce('mean', tpu.run(step), axis=None)
        seen.append([operation.type for operation in
                     tf.compat.v1.get_default_graph().get_operations()])
        return last

    assert float(steps(tf.constant(3))) == 0 + 1 + 2 + 3
    assert total.numpy() == 3 * (0 + 1 + 2 + 3)
    assert not [one for one in seen[0] if 'Collective' in one]


def batches(context):
    """Batches of 2 of the samples of one of the hosts, with a sparse feature."""
    numbers = tf.data.Dataset.range(16).shard(
        context.num_input_pipelines, context.input_pipeline_id)
    return numbers.batch(context.get_per_replica_batch_size(8), drop_remainder=True).map(
        lambda n: (n, tf.sparse.from_dense(n[:, None])))


@pytest.mark.parametrize('distribute', ['distribute_datasets_from_function',
                                        'experimental_distribute_datasets_from_function'])
def test_a_dataset_per_host_feeds_the_replicas_of_the_host_in_turn(tpu, distribute):
    data = iter(getattr(tpu, distribute)(batches, TO_HOST))

    @tf.function
    def step(data):
        return tpu.run(lambda dense, sparse: (dense, sparse.values + 0), args=next(data))

    dense, _ = step(data)
    assert [value.numpy().tolist() for value in tpu.experimental_local_results(dense)] == [
        [0, 2], [4, 6], [1, 3], [5, 7]]


def test_what_cannot_be_fetched_to_a_tpu_is_refused(tpu):
    for options in (None, tf.distribute.InputOptions()):
        with pytest.raises(ValueError, match='E525 .*does not support distributed datasets with '
                                             'device prefetch.*experimental_fetch_to_device'):
            tpu.distribute_datasets_from_function(batches, options)
    ragged = tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]])).repeat(4)
    with pytest.raises(ete.EteError, match='E525'):
        tpu.experimental_distribute_dataset(ragged)
    with pytest.raises(NotImplementedError, match='E923 .*PER_REPLICA is only supported'):
        tpu.distribute_datasets_from_function(batches, tf.distribute.InputOptions(
            experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA))


def test_an_eager_step_is_refused_as_on_a_tpu(tpu):
    with pytest.raises(NotImplementedError, match=r'E921 .*TPUStrategy.run\(fn, ...\) does not '
                       'support pure eager execution. please make sure'):
        tpu.run(lambda: 1.)
    function = tf.function(lambda: tf.distribute.get_replica_context().all_reduce('sum', 2.))
    assert float(tpu.experimental_local_results(tpu.run(function))[3]) == 8


def assignment(**kwargs):
    metadata = ete.TPUClusterResolver(hosts=2, cores=2).get_tpu_system_metadata()
    return tf.tpu.experimental.DeviceAssignment.build(metadata.topology, **kwargs)


def test_a_device_assignment_says_how_many_replicas_there_are(resolver):
    made = strategy.TPUStrategy(resolver, assignment(num_replicas=3))
    assert made.num_replicas_in_sync == 3
    assert (made.extended.num_hosts, made.extended.num_replicas_per_host) == (2, 2)
    with pytest.raises(NotImplementedError, match='E922 .*got a device assignment of 2 cores'):
        strategy.TPUStrategyV1(resolver, None, assignment(
            computation_shape=[2, 1, 1, 1], num_replicas=2))


def test_keras_trains_evaluates_and_predicts_in_order(tpu):
    x = np.arange(32, dtype=np.float32)[:, None] / 16
    with tpu.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False, input_shape=[1])])
        model.compile(tf.keras.optimizers.legacy.SGD(.1), 'mse', ['mae'], steps_per_execution=2)
    model.set_weights([np.float32([[0.]])])
    history = model.fit(x, 2 * x, batch_size=8, epochs=3, shuffle=False, verbose=0).history
    weight = 0.
    for _ in range(3):
        for batch in x.reshape(4, 8):  # Whichever replica has which sample of it.
            weight -= .1 * 2 * np.mean((weight - 2) * batch ** 2)
    np.testing.assert_allclose(model.get_weights()[0], [[weight]], rtol=1e-5)
    assert history['loss'][2] < history['loss'][0]
    loss, mae = model.evaluate(x, 2 * x, batch_size=8, verbose=0)
    np.testing.assert_allclose([loss, mae], [np.mean((weight - 2) ** 2 * x ** 2),
                                             np.mean(abs(weight - 2) * x)], rtol=1e-4)
    np.testing.assert_allclose(model.predict(x, batch_size=8, verbose=0), weight * x, rtol=1e-5)
