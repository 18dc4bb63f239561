"""Rows H06, H07 and H11: how training ends, by a signal or a failure at the very end."""

import os
import random
import re
import signal
import textwrap
import threading

import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.checkpoints import steps_on_disk
from harness.faults import Ended, Faults, FaultyStorage
from harness.processes import path_with_harness, run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.checkpoint import saver as savers
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.errors import CheckpointWriteError
from estimator_tpu_embedding.runner.run_sessions import SessionLostError

pytestmark = pytest.mark.no_rerun
STEPS = 6


def model_fn(features, labels, mode, params):
    w = tf.get_variable('w', [2], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(features @ w[:, tf.newaxis] - labels))
    train_op = tf.train.GradientDescentOptimizer(.1).minimize(loss, tf.train.get_global_step())
    return ete.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def batches(params):
    return tf.data.Dataset.from_tensors((tf.ones([params['batch_size'], 2]),
                                         tf.ones([params['batch_size'], 1]))).repeat()


def train(directory, hooks=(), use_tpu=True, iterations=1, steps=STEPS, listeners=None, **kwargs):
    ete.TPUEstimator(
        model_fn, config=jobs.run_config(directory, iterations=iterations, **kwargs),
        train_batch_size=4, use_tpu=use_tpu).train(
            batches, max_steps=steps, hooks=list(hooks), saving_listeners=listeners)


ERRORS = {
    'Unavailable': lambda: tf.errors.UnavailableError(None, None, 'as asked'),
    'Aborted': lambda: tf.errors.AbortedError(None, None, 'as asked'),
    'OutOfRange': lambda: tf.errors.OutOfRangeError(None, None, 'as asked'),
    'OSError': lambda: OSError(28, 'as asked')}


class FailsAtEnd(tf.train.SessionRunHook):
    def __init__(self, error):
        self._error = error

    def end(self, session):
        raise self._error


@pytest.mark.parametrize('use_tpu', [True, False])
@pytest.mark.parametrize('error', ERRORS)
def test_h11_a_hook_that_fails_at_the_end_fails_the_training(tmp_path, error, use_tpu):
    with pytest.raises((tf.errors.OpError, OSError, RuntimeError), match='as asked') as caught:
        train(tmp_path, [FailsAtEnd(ERRORS[error]())], use_tpu)
    if use_tpu:  # Nobody may take it for the end of data; a plain Estimator raises what it is.
        assert not isinstance(caught.value, tf.errors.OutOfRangeError)
        assert steps_on_disk(tmp_path) == [0, STEPS]


@pytest.mark.parametrize('save_steps', [100, STEPS])
@pytest.mark.parametrize('error', ERRORS)
def test_h11_a_last_save_that_fails_fails_the_training_and_leaves_the_one_before(
        tmp_path, monkeypatch, error, save_steps):
    save = tf.train.Saver.save

    def fails(self, session, path, global_step=None, **kwargs):
        if global_step == STEPS:
            raise ERRORS[error]()
        return save(self, session, path, global_step=global_step, **kwargs)

    monkeypatch.setattr(tf.train.Saver, 'save', fails)
    with pytest.raises(CheckpointWriteError, match='E621 step 6.*as asked'):
        train(tmp_path, save_checkpoints_steps=save_steps)
    assert steps_on_disk(tmp_path) == [0]
    assert recover(str(tmp_path)).step == 0


class Listener(tf.train.CheckpointSaverListener):
    """Fails after every save from a step on."""

    def __init__(self, error, first):
        self._error, self._first = error, first

    def after_save(self, session, step):
        if step >= self._first:
            raise self._error


@pytest.mark.parametrize('first', [3, STEPS])
@pytest.mark.parametrize('error', ['Unavailable', 'Aborted'])
def test_h11_a_listener_that_always_loses_the_session_ends_the_training(tmp_path, error, first):
    with pytest.raises(SessionLostError, match='E802'):
        train(tmp_path, save_checkpoints_steps=3, listeners=[Listener(ERRORS[error](), first)])
    assert steps_on_disk(tmp_path)[-1] == first  # And no step more than was asked for.


class Asked(tf.train.SessionRunHook):
    """Sends SIGTERM to this process some time after its session began, and counts steps."""

    def __init__(self, delay):
        self._timer = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGTERM])

    def after_create_session(self, session, coord):
        self._timer.start()

    def end(self, session):
        self._timer.join()
        # Not of the last after_run: a loop that is cut while it waits for data has none.
        self.step = session.run(tf.train.get_global_step())


@pytest.mark.soak
@pytest.mark.serial
def test_h06_twenty_preemptions_at_random_times_lose_no_step(tmp_path, survives_sigterm):
    generator, before = random.Random(6), 0
    for iterations in [1, 7] * 10:
        hook = Asked(generator.uniform(0, .15))
        with pytest.raises(Ended):
            train(tmp_path, [hook], iterations=iterations, steps=10**6,
                  save_checkpoints_steps=generator.choice([1, 20, 10**6]))
        found = recover(str(tmp_path))
        assert found.step == hook.step >= before and found.prefix.endswith(f'-{hook.step}')
        assert not found.skipped and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        before = found.step


def test_h06_a_second_sigterm_ends_the_process_at_once_and_leaves_whole_checkpoints(tmp_path):
    job = textwrap.dedent("""
        import os, signal, sys
        os.environ['TF_USE_LEGACY_KERAS'] = '1'
        import tensorflow.compat.v1 as tf
        from faults import ending_test
        from harness import jobs

        def twice(session):
            if session.run(tf.train.get_global_step(session.graph)) == 5:
                for _ in range(2):
                    os.kill(os.getpid(), signal.SIGTERM)

        ending_test.train(sys.argv[1], [jobs.EveryRun(twice)], steps=20, save_checkpoints_steps=2)
        """)
    done = run_python('-c', job, tmp_path, PYTHONPATH=path_with_harness())
    assert done.returncode == -signal.SIGTERM  # 143 for a shell.
    assert recover(str(tmp_path)).step == 4


@pytest.mark.serial
@pytest.mark.parametrize('verb', [
    'make folder', 'create .ete', 'rename .*data', 'create checkpoint', 'remove .*index'])
def test_h07_sigterm_during_a_commit_lets_it_complete(
        tmp_path, monkeypatch, survives_sigterm, verb):
    operations = []

    def before(operation):
        operations.append(operation)
        if re.match(verb, operation) and count('make folder') == 2:  # In the commit of step 2.
            os.kill(os.getpid(), signal.SIGTERM)

    def count(verb):
        return sum(operation.startswith(verb) for operation in operations)

    monkeypatch.setattr(savers, 'Storage', lambda path: FaultyStorage(path, Faults(before=before)))
    with pytest.raises(Ended):
        train(tmp_path, steps=20, save_checkpoints_steps=2, keep_checkpoint_max=1)
    assert count('make folder') == count('rename checkpoint')  # Each that began is complete.
    found = recover(str(tmp_path))
    assert not found.skipped and steps_on_disk(tmp_path) == [found.step] and found.step < 8
    assert not list(tmp_path.glob('.ete-stage*'))


@pytest.mark.serial
def test_h06_a_handler_of_the_user_is_left_alone(tmp_path):
    calls = []
    before = signal.signal(signal.SIGTERM, lambda *_: calls.append(1))
    try:
        train(tmp_path, [jobs.EveryRun(lambda session: os.kill(os.getpid(), signal.SIGTERM))])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert calls == [1] * STEPS and steps_on_disk(tmp_path)[-1] == STEPS
