"""Calls of sessions that end when a worker is lost, in whatever thread they wait."""

import threading

import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.cluster.guarded_sessions import Calls
from estimator_tpu_embedding.cluster.host_errors import HostLostError
from estimator_tpu_embedding.errors import Problem


def loss():
    return HostLostError(Problem('E721', 'host 1', 'it must answer', 'nothing'), hosts=(1,))


class Workers:
    """Stands for heartbeats: counts how often it was asked, and may find a loss then."""

    def __init__(self, found=None, deadline=None):
        self.calls, self.asked, self.given_up = Calls(
            self.check, self.give_up, lambda: deadline), 0, []
        self._found = found

    def check(self):
        self.asked += 1
        if self._found is not None:
            self.calls.end(self._found)

    def give_up(self, error):
        self.given_up.append(error)
        self.calls.end(error)


def raising(error):
    def call():
        raise error
    return call


def test_a_call_has_its_result_and_its_error_and_its_thread_lives_on():
    calls, threads = Workers().calls, set()

    def call(one, more=0):
        threads.add(threading.get_ident())
        return one + more

    guarded = calls.guarded(call)
    assert [guarded(1), guarded(1, more=2)] == [1, 3]
    with pytest.raises(ZeroDivisionError):
        calls.guarded(raising(ZeroDivisionError()))()
    assert guarded(4) == 4
    assert len(threads) == 1 and threading.get_ident() not in threads


def test_a_loss_ends_a_call_that_never_returns_and_every_later_one():
    calls, may_return, has_begun = Workers().calls, threading.Event(), threading.Event()

    def endless():
        has_begun.set()
        may_return.wait()

    def lose():
        has_begun.wait()
        calls.end(first)
        calls.end(loss())

    first = loss()
    threading.Thread(target=lose).start()
    for call in (endless, lambda: 1):
        with pytest.raises(HostLostError) as caught:
            calls.guarded(call)()
        assert caught.value is first
    assert Workers().calls.guarded(lambda: 2)() == 2  # The thread that is stuck is not needed.
    may_return.set()


@pytest.mark.parametrize('kind', [tf.errors.UnavailableError, tf.errors.CancelledError])
def test_an_error_that_a_dead_worker_may_cause_is_explained_by_its_loss(kind):
    workers = Workers(found=loss())
    error = kind(None, None, 'Socket closed')
    with pytest.raises(HostLostError) as caught:
        workers.calls.guarded(raising(error))()
    assert caught.value.hosts == (1,) and caught.value.__cause__ is error and workers.asked == 1


def test_e723_a_broken_connection_gives_all_up_although_every_worker_answers():
    workers = Workers()
    with pytest.raises(HostLostError, match='E723 .*all workers answer.*Socket closed') as caught:
        workers.calls.guarded(raising(tf.errors.UnavailableError(None, None, 'Socket closed')))()
    assert workers.given_up == [caught.value] and caught.value.hosts == ()


def test_an_error_of_the_job_itself_stays():
    workers = Workers()
    for kind, asked in ((tf.errors.OutOfRangeError, 0), (tf.errors.InternalError, 1)):
        with pytest.raises(kind):
            workers.calls.guarded(raising(kind(None, None, 'x')))()
        assert workers.asked == asked
    assert not workers.given_up


@pytest.mark.parametrize('found, code', [(None, 'E724'), (loss(), 'E721')])
def test_h03_a_step_that_never_ends_is_given_up_at_its_deadline_though_all_workers_answer(
        found, code):
    workers, thawed = Workers(found, deadline=.1), threading.Event()
    with pytest.raises(HostLostError) as raised:
        workers.calls.guarded(thawed.wait)()
    assert raised.value.code == code and workers.asked == 1
    assert len(workers.given_up) == (found is None)
    thawed.set()


def test_h03_threads_of_the_input_wait_for_steps_without_a_deadline():
    workers, taken, results = Workers(deadline=.05), threading.Event(), []
    thread = threading.Thread(target=lambda: results.append(
        workers.calls.guarded(taken.wait)()), daemon=True)
    thread.start()
    thread.join(.3)
    assert thread.is_alive() and not workers.given_up
    taken.set()
    thread.join()
    assert results == [True]
