"""Rows H08, H10, H12 and H23: Ctrl-C, failures of threads, and that nothing is left of a run."""

import os
import signal
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import blocking_job, jobs

from estimator_tpu_embedding.runner import signals_and_deadlines

pytestmark = pytest.mark.serial  # Signals to this process, its threads and sockets.

COLUMNS = blocking_job.COLUMNS


def input_fn_of(generate):
    """Batches of ids that `generate(host)` yields one by one."""
    def input_fn(params):
        host, size = params['context'].current_host, params['batch_size']
        return tf.data.Dataset.from_generator(
            lambda: generate(host), tf.int64, []).batch(size, drop_remainder=True).map(
                lambda ids: ({'f': ids}, tf.ones([size])))
    return input_fn


def estimator(directory, hosts=1, **kwargs):
    return jobs.estimator(jobs.linear_model_fn(COLUMNS), COLUMNS,
                          jobs.run_config(directory, hosts, **kwargs), batch_size=4)


def endless(host):
    while True:
        yield 1


@pytest.fixture
def ctrl_c():
    """Python's own handler: a shell that starts tests in the background has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # It was put back.
    assert signal.set_wakeup_fd(-1) == -1
    signal.signal(signal.SIGINT, before)


def test_h08_ctrl_c_ends_a_training_after_its_step_and_the_next_one_trains(tmp_path, ctrl_c):
    made = estimator(tmp_path, iterations=1)
    with pytest.raises(KeyboardInterrupt):
        made.train(input_fn_of(endless), max_steps=10**6, hooks=[jobs.EveryRun(
            lambda _: ctrl_c())])
    made.train(input_fn_of(endless), max_steps=2)
    assert made.get_variable_value('global_step') == 2


def test_h08_a_second_ctrl_c_ends_the_wait_for_what_does_not_end(tmp_path, ctrl_c, monkeypatch):
    blocker = blocking_job.Blocker(tmp_path)

    def first():
        blocker.blocks.wait()
        ctrl_c()

    def second(text, *values):
        if text.startswith('The end of the run waits for'):
            ctrl_c()

    monkeypatch.setattr(tf.logging, 'warning', second)
    thread = threading.Thread(target=first)
    thread.start()
    with pytest.raises(KeyboardInterrupt):  # Long before ten minutes are over.
        blocking_job.run('train', 'generator', tmp_path / 'job', blocker, deadline=600.,
                         shutdown=600.)
    thread.join()
    blocker.release()


def test_h10_the_first_failure_of_a_thread_is_raised_and_nothing_that_came_of_it(tmp_path):
    blocker = blocking_job.Blocker(tmp_path)

    def generate(host):
        for _ in range(4):  # Batches of a host have two.
            yield 1
        if host:
            blocker.blocks.wait()
            raise OSError('of host 1')
        blocker.wait()  # The step waits for host 0 too when host 1 fails.

    with pytest.raises(tf.errors.OpError, match='of host 1') as caught:
        estimator(tmp_path / 'job', hosts=2, iterations=1).train(
            input_fn_of(generate), max_steps=9)
    assert not isinstance(caught.value, tf.errors.CancelledError)
    assert 'raised by the infeed of host 1 at its batch 3' in caught.value.__notes__
    blocker.release()


class Fails(tf.train.SessionRunHook):
    """A hook that fails in one of its methods."""

    def __init__(self, method):
        def fail(*arguments):
            raise ValueError(f'in {method}')
        setattr(self, method, fail)


@pytest.mark.parametrize('method', [
    'begin', 'after_create_session', 'before_run', 'after_run', 'end'])
@pytest.mark.parametrize('verb', ['train', 'evaluate', 'predict'])
def test_h12_a_failure_anywhere_leaves_no_thread_socket_or_handler(tmp_path, verb, method):
    handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGURG)]
    made, hooks = estimator(tmp_path, hosts=2), [Fails(method)]
    data = input_fn_of(lambda host: iter([1] * 8))
    with pytest.raises(ValueError, match=f'in {method}'):
        if verb == 'train':
            made.train(data, max_steps=4, hooks=hooks)
        elif verb == 'evaluate':
            made.evaluate(data, steps=4, hooks=hooks)
        else:
            list(made.predict(data, hooks=hooks))
    assert handlers == [signal.getsignal(each) for each in (
        signal.SIGTERM, signal.SIGINT, signal.SIGURG)]
    # `nothing_is_leaked` looks for threads and sockets.


def test_h23_training_in_another_thread_works_with_one_warning(tmp_path, monkeypatch):
    warnings = []
    signals_and_deadlines._warn_of_thread.cache_clear()
    monkeypatch.setattr(tf.logging, 'warning', lambda text, *values: warnings.append(
        text % values))
    made = estimator(tmp_path)
    before = signal.getsignal(signal.SIGTERM)

    def train():
        for steps in (2, 4):
            made.train(input_fn_of(endless), max_steps=steps)

    thread = threading.Thread(target=train, name='of-a-user')
    thread.start()
    thread.join()
    assert made.get_variable_value('global_step') == 4
    assert signal.getsignal(signal.SIGTERM) is before
    told = [line for line in warnings if 'W531' in line]
    assert len(told) == 1 and 'a training in thread "of-a-user"' in told[0]
    assert np.isfinite(jobs.stored(
        tmp_path, 'dense_features/f_embedding/embedding_weights')).all()
