import collections
import json

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.core.specs import Kernels
from estimator_tpu_embedding.estimator import job_settings
from estimator_tpu_embedding.estimator.tpu_config import check_partitioned_input

ITERATIONS = (
    'Invalid TPUConfig `iterations_per_loop` value. Value must be positive integer value or '
    'time-based value `<N><s|m|h>` where <N> is anypositive integer and `s`, `m`, `h` are unit of '
    'time in seconds, minutes, hours respectively. Examples of valid values: `3600s`, `60m`, '
    '`1h`.')
MEMORY = ete.TableMemory('/ssd', '1GiB')
CLUSTER = {'chief': ['h:1'], 'ps': ['h:2']}


def test_the_input_modes_are_the_numbers_of_the_original():
    assert {name: value for name, value in vars(ete.InputPipelineConfig).items()
            if name.isupper()} == {
        'PER_SHARD_V1': 1, 'PER_HOST_V1': 2, 'PER_HOST_V2': 3, 'BROADCAST': 4, 'SLICED': 5}


def test_the_fields_of_tpu_config_have_the_order_and_defaults_of_the_original():
    assert ete.TPUConfig()._asdict() == {
        'iterations_per_loop': 2, 'num_shards': None, 'num_cores_per_replica': None,
        'per_host_input_for_training': 2, 'tpu_job_name': None,
        'initial_infeed_sleep_secs': None, 'input_partition_dims': None,
        'eval_training_input_configuration': 2, 'experimental_host_call_every_n_steps': 1,
        'experimental_allow_per_host_v2_parallel_get_next': False,
        'experimental_feed_hook': None}


@pytest.mark.parametrize('given, stored', [
    (True, 2), (False, 1), (3, 3), (4, 4), (99, 99), (None, None)])
def test_booleans_of_per_host_input_mean_its_first_two_values_and_the_rest_is_kept(given, stored):
    assert ete.TPUConfig(per_host_input_for_training=given).per_host_input_for_training == stored


@pytest.mark.parametrize('arguments, error, text', [
    *[({'iterations_per_loop': value}, ValueError, ITERATIONS)
      for value in (0, None, 2.5, '1d', '012', '-1', True, '')],
    ({'num_shards': 2.}, TypeError, "TPUConfig num_shards must be int, got <class 'float'>"),
    ({'num_shards': 0}, ValueError, 'TPUConfig num_shards must be positive, got 0'),
    ({'num_cores_per_replica': 3}, ValueError,
     'num_cores_per_replica must be 1, 2, 4, 8, 16, 32, 64, 128; got 3'),
    ({'input_partition_dims': 3}, ValueError, 'must be a list/tuple with one or two elements.'),
    ({'input_partition_dims': [[1]]}, ValueError, 'only supported in PER_HOST_V2 mode.'),
    ({'input_partition_dims': [[1]], 'per_host_input_for_training': 3}, ValueError,
     'input_partition_dims requires setting num_cores_per_replica.'),
    ({'eval_training_input_configuration': 3}, ValueError,
     'eval_training_input_configuration must be PER_HOST_V1 or SLICED; got 3'),
    ({'initial_infeed_sleep_secs': 1.5}, TypeError,
     "TPUConfig initial_infeed_sleep_secs must be int, got <class 'float'>"),
    ({'initial_infeed_sleep_secs': -1}, ValueError,
     'TPUConfig initial_infeed_sleep_secs must be positive, got -1')])
def test_bad_values_get_the_errors_of_the_original(arguments, error, text):
    with pytest.raises(error) as caught:
        ete.TPUConfig(**arguments)
    assert text in str(caught.value)


@pytest.mark.parametrize('value', [1, 100, '7', '30s', '5m', '1h', np.int64(3)])
def test_iterations_may_be_a_number_digits_or_a_time(value):
    assert ete.TPUConfig(iterations_per_loop=value).iterations_per_loop == value


def test_run_config_takes_master_from_the_resolver_or_as_given():
    config = ete.RunConfig(cluster=ete.TPUClusterResolver())
    assert (config.master, config.evaluation_master) == ('', '')
    assert ete.RunConfig(master='local').evaluation_master == 'local'
    assert ete.RunConfig(master='', evaluation_master='x').evaluation_master == 'x'
    with pytest.raises(ValueError, match='Both master and cluster are set.'):
        ete.RunConfig(master='', cluster=ete.TPUClusterResolver())


def resolver_of(jobs):
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(jobs), master='grpc://z')


def test_a_resolver_makes_the_session_config_of_section_2_3_and_tolerates_no_other_cluster():
    config = ete.RunConfig(cluster=resolver_of({'w': ['h:1']}))
    assert (config.master, config.evaluation_master) == ('grpc://z', 'grpc://z')
    assert config.cluster_spec.as_dict() == {'w': ['h:1']}
    assert config.session_config.cluster_def.job[0].name == 'w'
    emulated = ete.RunConfig(cluster=ete.TPUClusterResolver()).session_config
    assert emulated == tf.ConfigProto(allow_soft_placement=True, isolate_session_state=True)
    assert ete.RunConfig().session_config is None
    with pytest.raises(ValueError, match='You cannot provide a ClusterResolver and '
                                         'session_config.cluster_def.'):
        ete.RunConfig(cluster=ete.TPUClusterResolver(), session_config=config.session_config)


def test_the_cluster_of_emulated_hosts_is_told_but_no_cluster_of_processes():
    resolver = ete.TPUClusterResolver('node-1', hosts=2)
    for config in (ete.RunConfig(cluster=resolver),
                   ete.RunConfig(cluster=resolver).replace(tf_random_seed=1)):
        assert config.cluster_spec == resolver.cluster_spec()
        assert config.cluster_spec.num_tasks('worker') == 2
        assert not config.cluster_spec  # By which the Estimator sees that it runs alone.
        assert not config.session_config.HasField('cluster_def')
        job_settings.refuse_unsupported(config)


DistributeConfig = collections.namedtuple(
    'DistributeConfig', 'train_distribute eval_distribute remote_cluster')


def problems_of(config):
    with pytest.raises(ete.UnsupportedError) as caught:
        job_settings.refuse_unsupported(config)
    return [(problem.code, problem.where) for problem in caught.value.problems]


def test_a_cluster_is_refused_with_the_name_of_what_named_it(monkeypatch):
    assert problems_of(ete.RunConfig(cluster=resolver_of({'w': ['h:1']}))) == [
        ('E907', 'RunConfig.cluster')]
    assert problems_of(ete.RunConfig(experimental_distribute=DistributeConfig(
        train_distribute=tf.distribute.OneDeviceStrategy('/cpu:0'), eval_distribute=None,
        remote_cluster=CLUSTER)))[0] == ('E907', 'RunConfig.experimental_distribute')
    monkeypatch.setenv('TF_CONFIG', json.dumps(
        {'cluster': CLUSTER, 'task': {'type': 'chief', 'index': 0}}))
    for kwargs in ({}, {'cluster': ete.TPUClusterResolver('node-1')}, {'master': ''}):
        assert problems_of(ete.RunConfig(**kwargs)) == [('E907', 'TF_CONFIG')]
    assert problems_of(ete.RunConfig(cluster=resolver_of({'w': ['h:1']}))) == [
        ('E907', 'TF_CONFIG'), ('E907', 'RunConfig.cluster')]


@pytest.mark.parametrize('tf_config, given, want', [
    ({'service': {'tpu_worker_job_name': 'theirs'}}, None, 'theirs'),
    ({'service': {'tpu_worker_job_name': 'theirs'}}, 'mine', 'mine'),
    ({'service': {}}, None, None), ({}, None, None),
    ({'task': {'type': 'evaluator', 'index': 0}}, None, None)])  # RunConfig refuses that one.
def test_the_job_name_falls_back_to_that_of_tf_config(monkeypatch, tf_config, given, want):
    monkeypatch.setenv('TF_CONFIG', json.dumps(tf_config))
    assert ete.TPUConfig(tpu_job_name=given).tpu_job_name == want


@pytest.mark.parametrize('tf_config, kwargs, want', [
    ({'session_master': 'a', 'eval_session_master': 'b', 'model_dir': '/m'}, {}, ('a', 'b', '/m')),
    ({'session_master': 'a'}, {}, ('a', 'a', None)),
    ({'session_master': 'a', 'eval_session_master': 'b'}, {'master': ''}, ('', 'b', None))])
def test_tf_config_names_masters_and_model_dir_where_the_arguments_do_not(
        monkeypatch, tf_config, kwargs, want):
    monkeypatch.setenv('TF_CONFIG', json.dumps(tf_config))
    config = ete.RunConfig(**kwargs)
    assert (config.master, config.evaluation_master, config.model_dir) == want


def test_the_fields_of_run_config_have_the_defaults_of_the_original():
    config = ete.RunConfig()
    for name, want in {
            'tpu_config': ete.TPUConfig(), 'cluster': None, 'master': '', 'evaluation_master': '',
            'model_dir': None, 'tf_random_seed': None, 'save_summary_steps': 100,
            'save_checkpoints_steps': None, 'save_checkpoints_secs': 600, 'session_config': None,
            'keep_checkpoint_max': 5, 'log_step_count_steps': 100, 'train_distribute': None,
            'eval_distribute': None, 'checkpoint_save_graph_def': True}.items():
        assert getattr(config, name) == want, name
    assert ete.RunConfig(save_checkpoints_steps=9).save_checkpoints_secs is None


@pytest.mark.parametrize('task, evaluation_master', [('chief', 'x'), ('evaluator', '')])
def test_in_a_cluster_sessions_get_no_device_filters_and_an_evaluator_no_master_of_others(
        monkeypatch, task, evaluation_master):
    monkeypatch.setenv('TF_CONFIG', json.dumps({
        'cluster': CLUSTER, 'task': {'type': task, 'index': 0}}))
    config = ete.RunConfig(master='x')
    assert (config.evaluation_master, config.session_config) == (evaluation_master, None)
    assert ete.RunConfig(master='x', evaluation_master='y').evaluation_master == 'y'


@pytest.mark.parametrize('arguments, process, intra_op, wanted', [
    ({}, Kernels(), 0, Kernels('auto', None)),
    ({}, Kernels(), 3, Kernels('auto', 3)),
    ({}, Kernels(), 5000, Kernels('auto', 1024)),
    ({}, Kernels('stock', 2), 3, Kernels('stock', 2)),
    ({'kernels': 'native', 'kernel_threads': 1}, Kernels('stock', 2), 3, Kernels('native', 1)),
    ({'kernel_threads': 1}, Kernels('stock'), 3, Kernels('stock', 1)),
    ({'table_memory': MEMORY}, Kernels('native', 2), 3, Kernels('native', 2, MEMORY))])
def test_kernels_are_those_of_the_job_then_of_the_process_and_threads_also_of_the_session(
        monkeypatch, arguments, process, intra_op, wanted):
    monkeypatch.setattr(defaults, '_current', defaults.Defaults(kernels=process))
    session_config = tf.ConfigProto(intra_op_parallelism_threads=intra_op)
    config = ete.RunConfig(**arguments).replace(tf_random_seed=1)
    assert job_settings.kernels_of(config, session_config) == wanted


@pytest.mark.parametrize('backend', ['emulated', 'tpu', None])
def test_a_backend_that_a_config_states_must_be_that_of_the_process(monkeypatch, backend):
    for of_process in ('emulated', 'tpu'):
        monkeypatch.setattr(defaults, '_current', defaults.Defaults(backend=of_process))
        if backend in (None, of_process):
            assert ete.RunConfig(backend=backend).replace(tf_random_seed=1).tf_random_seed == 1
        else:
            with pytest.raises(ete.ConfigError, match=(
                    f'E940 RunConfig.backend: it must be that of the process, "{of_process}"; '
                    f"got '{backend}'")):
                ete.RunConfig(backend=backend)


SPECS = {'x': tf.TensorSpec([8, 6]), 'y': tf.TensorSpec([8])}


@pytest.mark.parametrize('dims, text', [
    ([{'x': [0, 2], 'y': None}], 'All input partition dims must be >= 1.'),
    ([{'x': [2, 2], 'y': None}], r'The product of each input partition dim should equal to '
     r'num_cores_per_replica. \(dim = \[2, 2\], num_cores_per_replica = 2\)'),
    ([{'x': [2], 'y': None}], r'Input partition dims must have the same number of dimensions as '
     r'the `Tensor` to be partitioned. \(tensor shape = \(8, 6\), input partition dims = \[2\]\)'),
    ([{'x': None}], r"TPUConfig.input_partition_dims\[0\] mismatched feature keys. Expected "
     r"\['x', 'y'\], got \['x'\]"),
    ([[1, 2]], r"input_partition_dims\[0\] mismatched feature keys. .* got \[\]"),
    ([{'x': None, 'y': None}, {'a': None}],
     r"TPUConfig.input_partition_dims\[1\] mismatched label keys. Expected \['z'\], got \['a'\]"),
    ([{'x': None, 'y': None}, {'z': {'b': None}}],
     r'TPUConfig.input_partition_dims\[1\] mismatched the structure of labels'),
    ([{'x': ([1], [2]), 'y': None}], r'must be >= 1. Got \(\[1\], \[2\]\)')])
def test_partition_dims_that_do_not_fit_the_input_get_the_errors_of_the_original(dims, text):
    with pytest.raises(ValueError, match=text):
        check_partitioned_input(dims, 2, SPECS, {'z': {'a': tf.TensorSpec([8])}})
