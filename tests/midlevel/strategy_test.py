"""The emulated TPUStrategy, over two hosts of two cores."""

import inspect

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.distribute import tpu_strategy

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.midlevel import strategy, system

CLASSES = {'V2': strategy.TPUStrategyV2, 'experimental': strategy.TPUStrategy,
           'V1': strategy.TPUStrategyV1}
TO_HOST = tf.distribute.InputOptions(experimental_fetch_to_device=False)


@pytest.fixture(scope='module')
def resolver():
    system.configure_devices(8)  # As many as any test of this process wants.
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


def test_what_tensorflow_has_in_public_is_there(tpu):
    of_the_inside = {'tpu_run', 'lazy_variable_tracker'}
    for cls, original in ((type(tpu), tpu_strategy.TPUStrategyV2),
                          (type(tpu.extended), tpu_strategy.TPUExtended),
                          (strategy.TPUStrategyV1, tpu_strategy.TPUStrategyV1)):
        assert not {name for name in set(dir(original)) - set(dir(cls)) - of_the_inside
                    if not name.startswith('_')}


def test_the_hardware_has_an_accelerator_for_tables(tpu):
    feature = tpu.extended.tpu_hardware_feature
    assert feature.embedding_feature == tf.tpu.experimental.HardwareFeature.EmbeddingFeature.V1


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


def test_options_of_input_have_the_name_of_2_3_too():
    assert system.InputOptions(experimental_prefetch_to_device=False) == TO_HOST
    assert system.InputOptions(False) == TO_HOST
    assert system.InputOptions() == tf.distribute.InputOptions()
    both = system.InputOptions(True, tf.distribute.InputReplicationMode.PER_REPLICA,
                               experimental_prefetch_to_device=True)
    assert isinstance(both, tf.distribute.InputOptions)
    assert both.experimental_replication_mode == tf.distribute.InputReplicationMode.PER_REPLICA
    with pytest.raises(TypeError, match='give one of them'):
        system.InputOptions(True, experimental_prefetch_to_device=False)


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


def test_a_global_batch_is_split_over_the_replicas(tpu):
    data = tpu.experimental_distribute_dataset(tf.data.Dataset.range(16).batch(8))
    per_replica = tpu.experimental_local_results(next(iter(data)))
    assert sorted(np.concatenate(per_replica)) == list(range(8))
    assert [len(value) for value in per_replica] == [2] * 4
    assert len({value.device for value in per_replica}) == 4


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


def test_a_replica_has_one_logical_device(tpu, resolver):
    tensor = tf.ones([2, 3])
    assert tpu.experimental_assign_to_logical_device(tensor, 0) is tensor
    assert tpu.experimental_split_to_logical_devices(tensor, [1, 1]) is tensor
    assert tpu.experimental_replicate_to_logical_devices(tensor) is tensor
    with tpu.extended.experimental_logical_device(0):
        pass
    with pytest.raises(ValueError, match='must be lower then total number'):
        tpu.experimental_assign_to_logical_device(tensor, 1)
    with pytest.raises(ValueError, match='Length of `partition_dimensions`'):
        tpu.experimental_split_to_logical_devices(tensor, [1])
    with pytest.raises(ValueError, match='product of `partition_dimensions`'):
        tpu.experimental_split_to_logical_devices(tensor, [2, 1])
    with pytest.raises(ValueError, match='`logical_device_id` not in range'):
        with tpu.extended.experimental_logical_device(1):
            pass
    with pytest.raises(ValueError, match='in SPMD mode'):
        strategy.TPUStrategyV2(
            resolver, experimental_spmd_xla_partitioning=True
        ).experimental_assign_to_logical_device(tensor, 0)


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


def test_sessions_get_a_cpu_per_replica_by_the_config_of_the_strategy(resolver):
    made = strategy.TPUStrategyV1(resolver, 7)
    assert made.steps_per_run == 7
    config = made.update_config_proto(tf.compat.v1.ConfigProto())
    assert config.device_count['CPU'] == 4
    with tf.compat.v1.Session(graph=tf.Graph()) as session:  # Others keep their one.
        assert len(session.list_devices()) == 1


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
