"""The promises of a cluster, each once and small, with real processes.

`tools/check.py` gives each test a process and a network of its own. The long forms of these tests
are `soak`. No test here says how long anything takes: each waits for what must happen.
"""

import contextlib
import json
import os
import pathlib
import re
import signal

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs, workers
from harness.cluster_losses import AtStep
from harness.network import require_private_network
from harness.processes import DEADLINE, is_gone, started, until_gone
from harness.tasks import Owners, hosted_by

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.cluster import heartbeats, worker_calls
from estimator_tpu_embedding.cluster.cluster import Cluster, current
from estimator_tpu_embedding.cluster.host_errors import HostLostError
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.defaults import Defaults
from estimator_tpu_embedding.errors import SetupError
from estimator_tpu_embedding.hosts.placement import HOST_JOB, device_of

pytestmark = pytest.mark.smoke

ROWS, BATCH, PER_SAVE, STRIKE, UNTIL = 11, 8, 2, 4, 6
PATIENT, SILENCE = 30., 8.
"""Seconds of silence after which a worker is lost: too many for chance, and for the test of it."""


def children():
    """The processes that any thread of this one has started and not waited for."""
    return {int(pid) for path in pathlib.Path('/proc/self/task').glob('*/children')
            for pid in path.read_text().split()}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Runs a test in a private network, takes no worker for lost, and leaves no process."""
    require_private_network()
    monkeypatch.setattr(heartbeats, 'SILENCE', PATIENT)
    before = children()
    yield
    left = children() - before
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def choice_of(**kwargs):
    return ClusterChoice(connect_deadline=DEADLINE, worker_deadline=DEADLINE, **kwargs)


@contextlib.contextmanager
def own_workers():
    """While the body runs, the hosts of jobs are two processes that this one starts."""
    before, choice = defaults.current(), choice_of(processes=2)
    defaults.set_current(Defaults(cluster=choice))
    try:
        yield current(choice)
    finally:
        current(choice).close()
        defaults.set_current(before)


GENERATOR = np.random.default_rng(5)
INPUT = jobs.input_fn_of([
    {'f': GENERATOR.integers(ROWS, size=[BATCH, 2]), 'g': GENERATOR.integers(9, size=[BATCH, 3]),
     'label': GENERATOR.uniform(size=BATCH).astype(np.float32)} for _ in range(PER_SAVE)] * UNTIL)
"""A session that takes the place of another begins with the first batch, which fits each save."""


def estimator_of(directory, hosts=2, strategy='mod', cores=2, **kwargs):
    """A job with two tables, which have two slots each, on so many cores of all hosts."""
    columns = [jobs.embedding('f', ROWS, 4), jobs.embedding('g', 9, 3, 'mean')]
    return jobs.estimator(
        jobs.linear_model_fn(columns), columns, jobs.run_config(
            directory, hosts=hosts, cores=cores // hosts, iterations=1,
            save_checkpoints_steps=PER_SAVE, worker_deadline_secs=DEADLINE, **kwargs),
        batch_size=BATCH, strategy=strategy, optimizer=ete.AdamParameters(.1))


def saved(directory):
    """All variables of the newest checkpoint of a job, tables and slots among them, by name."""
    reader = tf.train.load_checkpoint(recover(str(directory)).prefix)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], name)


def tables_of(variables):
    """The rows and slots among variables."""
    return {name: value for name, value in variables.items() if 'embedding' in name}


class Beginnings(tf.train.SessionRunHook):
    """Remembers what each session begins with.

    Attributes:
      steps: the global step of each.
      tables: rows and slots in the last one.
    """

    def __init__(self):
        self.steps, self.tables = [], {}

    def after_create_session(self, session, coord):
        self.steps.append(int(session.run(tf.train.get_global_step(session.graph))))
        names = {variable.op.name.rpartition('/part_')[0] for variable in
                 session.graph.get_collection('variables') if '/part_' in variable.op.name}
        self.tables = {name: np.concatenate(session.run(jobs.parts_of(session.graph, name)))
                       for name in names}


def in_order(tables, hosts, strategy):
    """Tables as their hosts have them, one after the other, in the order of ids."""
    return {name: rows[jobs.Partition(
        strategy=strategy, vocabulary_size=len(rows), num_hosts=hosts).stored_row(
            np.arange(len(rows)))] for name, rows in tables.items()}


def test_h16_a_claimed_worker_refuses_another_client_and_names_the_one_that_has_it():
    with workers.running(2) as running, \
            started('-m', 'harness.cluster_client', running) as (client, lines):
        before = json.loads(next(lines))
        assert before['addresses'] == running.addresses
        other = Cluster(choice_of(workers=tuple(running.addresses)), run='run-2')
        with pytest.raises(SetupError) as caught:
            other.prepare()
        assert [(one.code, one.where) for one in caught.value.problems] == [
            ('E708', f'worker {address} of host {host}')
            for host, address in enumerate(running.addresses)]
        for problem in caught.value.problems:
            assert re.match(rf'claimed by run \w+ of process {client.pid} on ', problem.got)
        # Nor may the other one reset them: they stay those of their client until it ends.
        for address, incarnation in zip(running.addresses, before['incarnations']):
            answer = worker_calls.ask(address, 'reset', run='run-2', deadline=DEADLINE)
            assert (answer['is_ours'], answer['incarnation']) == (False, incarnation)
        client.stdin.close()
        assert client.wait() == 0
        other.prepare()
        assert other.addresses() == running.addresses
        other.close()


@pytest.mark.no_rerun
def test_a_job_on_two_processes_trains_the_bits_of_the_same_hosts_in_one_process(tmp_path):
    with hosted_by(Owners(2)):
        estimator_of(tmp_path / 'one', cores=4).train(INPUT, max_steps=UNTIL)
    with own_workers() as cluster:
        estimator_of(tmp_path / 'two', cores=4).train(INPUT, max_steps=UNTIL)
        assert len(set(cluster.pids())) == 2
    want = saved(tmp_path / 'one')
    assert want['global_step'] == UNTIL and len(tables_of(want)) == 6
    assert all(values.any() for values in tables_of(want).values())
    assert_same_bits(saved(tmp_path / 'two'), want)


@pytest.mark.no_rerun
def test_h01_a_job_whose_worker_is_killed_goes_on_from_its_checkpoint_and_ends_as_if_it_were_not(
        tmp_path):
    with hosted_by(Owners(2)):
        estimator_of(tmp_path / 'undisturbed').train(INPUT, max_steps=UNTIL)
    killed, beginnings = [], Beginnings()
    with own_workers() as cluster:
        def kill():
            if not killed:
                killed.append(cluster.pids()[1])
                os.kill(killed[0], signal.SIGKILL)

        estimator_of(tmp_path / 'killed').train(
            INPUT, hooks=[AtStep(STRIKE, kill), beginnings], max_steps=UNTIL)
        assert killed and cluster.generation and is_gone(killed[0])
        assert killed[0] not in cluster.pids()
    assert beginnings.steps[:2] == [0, PER_SAVE]
    assert_same_bits(saved(tmp_path / 'killed'), saved(tmp_path / 'undisturbed'))


def test_h03_a_call_over_a_frozen_worker_ends_with_the_error_that_names_it(monkeypatch):
    with workers.running(2) as running:
        cluster = Cluster(choice_of(workers=tuple(running.addresses)))
        cluster.prepare()
        with tf.Graph().as_default() as graph, tf.device(device_of(HOST_JOB, 1)):
            value = tf.get_variable('v', initializer=3., use_resource=True) + 1.
            start = tf.global_variables_initializer()
        session = tf.Session(cluster.target, graph=graph, config=cluster.config())
        cluster.guard(session)
        session.run(start)
        assert session.run(value) == 4. and cluster.loss is None
        monkeypatch.setattr(heartbeats, 'SILENCE', SILENCE)
        running.processes[1].send_signal(signal.SIGSTOP)
        with pytest.raises(HostLostError) as caught:
            session.run(value)
        problem, = caught.value.problems
        assert (problem.code, caught.value.hosts) == ('E721', (1,))
        assert problem.where == f'host 1, worker {running.addresses[1]}'
        assert 'frozen or cut off: no answer for' in str(problem)
        assert cluster.loss is caught.value and cluster.generation == 1
        running.processes[1].send_signal(signal.SIGCONT)  # So that nothing waits for it.
        cluster.close()


@pytest.mark.no_rerun
def test_what_a_cluster_saves_one_process_restores_and_the_other_way_around(tmp_path):
    with workers.running(2) as running:
        cluster, before = choice_of(workers=tuple(running.addresses)), {}
        for step, (choice, hosts, strategy) in enumerate([
                (running.addresses, 2, 'mod'), (None, 1, 'div'), (running.addresses, 2, 'div')], 1):
            beginnings = Beginnings()
            estimator_of(tmp_path, hosts, strategy, workers=choice).train(
                INPUT, hooks=[beginnings], max_steps=step)
            assert beginnings.steps == [step - 1] and len(beginnings.tables) == 6
            if before:
                assert_same_bits(in_order(beginnings.tables, hosts, strategy), before)
            before = in_order(tables_of(saved(tmp_path)), hosts, strategy)
            # It has trained, so the next one begins with rows of its own.
            changed = in_order(beginnings.tables, hosts, strategy)
            assert all((before[name] != changed[name]).any() for name in before)
        current(cluster).close()


def test_h05_the_workers_that_a_client_started_end_when_it_is_killed():
    with started('-m', 'harness.cluster_client', '2') as (client, lines):
        pids = json.loads(next(lines))['pids']
        assert len(pids) == 2 and not any(map(is_gone, pids))
        client.kill()
        client.wait()
        until_gone(pids)
