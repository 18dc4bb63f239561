"""Which workers a job has, and how many hosts and cores that makes."""

import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.core.specs import System, Topology
from estimator_tpu_embedding.defaults import Defaults
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.estimator import tpu_addresses
from estimator_tpu_embedding.estimator.tpu_config import without_addresses
from estimator_tpu_embedding.estimator.tpu_context import topology_of

TWO = ('127.0.0.1:1', '127.0.0.1:2')


@pytest.fixture(autouse=True)
def put_back(monkeypatch):
    monkeypatch.setattr(defaults, '_current', Defaults())


def test_workers_of_a_config_come_before_those_of_the_process():
    defaults.set_current(Defaults(cluster=ClusterChoice(processes=3, expose=True)))
    assert tpu_addresses.choice_of(ete.RunConfig(worker_deadline_secs=5)) == ClusterChoice(
        processes=3, expose=True, worker_deadline=5)
    assert tpu_addresses.choice_of(ete.RunConfig(workers=','.join(TWO))) == ClusterChoice(
        TWO, expose=True)
    assert tpu_addresses.cluster_of(ete.RunConfig(workers=TWO)).num_hosts == 2


@pytest.mark.parametrize('config', [
    lambda: ete.RunConfig(master=f'grpc://{TWO[0]},grpc://{TWO[1]}'),
    lambda: ete.RunConfig(cluster=ete.TPUClusterResolver(','.join(TWO))),
    lambda: without_addresses(ete.RunConfig(master=','.join(TWO)))])
def test_addresses_of_a_script_are_workers_only_if_that_is_asked_for(config):
    assert not tpu_addresses.choice_of(config()).is_used
    defaults.set_current(Defaults(cluster=ClusterChoice.of('from-script')))
    assert tpu_addresses.choice_of(config()) == ClusterChoice(TWO)


@pytest.mark.parametrize('config', [
    lambda: ete.RunConfig(), lambda: ete.RunConfig(master='node-1'),
    lambda: ete.RunConfig(cluster=ete.TPUClusterResolver('node-1'))])
def test_a_script_without_addresses_has_none_to_take(config):
    defaults.set_current(Defaults(cluster=ClusterChoice.of('from-script')))
    with pytest.raises(ConfigError, match='E713 cluster: the script must give its TPU as addr'):
        tpu_addresses.choice_of(config())


@pytest.mark.parametrize('system, shards, hosts, cores', [
    (System(), None, 2, 1), (System(), 8, 2, 4), (System.sized(None, 3), None, 2, 3),
    (System.sized(2, 4), 8, 2, 4)])
def test_each_worker_is_a_host_and_cores_are_those_that_somebody_stated(
        system, shards, hosts, cores):
    defaults.set_current(Defaults(system=system))
    assert topology_of('', None, shards, choice=ClusterChoice(TWO)) == Topology(
        num_hosts=hosts, cores_per_host=cores)


def test_shards_that_workers_cannot_share_are_an_error():
    with pytest.raises(ValueError, match=r'should be \(2\), got \(3\)'):
        topology_of('', None, 3, choice=ClusterChoice(TWO))
