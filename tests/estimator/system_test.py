import re

import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.core.specs import System, Topology
from estimator_tpu_embedding.defaults import Defaults
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.estimator import system
from estimator_tpu_embedding.runner import progress


@pytest.fixture(autouse=True)
def default_put_back(monkeypatch):
    monkeypatch.setattr(defaults, '_current', Defaults())


def set_system(hosts, cores):
    defaults.set_current(Defaults(system=System.sized(hosts, cores)))


def topology(num_shards=None, resolver=None, master=''):
    return system.topology_of(master, resolver, num_shards)


@pytest.mark.parametrize('name', [None, '', 'local'])
def test_the_three_local_names_mean_the_default_system_of_one_core(name):
    assert topology(resolver=ete.TPUClusterResolver(name)) == Topology()
    set_system(2, 4)
    assert topology(resolver=ete.TPUClusterResolver(name)) == Topology(
        num_hosts=2, cores_per_host=4)


def test_a_missing_number_is_one():
    set_system(3, None)
    assert topology() == Topology(num_hosts=3)
    set_system(None, 3)
    assert topology() == Topology(cores_per_host=3)


@pytest.mark.parametrize('shards, hosts, cores', [(1, 1, 1), (4, 1, 4), (8, 1, 8), (16, 2, 8)])
def test_num_shards_sets_a_size_that_nobody_asked_for_and_says_so(
        monkeypatch, shards, hosts, cores):
    lines = []
    monkeypatch.setattr(progress, '_sink', lines.append)
    assert topology(shards) == Topology(num_hosts=hosts, cores_per_host=cores)
    assert len(lines) == (0 if shards == 1 else 1)
    assert all(f'TPUConfig.num_shards={shards} sets the size' in line for line in lines)


def test_num_shards_that_no_tpu_has_asks_for_a_stated_size():
    with pytest.raises(ConfigError, match='E410 TPUConfig.num_shards.*got 12.*--hosts'):
        topology(12)


@pytest.mark.section('3.1')
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


@pytest.mark.parametrize('hosts, cores', [(0, 1), (1, 0), (-1, None), (10**6, 1)])
def test_sizes_out_of_range_are_refused(hosts, cores):
    with pytest.raises(ConfigError, match='E410 topology'):
        set_system(hosts, cores)
    with pytest.raises(ConfigError, match='E410 topology'):
        ete.TPUClusterResolver(hosts=hosts, cores=cores)


def test_every_name_and_address_finds_the_emulated_system_and_says_so(monkeypatch):
    lines = []
    monkeypatch.setattr(progress, '_sink', lines.append)
    for name in ('node-1', 'grpc://10.0.0.1:8470', ['a', 'b']):
        resolver = ete.TPUClusterResolver(name, zone='z', project='p', hosts=2, cores=3)
        assert (resolver.master(), resolver.get_tpu_system_metadata().num_cores) == ('', 6)
    assert lines[0] == "TPUClusterResolver('node-1') finds the emulated system: no TPU is asked"
    assert len(lines) == 3


def test_the_resolver_is_one_of_tensorflows_and_answers_its_questions():
    import tensorflow as tf
    resolver = ete.TPUClusterResolver(hosts=2, cores=4)
    assert isinstance(resolver, tf.distribute.cluster_resolver.ClusterResolver)
    assert (resolver.master(), resolver.get_master(), resolver.environment) == ('', '', '')
    assert resolver.num_accelerators() == {'TPU': 4}
    assert (resolver.get_job_name(), resolver.get_coordination_service_leader()) == (
        'worker', '/job:worker/task:0')


@pytest.mark.parametrize('name', ['node-1', 'grpc://10.0.0.1:8470', '', None])
def test_the_cluster_of_a_resolver_has_a_task_per_host_at_an_address_that_nobody_has(name):
    resolver = ete.TPUClusterResolver(name, hosts=2, cores=4)
    spec = resolver.cluster_spec()
    assert (spec.jobs, spec.num_tasks('worker')) == (['worker'], 2)
    assert spec.as_dict() == {'worker': [
        'host-0.emulated-tpu.invalid:8470', 'host-1.emulated-tpu.invalid:8470']}
    assert spec.job_tasks('worker')[1] == spec.task_address('worker', 1)
    assert spec.num_tasks('worker') == resolver.get_tpu_system_metadata().num_hosts
    assert resolver.num_accelerators() == {'TPU': 4}
    assert resolver.master('worker', 1) == ''  # A session there is one of this process.
    assert spec and spec == resolver.cluster_spec()


def test_the_system_that_install_was_told_of_is_in_the_cluster_too():
    resolver = ete.TPUClusterResolver('node-1')
    assert resolver.cluster_spec().num_tasks('worker') == 1
    set_system(3, 2)
    assert resolver.cluster_spec().num_tasks('worker') == 3


def test_jobs_of_a_cluster_are_called_as_was_asked_and_a_local_one_has_none():
    assert ete.TPUClusterResolver('local', hosts=2).cluster_spec().as_dict() == {}
    assert ete.TPUClusterResolver('node-1', job_name='tpu').cluster_spec().as_dict() == {
        'tpu': ['host-0.emulated-tpu.invalid:8470']}
    for given, address in ((None, 'coordinator.emulated-tpu.invalid:8470'), ('h:1', 'h:1')):
        spec = ete.TPUClusterResolver(
            'node-1', coordinator_name='me', coordinator_address=given).cluster_spec()
        assert (sorted(spec.jobs), spec.job_tasks('me')) == (['me', 'worker'], [address])
