"""Calls a worker: each call is one string there and one back, through a graph of TensorFlow.

A call has a session of its own at the worker. That session sees nothing of any job, and no job
sees it. A thread that comes out of TensorFlow while Python ends would abort the process. So the
threads that may wait for a silent worker are awaited at the end of the process.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import queue
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import shown
from ..hosts.placement import device_of
from ..proto import files
from .addresses import checked
from .server import BOOT_JOB, Target, avoid_proxies
from .worker import TOKEN

_Found = TypeVar('_Found')
_begun: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_lock = threading.RLock()  # A thread is remembered while the garbage collector runs, too.
_MOST_VALUES = 100_000
_FORGOTTEN = (tf.errors.AbortedError, tf.errors.CancelledError, tf.errors.NotFoundError)
"""What a call ends with if the process begins anew meanwhile: nobody there knows its session."""

_GRACE = 1.0
"""Seconds that TensorFlow gets beyond a deadline to notice it by itself."""

Reply = queue.SimpleQueue[tuple[Any, BaseException | None]]


class Caller(threading.Thread):
    """A thread that makes the calls of another one, one after another; it ends with the process."""

    def __init__(self) -> None:
        super().__init__(name=f'{threading.current_thread().name}-calls', daemon=True)
        self._calls: queue.SimpleQueue[
            tuple[Callable[[], Any], Reply] | None] = queue.SimpleQueue()
        self.start()

    def submit(self, call: Callable[[], Any], reply: Reply) -> None:
        """Makes a call when those before are over; puts its result, or its error, into `reply`."""
        self._calls.put((call, reply))

    def result(self, call: Callable[[], _Found], timeout: float | None = None) -> _Found:
        """Makes a call, and returns its result or raises its error; `queue.Empty` if it is late."""
        reply: Reply = queue.SimpleQueue()
        self.submit(call, reply)
        found, error = reply.get(timeout=timeout)
        if error is not None:
            raise error
        return found

    def end(self) -> None:
        """Ends the thread after the calls that it has."""
        self._calls.put(None)

    def run(self) -> None:
        """Makes the calls."""
        while (work := self._calls.get()) is not None:
            call, reply = work
            try:
                reply.put((call(), None))
            except BaseException as error:  # The first thread raises it.
                reply.put((None, error))
            del work, call, reply  # Nothing lives on while there is no call.


class NoAnswerError(Exception):
    """A call that got no answer; its text says why. A caller turns it into an error for users.

    Attributes:
      is_final: whether somebody else answered there, so that waiting does not help.
    """

    def __init__(self, why: str, is_final: bool = False):
        super().__init__(why)
        self.is_final = is_final


class Line:
    """A session at one worker for many calls, which are answered one after the other.

    >>> with Line('127.0.0.1:1', deadline=.1) as line:
    ...     line.call('status')
    Traceback (most recent call last):
    estimator_tpu_embedding.cluster.worker_calls.NoAnswerError: no answer within 0.1 s
    """

    def __init__(self, address: str, *, deadline: float):
        """Contacts nobody yet."""
        avoid_proxies([checked(address).host])
        self._deadline = deadline
        self._graph = tf.Graph()
        with self._graph.as_default(), tf.device(device_of(BOOT_JOB, 0)):
            self._request = tf.placeholder(tf.string, [])
            self._answer = tf.raw_ops.PyFunc(
                input=[self._request], token=TOKEN, Tout=[tf.string])[0]
        self._target = Target(f'grpc://{address}')
        self._session: tf.Session | None = None

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def call(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Returns the answer of the worker.

        Raises:
          NoAnswerError: if there is none within the deadline, or it is an error.
        """
        request = json.dumps({'verb': verb, 'arguments': arguments})
        try:
            if self._session is None:
                self._session = tf.Session(self._target, graph=self._graph, config=tf.ConfigProto(
                    operation_timeout_in_ms=max(int(self._deadline * 1000), 1),
                    isolate_session_state=True))
            text = self._session.run(self._answer, {self._request: request})
            answer = files.json_object(bytearray(text), _MOST_VALUES)
            json.dumps(answer, allow_nan=False)  # No worker answers with NaN.
        except tf.errors.DeadlineExceededError:
            raise NoAnswerError(f'no answer within {self._deadline:.3g} s') from None
        except tf.errors.UnavailableError as error:
            raise NoAnswerError(_first_line(error)) from error
        except (tf.errors.OpError, ValueError, RecursionError) as error:
            if isinstance(error, _FORGOTTEN):
                self.leave()  # Another session will find the new process.
                raise NoAnswerError(_first_line(error)) from error
            raise NoAnswerError('what answers there is no worker of this package: '
                                f'{_first_line(error)}', is_final=True) from error
        if 'error' in answer:
            raise NoAnswerError(f'the worker refused: {shown(answer["error"], 300)}',
                                is_final=True)
        return answer

    def beat(self) -> None:
        """Returns once the worker answers. It does so even while steps occupy all its threads.

        A call must have been answered before.

        Raises:
          NoAnswerError: if there is no answer within the deadline. It is final if the process has
            begun anew since the last one.
        """
        assert self._session is not None
        try:
            _tf.ask_nothing(self._session)
        except tf.errors.InvalidArgumentError:
            return  # This is the answer.
        except tf.errors.OpError as error:
            raise NoAnswerError(_first_line(error), is_final=isinstance(
                error, tf.errors.AbortedError)) from error

    def leave(self) -> None:
        """Forgets the session, which the worker then keeps."""
        if self._session is not None:
            _tf.leave_session(self._session)
            self._session = None

    def close(self) -> None:
        """Closes the session; while the worker is silent this takes as long as a call."""
        if self._session is not None:
            session, self._session = self._session, None
            with contextlib.suppress(tf.errors.OpError):
                session.close()


def ask(address: str, verb: str, *, deadline: float, **arguments: Any) -> dict[str, Any]:
    """Calls a verb of `worker.Worker` once; gives up at the deadline, whatever TensorFlow does.

    Raises:
      NoAnswerError: if there is no answer, or it is an error.
    """
    def work() -> dict[str, Any]:
        with Line(address, deadline=deadline) as line:
            return line.call(verb, **arguments)

    # TensorFlow may wait for ever while a peer is silent. Then this thread is left behind.
    caller = Caller()
    remember_thread(caller)
    try:
        return caller.result(work, deadline + _GRACE)
    except queue.Empty:
        raise NoAnswerError(f'no answer within {deadline:.3g} s') from None
    finally:
        caller.end()


def for_all(given: Sequence[str], work: Callable[[int, str], _Found]) -> list[_Found]:
    """Returns what a function finds about each host and address, at the same time, in order."""
    with concurrent.futures.ThreadPoolExecutor(max(len(given), 1), 'ask-all') as pool:
        return list(pool.map(work, range(len(given)), given))


def begin_thread(work: Callable[..., None], name: str, *arguments: Any) -> threading.Thread:
    """Starts a thread that ends by itself, unless some worker is silent for ever."""
    thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
    thread.start()
    remember_thread(thread)
    return thread


def remember_thread(thread: threading.Thread) -> None:
    """Lets `await_threads` wait for a thread, too."""
    with _lock:
        _begun.add(thread)


def await_threads(seconds: float) -> None:
    """Waits for the threads that were begun or remembered, so long at most."""
    end = time.monotonic() + seconds
    with _lock:
        alive = [thread for thread in _begun if thread is not threading.current_thread()]
    for thread in alive:
        thread.join(max(end - time.monotonic(), 0))


def _first_line(error: Exception) -> str:
    """Returns the part of an error of TensorFlow that says what happened."""
    text = error.message if isinstance(error, tf.errors.OpError) else str(error)
    lines = [line for line in str(text).splitlines()
             if line.strip() and line != 'Graph execution error:']
    return shown(lines[0] if lines else type(error).__name__, 300)
