"""Row H09: an input that never comes, in every form, is said when it is, and ends in time."""

import os
import re
import signal
import threading
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import blocking_job, jobs
from harness.faults import Ended
from harness.parts import soak_except
from harness.processes import started

from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.errors import InputPipelineError
from estimator_tpu_embedding.runner import infeed_threads, progress
from estimator_tpu_embedding.runner.infeed_threads import FeedProgress
from estimator_tpu_embedding.runner.root_cause import Failures

pytestmark = pytest.mark.serial  # Signals to this process.


@pytest.fixture
def blocker(tmp_path):
    one = blocking_job.Blocker(tmp_path)
    yield one
    one.release()


@pytest.fixture
def logged(monkeypatch):
    """(level, text) of what is logged, in order."""
    lines = []
    for level in ('error', 'warning'):
        monkeypatch.setattr(tf.logging, level, lambda text, *values, level=level: lines.append(
            (level, text % values)))
    return lines


@pytest.mark.parametrize('verb, form', soak_except([
    ('train', 'pipe'), ('evaluate', 'call'), ('predict', 'function'),
    ('train_and_evaluate', 'start')], 0, 1))
def test_h09_input_that_blocks_is_an_error_at_the_deadline(
        tmp_path, blocker, logged, monkeypatch, verb, form):
    reads_pipe = threading.Event()  # Nobody can see when TensorFlow itself begins to wait.
    hook = jobs.EveryRun(lambda _: hook.runs == 2 and reads_pipe.set())
    blocking_job.Clock(monkeypatch, reads_pipe if form == 'pipe' else blocker.blocks)
    with pytest.raises(InputPipelineError, match='E522 input of host 0: .*got nothing for') as (
            caught):  # A call has no clock that can be set; it blocks at its beginning.
        blocking_job.run(verb, form, tmp_path / 'job', blocker, hooks=[hook],
                         deadline=3. if form == 'call' else 600.)
    notes = '\n'.join(caught.value.__notes__)
    if form == 'pipe':  # It waits in C++, which has no stack to show.
        assert 'thread infeed-0:' in notes
    else:
        assert re.search(r'blocking_job.py", line \d+, in wait\n', notes)
    errors = [number for number, (level, text) in enumerate(logged) if level == 'error']
    assert len(errors) == 1 and logged[errors[0]][1].startswith('E522 input of host 0')
    assert 'thread MainThread:' in logged[errors[0]][1]
    left = [number for number, (_, text) in enumerate(logged) if 'left behind' in text]
    # Said when it happens, not when all waits of the end are over.
    # Behind a call that blocks no session is left, and TensorFlow may not wait for the pipe yet.
    assert (left or form in ('call', 'pipe')) and all(number > errors[0] for number in left)


def test_h09_every_minute_a_line_names_the_hosts_and_at_the_deadline_they_are_one_error(
        logged, monkeypatch):
    blocks, report, failures = threading.Event(), progress.RunReport('train', 4), Failures()
    blocking_job.Clock(monkeypatch, blocks, 60.)
    closed = []
    hosts = FeedProgress([types.SimpleNamespace(name=f'host {number}') for number in range(2)],
                         failures, report, lambda: closed.append(1))
    report.steps = 2
    for host in hosts.hosts:
        host.has_begun, host.produced, host.idle_since = True, 2, 0.
        host.thread = threading.current_thread()  # It runs, and makes no batch.
    hosts.request(1, 0)
    monkeypatch.setattr(hosts, 'await_change', lambda seconds: blocks.set())
    infeed_threads.watch(hosts, 180., 0)
    lines = [line for level, line in logged if level == 'warning']
    assert lines == [f'Step 3 waits for input: host 0 and host 1 has produced nothing for {one} s.'
                     for one in (60, 120)]
    error = failures.root_cause()
    assert str(error).startswith('E522 input of host 0') and '180 s' in str(error) and closed
    assert error.__notes__[-1].startswith(
        'then the infeed of host 1 failed: E522 input of host 1')


@pytest.mark.parametrize('verb, form, hosts', soak_except([
    ('train', 'generator', 2), ('train', 'start', 1), ('train_and_evaluate', 'call', 1)], 0))
def test_h09_sigterm_ends_a_wait_for_input_and_saves_what_was_trained(
        tmp_path, blocker, survives_sigterm, verb, form, hosts):
    # Two batches were trained with; an evaluation comes first after step 10.
    step = {'start': 0}.get(form, 2) if verb == 'train' else 10
    is_trained = threading.Semaphore(0)

    def kill():
        for _ in range(step if verb == 'train' else 0):
            is_trained.acquire()
        blocker.blocks.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(Ended):  # Long before the deadlines: pytest would give up first.
        blocking_job.run(verb, form, tmp_path / 'job', blocker, hosts=hosts, deadline=600.,
                         shutdown=600., hooks=[jobs.EveryRun(lambda _: is_trained.release())])
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL
    assert recover(str(tmp_path / 'job')).step == step


def test_h09_a_process_that_waits_for_input_dies_of_sigterm(tmp_path):
    with started('-m', 'harness.blocking_job', 'generator', 'train', tmp_path / 'job', 2) as (
            process, lines):
        assert next(lines) == 'blocked'
        process.terminate()
        assert process.wait(240) == -signal.SIGTERM
    assert recover(str(tmp_path / 'job')).step <= 2


def test_h09_sigurg_of_somebody_else_does_nothing_to_an_input_that_returns(tmp_path, blocker):
    def input_fn(params):
        os.kill(os.getpid(), signal.SIGURG)
        return blocker.input_fn(None)(params)

    columns = blocking_job.COLUMNS
    jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
        tmp_path / 'job', save_checkpoints_steps=10), batch_size=4).train(input_fn, max_steps=2)
    assert recover(str(tmp_path / 'job')).step == 2


def test_h06_sigterm_saves_a_training_beside_which_another_thread_is_in_an_input_fn(
        tmp_path, blocker, survives_sigterm):
    columns = blocking_job.COLUMNS
    made = jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
        tmp_path / 'job', iterations=1), batch_size=4)
    made.train(blocker.input_fn(None), max_steps=1)

    def evaluate():
        with pytest.raises(ValueError, match='released'):
            made.evaluate(blocker.input_fn('call'), steps=1)

    beside, ended = threading.Thread(target=evaluate), []

    def terminate(session):
        if not ended:
            beside.start()
            blocker.blocks.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            ended.append(session.run(tf.train.get_global_step(session.graph)))

    with pytest.raises(Ended):
        made.train(blocker.input_fn(None), max_steps=9, hooks=[jobs.EveryRun(terminate)])
    blocker.release()
    beside.join()
    assert recover(str(tmp_path / 'job')).step >= ended[0] == 2


def test_h06_an_evaluation_that_does_not_wait_is_made_whole_before_sigterm_ends_its_training(
        tmp_path, survives_sigterm):
    columns, reports = blocking_job.COLUMNS, len(progress.reports())
    made = jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(
        tmp_path / 'job', iterations=1), batch_size=4)

    def batches():
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            yield {'f': np.ones(4, np.int64)}, np.ones(4, np.float32)

    def evaluate(session):
        if len(progress.reports()) == reports:  # A second signal would end this process.
            made.evaluate(lambda params: tf.data.Dataset.from_generator(
                batches, ({'f': tf.int64}, tf.float32), ({'f': [4]}, [4])), steps=6)

    with pytest.raises(Ended):
        made.train(blocking_job.Blocker(tmp_path).input_fn(None), max_steps=9,
                   hooks=[jobs.EveryRun(evaluate)])
    evaluated, trained = progress.reports()[reports:]  # In the order in which they ended.
    assert (evaluated.verb, evaluated.steps, trained.verb) == ('evaluate', 6, 'train')
    assert 1 <= trained.steps <= 2 and recover(str(tmp_path / 'job')).step == trained.steps
