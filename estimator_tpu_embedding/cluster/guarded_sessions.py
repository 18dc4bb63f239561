"""Watches the sessions of a cluster: their calls end when a worker is lost, whatever else waits.

TensorFlow waits for ever for a worker that stands still. So a second thread makes the call, and the
caller waits for its result or for the news of a loss. The second thread is then left behind.
"""

from __future__ import annotations

import functools
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import Problem, shown
from .host_errors import HostLostError
from .worker_calls import Caller, Reply, remember_thread

_SUSPECT = (
    tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError,
    tf.errors.InternalError, tf.errors.UnknownError, tf.errors.NotFoundError,
    tf.errors.FailedPreconditionError, tf.errors.DeadlineExceededError, tf.errors.DataLossError)
"""What a call may fail with because a worker died, before its heartbeats say so."""

_LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)


class _Second:
    """The second thread of a thread, with which it ends."""

    def __init__(self) -> None:
        self.caller = Caller()

    def __del__(self) -> None:
        self.caller.end()
        remember_thread(self.caller)


_of_thread = threading.local()


class Calls:
    """The calls of the sessions over workers, of one generation of these, until one is lost.

    Attributes:
      loss: the error with which all calls end, once there is one.
    """

    def __init__(self, check: Callable[[], None], give_up: Callable[[HostLostError], None],
                 deadline: Callable[[], float | None] = lambda: None):
        """Begins without calls.

        Args:
          check: returns once every worker was seen alive, or `end` was called.
          give_up: told of an error that makes all sessions useless; it calls `end`.
          deadline: returns the seconds for a call of a thread that is no daemon, or `None` for no
            limit. The daemons are the threads of the input, which wait for steps.
        """
        self._check, self._give_up, self._deadline = check, give_up, deadline
        self._lock = threading.Lock()
        self._waiting: set[Reply] = set()
        self._sessions: weakref.WeakSet[tf.Session] = weakref.WeakSet()
        self.loss: BaseException | None = None

    def guard(self, session: tf.Session) -> None:
        """Lets all calls of a session end once a worker is lost, with the error that says why."""
        _tf.pass_calls_through(session, self.guarded)
        self._sessions.add(session)

    def end(self, loss: BaseException) -> None:
        """Ends all calls, and every later one at once; any thread may do so.

        It leaves the sessions as they are: to close one may take for ever.
        """
        with self._lock:
            self.loss = self.loss or loss
            for reply in self._waiting:
                reply.put((None, self.loss))
            self._waiting.clear()
        for session in self._sessions:
            _tf.leave_session(session)
        self._sessions.clear()

    def guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that does what `call` does, and ends when a worker is lost."""
        def made(*arguments: Any, **named: Any) -> Any:
            if isinstance(threading.current_thread(), Caller):
                return call(*arguments, **named)
            result, error = self._result(functools.partial(call, *arguments, **named))
            if error is not None:
                raise self._better(error)
            return result
        return made

    def _result(self, call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """Returns the result or error of a call that the second thread of this one makes."""
        reply: Reply = queue.SimpleQueue()
        with self._lock:
            if self.loss is not None:
                return None, self.loss
            self._waiting.add(reply)
        second = getattr(_of_thread, 'second', None) or _Second()
        _of_thread.second = None  # It is busy until the result comes: Ctrl-C may end the wait.
        second.caller.submit(call, reply)
        deadline = None if threading.current_thread().daemon else self._deadline()
        try:
            result, error = reply.get(timeout=deadline)
        except queue.Empty:
            result, error = None, self._too_late(deadline)
        if error is None or error is not self.loss:
            _of_thread.second = second
        with self._lock:
            self._waiting.discard(reply)
        return result, error

    def _too_late(self, deadline: float | None) -> BaseException:
        """Gives the sessions up because of a call that takes too long; returns the error."""
        self._check()
        if self.loss is None:
            self._give_up(HostLostError(Problem(
                'E724', 'cluster', 'every call of the session must end within the '
                f'{deadline:g} s of RunConfig(step_deadline_secs=...)',
                'none, though all workers answer',
                'Look whether the workers reach each other. All begin anew with the last '
                'checkpoint.')))
        assert self.loss is not None, 'giving up ends all calls'
        return self.loss

    def _better(self, error: BaseException) -> BaseException:
        """Returns the loss that explains the error of a call, or that error."""
        if not isinstance(error, _SUSPECT) or error is self.loss:
            return error
        self._check()
        if self.loss is not None:
            self.loss.__cause__ = self.loss.__cause__ or error
            return self.loss
        if not isinstance(error, _LOST):
            return error
        lost = HostLostError(Problem(
            'E723', 'cluster', 'every call of the session must be answered', f'all workers answer, '
            f'but a call failed: {shown(error.message, 300)}',
            'All workers begin anew with the last checkpoint.'))
        lost.__cause__ = error
        self._give_up(lost)
        return self.loss or lost
