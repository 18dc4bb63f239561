"""Workers in real processes: found, claimed, used, given back, and lost."""

import json
import os
import signal
import time

import pytest
import tensorflow.compat.v1 as tf
from harness import workers
from harness.network import require_private_network
from harness.processes import DEADLINE, free_addresses, run_etpe, started
from harness.waiting import until

from estimator_tpu_embedding.cluster import claims, worker_calls
from estimator_tpu_embedding.cluster.cluster import Cluster
from estimator_tpu_embedding.cluster.host_errors import HostUnavailableError
from estimator_tpu_embedding.cluster.local_workers import Children
from estimator_tpu_embedding.cluster.worker_calls import NoAnswerError
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.errors import ConfigError, SetupError
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
        listens = worker_calls.ask(address, 'status', deadline=60)['listens']
        assert [one.rpartition(':')[2] for one in listens] == [port]
    assert all(one in ' '.join(cluster.description()) for one in cluster.addresses())


def test_a_worker_tells_which_tables_it_holds(cluster):
    cluster.tell_tables([[{'name': 'video', 'rows': 11, 'bytes': 44}], []])
    told = [worker_calls.ask(one, 'status', deadline=60)['tables'] for one in cluster.addresses()]
    assert told == [
        [{'name': 'video', 'rows': 11, 'bytes': 44}], []]
    assert [cluster.bytes_of(host) for host in (0, 1)] == [44, 0]
    assert 'host 0 holds 1 table, 44 B' in cluster.description()


def test_the_memory_that_workers_of_a_machine_need_together_is_what_their_tables_keep_resident(
        cluster):
    room = min(worker_calls.ask(one, 'status', deadline=60)['room'] for one in cluster.addresses())
    tables = [[{'name': 'video', 'rows': 2**40, 'bytes': 2**50}]] * 2
    for resident in None, int(.6 * room):
        with pytest.raises(ConfigError, match='E744 .*on one machine'):
            cluster.require_resources(tables, resident=resident)
    cluster.require_resources(tables, resident=int(.4 * room))


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
    held, asked, real = cluster.addresses()[0], [], worker_calls.ask

    def ask(address, verb, **arguments):
        answer = real(address, verb, **arguments)
        asked.append((address, verb, answer['is_ours']))
        return answer

    monkeypatch.setattr(worker_calls, 'ask', ask)
    monkeypatch.setattr(claims, '_RENEWAL', .2)
    with pytest.raises(HostUnavailableError):
        Cluster(ClusterChoice((held, free_addresses(1)[0]), expose=True, connect_deadline=6),
                run='run-1').prepare()
    assert asked[:2] == [(held, 'claim', True), (held, 'renew', True)]


def test_two_addresses_of_one_worker_are_refused_when_it_answers_at_both(cluster):
    one = cluster.addresses()[0]
    other = one.replace('127.0.0.1', 'localhost')  # As two interfaces of a machine.
    with pytest.raises(SetupError, match=f'E703 worker {other} of host 1: .* at {one}, too'):
        claims.opened((one, other), 'run-1', 60., (), print)


def test_what_is_no_worker_says_so_at_once(cluster):
    port = cluster.target.rpartition(':')[2]  # A server of TensorFlow all the same.
    with pytest.raises(SetupError, match='E712 worker 127.0.0.1:'):
        Cluster(ClusterChoice((f'127.0.0.1:{port}',), expose=True)).prepare()


@pytest.mark.parametrize('fields', [{}, {'is_ours': False, 'claim': 'none', 'versions': {}}])
def test_a_worker_that_answers_a_claim_with_other_fields_is_told_as_no_worker(
        cluster, monkeypatch, fields):
    ask = worker_calls.ask
    monkeypatch.setattr(worker_calls, 'ask', lambda address, verb, **arguments: (
        fields if verb == 'claim' else ask(address, verb, **arguments)))
    with pytest.raises(SetupError, match='E712 worker 127.0.0.1:.* to a claim with other fields: '
                                         + ', '.join(fields)):
        claims.opened(cluster.addresses()[:1], cluster.run, 60., (), print)


LEASE = 3


def incarnation(address):
    return worker_calls.ask(address, 'status', deadline=DEADLINE)['incarnation']


def has_begun_anew(address, before):
    """Whether a worker is another incarnation; one that is about to become it may cut calls off."""
    try:
        return incarnation(address) != before
    except NoAnswerError as error:
        assert not error.is_final
        return False


def fill(cluster, host):
    """Returns a session that has 400 MB on a host."""
    with tf.Graph().as_default() as graph, tf.device(device_of(HOST_JOB, host)):
        value = tf.get_variable('v', initializer=lambda: tf.ones([100_000_000]), use_resource=True)
        session = tf.Session(cluster.target, graph=graph, config=cluster.config())
        session.run(value.initializer)
        return session


def used(cluster, host):
    address = cluster.addresses()[host]
    return worker_calls.ask(address, 'status', deadline=DEADLINE)['memory']['used']


def client_of(what):
    """While the body runs, a client has workers of its own, or those at some addresses."""
    require_private_network()
    return started('-m', 'harness.cluster_client', what)


@pytest.fixture
def own():
    require_private_network()
    cluster = Cluster(ClusterChoice(processes=2, expose=True, connect_deadline=DEADLINE))
    cluster.prepare()
    yield cluster
    cluster.close()


@pytest.mark.soak
def test_signals_that_tell_a_client_to_end_leave_its_workers_to_it(own):
    for number in (signal.SIGTERM, signal.SIGINT):
        for pid in own.pids():
            os.kill(pid, number)
    assert [worker_calls.ask(one, 'status', deadline=DEADLINE)['pid']
            for one in own.addresses()] == own.pids()
    own.close()
    assert own.pids() == [] == own.addresses()


@pytest.mark.soak
def test_h05_a_worker_frees_what_a_dead_client_had_when_its_lease_ends():
    with workers.running(1, '--lease', str(LEASE)) as running:
        address, = running.addresses
        with client_of(address) as (client, lines):
            before, = json.loads(next(lines))['incarnations']
            client.kill()
            client.wait()
            until(lambda: has_begun_anew(address, before), 'another incarnation')
        status = worker_calls.ask(address, 'status', deadline=DEADLINE)
        assert status['claim'] is None and status['pid'] == running.processes[0].pid


@pytest.mark.soak
def test_a_run_waits_for_the_lease_of_a_dead_client_to_end():
    with workers.running(1, '--lease', str(LEASE)) as running:
        address, = running.addresses
        assert worker_calls.ask(address, 'claim', run='dead', client='a client', deadline=DEADLINE)[
            'is_ours']
        said = []
        cluster = Cluster(ClusterChoice((address,), expose=True, connect_deadline=DEADLINE),
                          said.append)
        cluster.prepare()
        assert 'claimed by run dead of a client' in said[0] and 'waiting' in said[0]
        cluster.close()


@pytest.mark.soak
def test_after_a_loss_a_foreign_worker_begins_anew_with_all_memory_free():
    with workers.running(2) as running:
        cluster = Cluster(ClusterChoice(tuple(running.addresses), expose=True))
        cluster.prepare()
        empty, before = used(cluster, 1), cluster.incarnations()
        session = fill(cluster, 1)
        assert used(cluster, 1) > empty + 380e6
        cluster.lost(RuntimeError('host 0'))
        cluster.prepare()
        assert not set(before) & set(cluster.incarnations())
        assert used(cluster, 1) < empty + 200e6
        assert [process.poll() for process in running.processes] == [None, None]
        with pytest.raises(tf.errors.OpError):
            session.run('v/Read/ReadVariableOp:0')
        cluster.close()


@pytest.mark.soak
def test_h17_an_older_worker_that_does_not_know_our_claim_is_refused_with_a_table_of_all():
    with workers.running(2, modules={1: 'harness.other_version'}) as running:
        cluster = Cluster(ClusterChoice(tuple(running.addresses), expose=True))
        with pytest.raises(SetupError) as caught:
            cluster.prepare()
        text = str(caught.value)
        assert text.startswith('E709 cluster: all processes must have the same etpe; got \n  this ')
        assert f'\n  {running.addresses[1]}: etpe 0.0.9, TensorFlow {tf.__version__}' in text
        assert f'\n  {running.addresses[0]}: etpe 0' in text


@pytest.mark.soak
@pytest.mark.parametrize('number, status', [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_a_worker_at_once(number, status):
    with workers.running(1) as running:
        running.processes[0].send_signal(number)
        assert running.processes[0].wait(DEADLINE) == status


@pytest.mark.soak
def test_two_runs_after_each_other_have_the_same_workers_without_a_wait_for_a_lease(tmp_path):
    (tmp_path / 'job.py').write_text('print("the script")\n1 / 0\n')
    with workers.running(1, '--lease', '1000000') as running:
        for _ in range(2):
            done = run_etpe('run', '--workers', running, '--expose', tmp_path / 'job.py')
            assert (done.returncode, done.stdout) == (1, 'the script\n')
            assert f'[etpe] 1 worker: host 0 is {running}' in done.stderr
            assert 'ZeroDivisionError' in done.stderr and 'E70' not in done.stderr
        status = worker_calls.ask(str(running), 'status', deadline=DEADLINE)
        assert status['claim'] is None or status['claim']['seconds_left'] == 0


@pytest.mark.soak
def test_own_workers_that_are_not_there_in_time_are_ended_and_told():
    children = Children(2, expose=True)
    with pytest.raises(HostUnavailableError, match='within 0.01 s; got no address') as raised:
        children.start(.01)
    assert [one.code for one in raised.value.problems] == ['E711', 'E711']
    assert raised.value.hosts == (0, 1) and children.pids() == []
