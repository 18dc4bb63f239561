"""The size of the system, who calls input_fn, for whom, with which batch size.

Sections 3.1, 5 and 6 of the runner's specification.
"""

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.core.specs import System, Topology
from estimator_tpu_embedding.defaults import Defaults
from estimator_tpu_embedding.estimator.tpu_context import deploy, topology_of
from estimator_tpu_embedding.runner import progress


@pytest.fixture(autouse=True)
def default_put_back(monkeypatch):
    monkeypatch.setattr(defaults, '_current', Defaults())


def set_system(hosts, cores):
    defaults.set_current(Defaults(system=System.sized(hosts, cores)))


def topology(num_shards=None, resolver=None, master=''):
    return topology_of(master, resolver, num_shards)


@pytest.mark.parametrize('shards, hosts, cores', [(1, 1, 1), (4, 1, 4), (8, 1, 8), (16, 2, 8)])
def test_num_shards_sets_a_size_that_nobody_asked_for_and_says_so(
        monkeypatch, shards, hosts, cores):
    lines = []
    monkeypatch.setattr(progress, '_sink', lines.append)
    assert topology(shards) == Topology(num_hosts=hosts, cores_per_host=cores)
    assert len(lines) == (0 if shards == 1 else 1)
    assert all(f'TPUConfig.num_shards={shards} sets the size' in line for line in lines)


def test_num_shards_must_agree_with_a_size_that_was_asked_for():
    set_system(2, 2)
    assert topology(4).num_cores == 4
    with pytest.raises(ValueError, match=r'TPUConfig.num_shards is not set correctly.*'
                                         r'num_replicas should be \(4\), got \(8\)'):
        topology(8)
    for shards, flags in ((1, '1 core of this job (etpe run --cores 1)'),
                          (16, '16 cores of this job (etpe run --hosts 2 --cores 8)')):
        with pytest.raises(ValueError, match=re.escape(flags)):
            topology(shards)
    with pytest.raises(ValueError, match=r'should be \(6\), got \(4\)'):
        topology(4, ete.TPUClusterResolver(hosts=2, cores=3))


def test_every_name_and_address_finds_the_emulated_system_and_says_so(monkeypatch):
    lines = []
    monkeypatch.setattr(progress, '_sink', lines.append)
    for name in ('node-1', 'grpc://10.0.0.1:8470', ['a', 'b']):
        resolver = ete.TPUClusterResolver(name, zone='z', project='p', hosts=2, cores=3)
        assert (resolver.master(), resolver.get_tpu_system_metadata().num_cores) == ('', 6)
    assert lines[0] == "TPUClusterResolver('node-1') finds the emulated system: no TPU is asked"
    assert len(lines) == 3


def test_the_resolver_is_one_of_tensorflows_and_answers_its_questions():
    resolver = ete.TPUClusterResolver(hosts=2, cores=4)
    assert isinstance(resolver, tf.distribute.cluster_resolver.ClusterResolver)
    assert (resolver.master(), resolver.get_master(), resolver.environment) == ('', '', '')
    assert resolver.num_accelerators() == {'TPU': 4}
    assert (resolver.get_job_name(), resolver.get_coordination_service_leader()) == (
        'worker', '/job:worker/task:0')
    assert resolver.cluster_spec().num_tasks('worker') == 2
    assert not ete.TPUClusterResolver('local', hosts=2).cluster_spec().as_dict()


Mode = ete.InputPipelineConfig


def config(hosts=2, cores=4, mode=Mode.PER_HOST_V2, sliced=False, **kwargs):
    return ete.RunConfig(
        cluster=ete.TPUClusterResolver(hosts=hosts, cores=cores), tpu_config=ete.TPUConfig(
            per_host_input_for_training=mode, eval_training_input_configuration=(
                Mode.SLICED if sliced else Mode.PER_HOST_V1), **kwargs))


# Columns: invocations, samples of an element, replicas per invocation, samples of a core; the
# global batch is 64 and there are 2 hosts of 4 cores. Sliced is the evaluation of PER_HOST_V2.
@pytest.mark.parametrize('mode, verb, expected', [
    (Mode.PER_SHARD_V1, 'train', (8, 8, 1, 8)),
    (Mode.PER_HOST_V1, 'train', (2, 32, 4, 8)),
    (Mode.PER_HOST_V2, 'train', (2, 8, 4, 8)),
    (Mode.BROADCAST, 'train', (1, 64, 8, 64)),
    (Mode.PER_HOST_V2, 'evaluate', (2, 8, 4, 8)),
    (Mode.BROADCAST, 'evaluate', (1, 64, 8, 64)),
    (Mode.PER_HOST_V2, 'predict', (2, 8, 4, 8)),
    # The original has these on one host only; here one call serves all cores.
    (Mode.PER_SHARD_V1, 'evaluate', (1, 64, 8, 8)),
    (Mode.PER_HOST_V1, 'evaluate', (1, 64, 8, 8)),
    (Mode.PER_HOST_V1, 'predict', (1, 64, 8, 8)),
    (Mode.SLICED, 'train', (2, 8, 4, 8)), (Mode.SLICED, 'evaluate', (1, 64, 8, 8)),
    (Mode.SLICED, 'predict', (1, 64, 8, 8))])
def test_every_input_mode_has_its_calls_and_batch_sizes(mode, verb, expected):
    deployment = deploy(config(sliced=True) if mode == Mode.SLICED else config(mode=mode), verb, 64)
    calls = deployment.invocations
    assert (len(calls), deployment.input_batch_size, len(calls[0].cores),
            deployment.batch_size_per_core) == expected
    assert sorted(core for call in calls for core in call.cores) == list(range(8))
    assert [call.host for call in calls] == [call.cores[0] // 4 for call in calls]
    for call in calls:
        context = ete.TPUContext(deployment, call)
        assert context.current_input_fn_deployment()[1:] == (
            call.index, len(calls), len(call.cores))
        assert context.current_host == call.host


def test_replicas_of_several_cores_are_fewer_and_their_batches_larger():
    deployment = deploy(config(num_cores_per_replica=2), 'train', 64)
    assert (deployment.topology, deployment.batch_size_per_core) == (
        Topology(num_hosts=2, cores_per_host=2), 16)
    context = ete.TPUContext(deployment)
    assert (context.num_replicas, context.num_hosts) == (4, 2)
    with pytest.raises(ValueError, match='num_of_replicas_per_host is not supported for model_'):
        context.num_of_replicas_per_host
    assignment = context.device_assignment
    assert (assignment.num_replicas, assignment.num_cores_per_replica) == (4, 2)
    assert [context.device_for_replica(replica)[1] for replica in range(4)] == [0, 2, 0, 2]


@pytest.mark.parametrize('kwargs, error, text', [
    ({'num_cores_per_replica': 16}, ValueError,
     'num_cores_per_replica: 16, num cores in the system: 8'),
    ({'hosts': 3, 'cores': 1, 'num_cores_per_replica': 2}, RuntimeError,
     r'cores in the system \(3\) is not divisible by the num of cores \(2\)'),
    ({'cores': 2, 'num_cores_per_replica': 4, 'mode': Mode.PER_HOST_V1}, ValueError,
     'Except the PER_HOST_V2 mode, .* num_cores_per_replica: 4, num_cores_per_host: 2'),
    ({'hosts': 2, 'cores': 3, 'num_cores_per_replica': 2}, RuntimeError,
     r'cores of a host \(3\) is not divisible by TPUConfig.num_cores_per_replica \(2\)'),
    ({'num_shards': 8, 'num_cores_per_replica': 2}, ValueError,
     r'num_replicas should be \(4\), got \(8\)')])
def test_replicas_that_do_not_fit_the_system_get_the_errors_of_the_original(
        kwargs, error, text):
    with pytest.raises(error, match=text):
        deploy(config(**kwargs), 'train', 64)


ROWS = 16  # two global batches
COLUMNS = [jobs.embedding('id', initializer=tf.ones_initializer())]


def data():
    return {'id': np.arange(ROWS) % 5, 'label': np.arange(ROWS) / 4}


def reading(as_tensors=False):
    """An input_fn that reads the same 16 samples whoever calls it, each call its own part."""
    def input_fn(params):
        size = params['batch_size']
        context = params['context']
        _, index, calls, replicas = context.current_input_fn_deployment()
        arrays = data()
        # The samples of a step are dealt to the calls in order, and to their replicas.
        of_call = 8 // calls
        rows = np.concatenate([np.arange(step + index * of_call, step + (index + 1) * of_call)
                               for step in (0, 8)]) if calls > 1 else np.arange(ROWS)
        dataset = tf.data.Dataset.from_tensor_slices(
            ({'id': arrays['id'][rows]}, arrays['label'][rows].astype(np.float32)))
        dataset = dataset.batch(size, drop_remainder=True)
        if as_tensors:
            return tf.data.make_one_shot_iterator(dataset).get_next()
        return dataset
    return input_fn


def trained(model_dir, mode, hosts=2, cores=2, as_tensors=False, columns=COLUMNS, **kwargs):
    config = jobs.run_config(model_dir, hosts, cores).replace(
        tpu_config=ete.TPUConfig(per_host_input_for_training=mode, **kwargs))
    if columns:
        made = jobs.estimator(jobs.linear_model_fn(columns), columns, config)
    else:
        made = ete.TPUEstimator(dense_model_fn, config=config, train_batch_size=8,
                                eval_batch_size=8, predict_batch_size=8)
    made.train(reading(as_tensors), steps=2)
    return made


def dense_model_fn(features, labels, mode, params):
    weight = tf.get_variable('weight', [], initializer=tf.zeros_initializer())
    value = weight * tf.cast(features['id'], tf.float32)
    if mode == 'infer':
        return ete.TPUEstimatorSpec(mode, predictions={'id': features['id'], 'value': value})
    loss = tf.reduce_mean(tf.square(value - labels))
    optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.05))
    return ete.TPUEstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()),
        eval_metrics=(lambda labels: {'sum': (tf.metrics.mean(labels))}, [labels]))


@pytest.mark.parametrize('as_tensors', [False, True])
def test_tables_are_trained_alike_by_a_batch_per_host_and_by_a_batch_per_core(
        tmp_path, as_tensors):
    trained(tmp_path / 'v2', Mode.PER_HOST_V2)
    trained(tmp_path / 'v1', Mode.PER_HOST_V1, as_tensors=as_tensors)
    names = [name for name, _ in tf.train.list_variables(str(tmp_path / 'v2'))]
    assert any(name.endswith('embedding_weights/Adagrad') for name in names)
    for name in names:
        np.testing.assert_allclose(tf.train.load_variable(str(tmp_path / 'v1'), name),
                                   tf.train.load_variable(str(tmp_path / 'v2'), name), 1e-6)


@pytest.mark.parametrize('mode, as_tensors', [
    (Mode.PER_HOST_V1, False), (Mode.PER_HOST_V1, True), (Mode.PER_SHARD_V1, True),
    (Mode.BROADCAST, False), (Mode.BROADCAST, True)])
def test_a_model_without_tables_trains_alike_in_every_mode(tmp_path, mode, as_tensors):
    made = trained(tmp_path, mode, as_tensors=as_tensors, columns=None)
    weight = 0.
    for step in (0, 8):  # Gradient descent on the mean square over the global batch.
        ids, labels = (data()[key][step:step + 8] for key in ('id', 'label'))
        weight -= .05 * np.mean(2 * (weight * ids - labels) * ids)
    np.testing.assert_allclose(made.get_variable_value('weight'), weight, rtol=1e-6)
    results = made.evaluate(reading(), steps=2)
    np.testing.assert_allclose(results['sum'], np.mean(data()['label']), rtol=1e-6)
    np.testing.assert_allclose(
        results['loss'], np.mean((weight * data()['id'] - data()['label'])**2), rtol=1e-5)
    rows = list(made.predict(lambda params: tf.data.Dataset.from_tensor_slices(
        {'id': np.arange(11)}).batch(params['batch_size'])))
    assert [row['id'] for row in rows] == list(range(11))


def test_sliced_evaluation_equals_that_of_every_host(tmp_path):
    made = trained(tmp_path, Mode.PER_HOST_V2)
    sliced = jobs.estimator(jobs.linear_model_fn(COLUMNS), COLUMNS, jobs.run_config(
        tmp_path, 2, 2).replace(tpu_config=ete.TPUConfig(
            per_host_input_for_training=Mode.PER_HOST_V2,
            eval_training_input_configuration=Mode.SLICED)))
    assert sliced.evaluate(reading(), steps=2) == pytest.approx(
        made.evaluate(reading(), steps=2), rel=1e-6)


def test_replicas_of_two_cores_train_as_half_as_many_cores_do(tmp_path):
    wide = trained(tmp_path / 'wide', Mode.PER_HOST_V2, 2, 2, num_cores_per_replica=2)
    narrow = trained(tmp_path / 'narrow', Mode.PER_HOST_V2, 2, 1)
    for name in narrow.get_variable_names():
        np.testing.assert_array_equal(wide.get_variable_value(name),
                                      narrow.get_variable_value(name))


def test_a_dataset_per_core_gets_the_error_of_the_original(tmp_path):
    with pytest.raises(TypeError, match='is not yet supported in per-Core input pipeline'):
        trained(tmp_path, Mode.PER_SHARD_V1, columns=None)


def test_the_end_of_tensors_is_the_end_of_the_data(tmp_path):
    made = trained(tmp_path, Mode.PER_HOST_V1, as_tensors=True)
    with pytest.raises(tf.errors.OutOfRangeError, match='input of host . ended: this train made 2 '
                                                        'steps and was to reach step 7'):
        made.train(reading(as_tensors=True), max_steps=7)


def test_input_of_queue_runners_is_read_and_warned_of(tmp_path, caplog):
    def input_fn(params):
        ids = tf.train.input_producer(np.arange(4), shuffle=False).dequeue_many(
            params['batch_size'])
        return {'id': ids}, tf.ones_like(ids, tf.float32)

    made = ete.TPUEstimator(
        dense_model_fn, train_batch_size=4, config=jobs.run_config(tmp_path, 1, 2).replace(
            tpu_config=ete.TPUConfig(per_host_input_for_training=Mode.PER_HOST_V1)))
    made.train(input_fn, steps=3)
    assert made.get_variable_value('global_step') == 3
    assert 'Input pipeline contains one or more QueueRunners' in caplog.text


def test_what_has_no_effect_is_warned_of_once(tmp_path, caplog):
    ete.TPUEstimator(
        dense_model_fn, train_batch_size=4, config=ete.RunConfig(
            cluster=ete.TPUClusterResolver(hosts=1, cores=2), tpu_config=ete.TPUConfig(
                num_cores_per_replica=2, input_partition_dims=[{'x': [1, 2]}],
                initial_infeed_sleep_secs=7, per_host_input_for_training=Mode.PER_HOST_V2)))
    for name in ('input_partition_dims', 'initial_infeed_sleep_secs'):
        assert caplog.text.count(f'W462 TPUConfig: {name} has no effect') == 1
    ete.TPUEstimator(dense_model_fn, train_batch_size=4, config=ete.RunConfig(
        tpu_config=ete.TPUConfig(num_shards=1)))
    assert caplog.text.count('Setting TPUConfig.num_shards==1 is an unsupported behavior') == 1
