"""What becomes of workers when processes end, freeze, or are of another version."""

import json
import os
import signal

import pytest
import tensorflow.compat.v1 as tf
from harness import workers
from harness.network import require_private_network
from harness.processes import DEADLINE, run_etpe, started, until_gone
from harness.waiting import until

from estimator_tpu_embedding.cluster import control
from estimator_tpu_embedding.cluster.children import Children
from estimator_tpu_embedding.cluster.choice import ClusterChoice
from estimator_tpu_embedding.cluster.cluster import Cluster
from estimator_tpu_embedding.cluster.control import NoAnswerError
from estimator_tpu_embedding.cluster.faults import HostUnavailableError
from estimator_tpu_embedding.errors import SetupError
from estimator_tpu_embedding.hosts.placement import HOST_JOB, device_of

pytestmark = pytest.mark.soak

LEASE = 3


def incarnation(address):
    return control.ask(address, 'status', deadline=DEADLINE)['incarnation']


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
    return cluster.ask(host, 'status', deadline=DEADLINE)['memory']['used']


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


def test_after_a_loss_own_workers_are_other_processes_and_the_old_ones_are_gone(own):
    before = own.pids()
    os.kill(before[1], signal.SIGKILL)
    until(lambda: own.status_of(1) is not None, 'the end of a worker')
    assert (own.status_of(0), own.status_of(1)) == (None, -signal.SIGKILL)
    own.lost(RuntimeError('host 1'), generation=0)
    first = own.loss  # This one, or what a heartbeat found before it.
    own.lost(RuntimeError('host 1 again'))
    assert own.generation == 1 and own.loss is first
    until_gone(before)
    own.prepare()
    assert own.loss is None and not set(own.pids()) & set(before)
    own.lost(RuntimeError('late news of those that are gone'), generation=0)
    assert own.generation == 1 and own.loss is None


def test_signals_that_tell_a_client_to_end_leave_its_workers_to_it(own):
    for number in (signal.SIGTERM, signal.SIGINT):
        for pid in own.pids():
            os.kill(pid, number)
    assert [own.ask(host, 'status', deadline=DEADLINE)['pid'] for host in (0, 1)] == own.pids()
    own.close()
    assert own.pids() == [] == own.addresses()


def test_h05_a_worker_frees_what_a_dead_client_had_when_its_lease_ends():
    with workers.running(1, '--lease', str(LEASE)) as running:
        address, = running.addresses
        with client_of(address) as (client, lines):
            before, = json.loads(next(lines))['incarnations']
            client.kill()
            client.wait()
            until(lambda: has_begun_anew(address, before), 'another incarnation')
        status = control.ask(address, 'status', deadline=DEADLINE)
        assert status['claim'] is None and status['pid'] == running.processes[0].pid


def test_a_run_waits_for_the_lease_of_a_dead_client_to_end():
    with workers.running(1, '--lease', str(LEASE)) as running:
        address, = running.addresses
        assert control.ask(address, 'claim', run='dead', client='a client', deadline=DEADLINE)[
            'is_ours']
        said = []
        cluster = Cluster(ClusterChoice((address,), expose=True, connect_deadline=DEADLINE),
                          said.append)
        cluster.prepare()
        assert 'claimed by run dead of a client' in said[0] and 'waiting' in said[0]
        cluster.close()


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


def test_h04_a_worker_that_was_started_again_is_another_incarnation():
    with workers.running(1) as running:
        cluster = Cluster(ClusterChoice(tuple(running.addresses), expose=True))
        cluster.prepare()
        before, = cluster.incarnations()
        running.kill(0)
        with pytest.raises(NoAnswerError):
            cluster.ask(0, 'status', deadline=1)
        running.start(0)
        running.wait(0)
        answer = cluster.ask(0, 'renew', run=cluster.run, deadline=DEADLINE)
        assert answer['incarnation'] != before and not answer['is_ours']
        cluster.prepare()
        assert cluster.incarnations() == [answer['incarnation']]
        cluster.close()


def test_h17_an_older_worker_that_does_not_know_our_claim_is_refused_with_a_table_of_all():
    with workers.running(2, modules={1: 'harness.other_version'}) as running:
        cluster = Cluster(ClusterChoice(tuple(running.addresses), expose=True))
        with pytest.raises(SetupError) as caught:
            cluster.prepare()
        text = str(caught.value)
        assert text.startswith('E709 cluster: all processes must have the same etpe; got \n  this ')
        assert f'\n  {running.addresses[1]}: etpe 0.0.9, TensorFlow {tf.__version__}' in text
        assert f'\n  {running.addresses[0]}: etpe 0' in text


@pytest.mark.parametrize('number, status', [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_a_worker_at_once(number, status):
    with workers.running(1) as running:
        running.processes[0].send_signal(number)
        assert running.processes[0].wait(DEADLINE) == status


def test_two_runs_after_each_other_have_the_same_workers_without_a_wait_for_a_lease(tmp_path):
    (tmp_path / 'job.py').write_text('print("the script")\n1 / 0\n')
    with workers.running(1, '--lease', '1000000') as running:
        for _ in range(2):
            done = run_etpe('run', '--workers', running, '--expose', tmp_path / 'job.py')
            assert (done.returncode, done.stdout) == (1, 'the script\n')
            assert f'[etpe] 1 worker: host 0 is {running}' in done.stderr
            assert 'ZeroDivisionError' in done.stderr and 'E70' not in done.stderr
        status = control.ask(str(running), 'status', deadline=DEADLINE)
        assert status['claim'] is None or status['claim']['seconds_left'] == 0


def test_a_call_that_a_new_beginning_cuts_off_may_be_made_again():
    with workers.running(1) as running, control.Line(str(running), deadline=DEADLINE) as line:
        before = line.call('claim', run='r', client='c')['incarnation']
        control.ask(str(running), 'reset', run='r', deadline=DEADLINE)
        until(lambda: has_begun_anew(str(running), before), 'another incarnation')
        with pytest.raises(NoAnswerError) as caught:
            line.call('status')
        assert not caught.value.is_final
        assert line.call('status')['incarnation'] != before


def test_own_workers_that_are_not_there_in_time_are_ended_and_told():
    children = Children(2, expose=True)
    with pytest.raises(HostUnavailableError, match='within 0.01 s; got no address') as raised:
        children.start(.01)
    assert [one.code for one in raised.value.problems] == ['E711', 'E711']
    assert raised.value.hosts == (0, 1) and children.pids() == []
