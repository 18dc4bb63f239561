import re

import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.core.specs import System, Topology
from estimator_tpu_embedding.defaults import Defaults
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
    import tensorflow as tf
    resolver = ete.TPUClusterResolver(hosts=2, cores=4)
    assert isinstance(resolver, tf.distribute.cluster_resolver.ClusterResolver)
    assert (resolver.master(), resolver.get_master(), resolver.environment) == ('', '', '')
    assert resolver.num_accelerators() == {'TPU': 4}
    assert (resolver.get_job_name(), resolver.get_coordination_service_leader()) == (
        'worker', '/job:worker/task:0')


def test_the_system_that_install_was_told_of_is_in_the_cluster_too():
    resolver = ete.TPUClusterResolver('node-1')
    assert resolver.cluster_spec().num_tasks('worker') == 1
    set_system(3, 2)
    assert resolver.cluster_spec().num_tasks('worker') == 3
