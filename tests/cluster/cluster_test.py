"""Workers in real processes: found, claimed, used, given back."""

import time

import pytest
import tensorflow.compat.v1 as tf
from harness import workers
from harness.processes import free_addresses

from estimator_tpu_embedding.cluster import control, opening
from estimator_tpu_embedding.cluster.choice import ClusterChoice
from estimator_tpu_embedding.cluster.cluster import Cluster
from estimator_tpu_embedding.cluster.faults import HostLostError, HostUnavailableError
from estimator_tpu_embedding.errors import ConfigError, EteError, Problem, SetupError
from estimator_tpu_embedding.hosts.placement import CLIENT_JOB, HOST_JOB, device_of


@pytest.fixture(scope='module')
def two():
    with workers.running(2) as running:
        yield running


@pytest.fixture(scope='module')
def cluster(two):
    cluster = Cluster(ClusterChoice(tuple(two.addresses), expose=True), run='run-1')
    cluster.prepare()
    yield cluster
    cluster.close()


def sum_of_hosts(cluster):
    """1 of the client, 10 of host 0 and 100 of host 1, kept in a variable on each."""
    with tf.Graph().as_default() as graph:
        values = []
        for device, value in ((device_of(CLIENT_JOB, 0), 1.), (device_of(HOST_JOB, 0), 10.),
                              (device_of(HOST_JOB, 1), 100.)):
            with tf.device(device):
                values.append(tf.get_variable(f'v{value:.0f}', initializer=value,
                                              use_resource=True))
        with tf.device(device_of(CLIENT_JOB, 0)):
            total = tf.add_n([value + 0 for value in values])
        with tf.device(values[1].device):
            add = values[1].assign_add(1000.)
        start = tf.global_variables_initializer()
    session = tf.Session(cluster.target, graph=graph, config=cluster.config(
        tf.ConfigProto(allow_soft_placement=True)))
    session.run(start)
    return session, total, add


def test_sessions_over_the_client_and_its_workers_have_state_of_their_own(cluster):
    one, total, add = sum_of_hosts(cluster)
    other, total_of_other, _ = sum_of_hosts(cluster)
    with one, other:
        one.run(add)
        assert one.run(total) == 1111. and other.run(total_of_other) == 111.


def test_the_config_of_a_session_keeps_the_settings_of_the_user(cluster):
    given = tf.ConfigProto(allow_soft_placement=True, device_filters=['/job:elsewhere'])
    config = cluster.config(given)
    assert config.allow_soft_placement and config.isolate_session_state
    assert [job.name for job in config.cluster_def.job] == [CLIENT_JOB, HOST_JOB]
    assert dict(config.cluster_def.job[1].tasks) == dict(enumerate(cluster.addresses()))
    assert not config.device_filters and given.device_filters  # A filter would hide workers.


def test_h13_a_worker_says_what_it_really_listens_on_and_so_does_its_client(cluster):
    for address in cluster.addresses():
        port = address.rpartition(':')[2]
        listens = control.ask(address, 'status', deadline=60)['listens']
        assert [one.rpartition(':')[2] for one in listens] == [port]
    assert all(one in ' '.join(cluster.description()) for one in cluster.addresses())


def test_a_worker_tells_which_tables_it_holds(cluster):
    cluster.tell_tables([[{'name': 'video', 'rows': 11, 'bytes': 44}], []])
    assert [cluster.ask(host, 'status', deadline=60)['tables'] for host in (0, 1)] == [
        [{'name': 'video', 'rows': 11, 'bytes': 44}], []]
    assert [cluster.bytes_of(host) for host in (0, 1)] == [44, 0]
    assert 'host 0 holds 1 table, 44 B' in cluster.description()


def test_h02_nobody_at_an_address_is_an_error_at_the_deadline_that_lists_who_answered(two):
    nobody, = free_addresses(1)
    began = time.monotonic()
    with pytest.raises(HostUnavailableError) as caught:
        # Of the same run, so that its worker stays claimed by it.
        Cluster(ClusterChoice((nobody,), expose=True, connect_deadline=1.5)).prepare()
    assert time.monotonic() - began >= 1.5
    assert caught.value.code == 'E707' and caught.value.hosts == (0,)
    assert nobody in str(caught.value) and 'Workers that answered: none.' in str(caught.value)
    assert not isinstance(caught.value, tf.errors.UnavailableError)  # It would be tried again.


@pytest.mark.soak
def test_workers_that_answered_stay_claimed_while_another_is_awaited(cluster, monkeypatch):
    held, asked, real = cluster.addresses()[0], [], control.ask

    def ask(address, verb, **arguments):
        answer = real(address, verb, **arguments)
        asked.append((address, verb, answer['is_ours']))
        return answer

    monkeypatch.setattr(control, 'ask', ask)
    monkeypatch.setattr(opening, '_RENEWAL', .2)
    with pytest.raises(HostUnavailableError):
        Cluster(ClusterChoice((held, free_addresses(1)[0]), expose=True, connect_deadline=6),
                run='run-1').prepare()
    assert asked[:2] == [(held, 'claim', True), (held, 'renew', True)]


def test_two_addresses_of_one_worker_are_refused_when_it_answers_at_both(cluster):
    one = cluster.addresses()[0]
    other = one.replace('127.0.0.1', 'localhost')  # As two interfaces of a machine.
    with pytest.raises(SetupError, match=f'E703 worker {other} of host 1: .* at {one}, too'):
        opening.opened((one, other), 'run-1', 60., (), print)


def test_what_is_no_worker_says_so_at_once(cluster):
    port = cluster.target.rpartition(':')[2]  # A server of TensorFlow all the same.
    with pytest.raises(SetupError, match='E712 worker 127.0.0.1:'):
        Cluster(ClusterChoice((f'127.0.0.1:{port}',), expose=True)).prepare()


def test_h15_nobody_is_contacted_if_an_address_is_wrong(cluster):
    with pytest.raises(ConfigError, match='E703 worker 1.*\n*E702 worker 2'):
        Cluster(ClusterChoice((*cluster.addresses()[:1] * 2, 'x')))


def test_a_loss_is_of_the_class_after_which_a_session_is_made_again():
    error = HostLostError(Problem('E707', 'host 1', 'it must answer'), hosts=(1,))
    assert isinstance(error, (tf.errors.UnavailableError, EteError)) and error.hosts == (1,)
    assert str(error) == error.message == 'E707 host 1: it must answer.'
    assert isinstance(error, EteError) and isinstance(error, HostUnavailableError)
