"""Ends a run by signals: by Ctrl-C at once, by SIGTERM after the current step.

Python runs its handlers of signals only between calls of TensorFlow's C++. A step is one long
call, so a thread waits for Ctrl-C.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import tensorflow.compat.v1 as tf

from ..errors import Problem

_AGAIN = .2
"""Seconds until a call that SIGTERM is to end is woken again."""


@contextlib.contextmanager
def woken_by_interrupt(wake: Callable[[], None]) -> Iterator[None]:
    """Calls `wake` from another thread as soon as SIGINT arrives.

    `wake` ends the wait of the main thread. Any error that follows there becomes a
    `KeyboardInterrupt`. Nothing happens if the user has another handler for the signal, or outside
    of the main thread, where Python has no signals.
    """
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
        yield
        return
    has_come = threading.Event()
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        while (number := _received(receiver)) != b'':
            if number == bytes([signal.SIGINT]):
                has_come.set()
                wake()
            elif number in (None, bytes([signal.SIGTERM])):
                receiver.settimeout(_AGAIN if Termination.wake_calls() else None)

    thread = threading.Thread(target=watch, name='infeed-interrupt', daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        if has_come.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.set_wakeup_fd(before)
        sender.close()  # Ends the thread.
        thread.join()
        receiver.close()


def _received(receiver: socket.socket) -> bytes | None:
    """Returns the number of a signal; nothing at the end, and `None` when it is time to wake again.

    A thread that was just about to wait when it was woken waits all the same.
    """
    try:
        return receiver.recv(1)
    except TimeoutError:
        return None


class Terminated(BaseException):
    """Ends a call or an evaluation inside of a training that SIGTERM has asked to end.

    The training ends with it. Like `KeyboardInterrupt` it is no `Exception`, which hooks of users
    may catch.
    """


class Termination:
    """Whether the process was asked to end by SIGTERM, as preempted machines are."""

    _awaited: Termination | None = None
    _calls: list[Callable[[], None]] = []

    def __init__(self) -> None:
        self._is_asked = False

    @staticmethod
    def of_process() -> Termination:
        """Returns the one of the training that is under way, or a new one if there is none."""
        return Termination._awaited or Termination()

    def is_asked(self) -> bool:
        """Returns whether SIGTERM has come, so that the run should end after its step."""
        return self._is_asked

    @contextlib.contextmanager
    def awaited(self) -> Iterator[None]:
        """While the body runs, SIGTERM only asks for its end; then the process ends by it.

        A second signal ends the process at once. An error of the body is raised instead of the
        signal. Nothing happens if the user has a handler for the signal, or outside of the main
        thread.

        Raises:
          Terminated: inside of another such body, to end that one too.
        """
        if self is Termination._awaited:
            yield
            self.proceed()
            return
        if threading.current_thread() is not threading.main_thread():
            _warn_of_thread()
            yield
            return
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            yield
            return

        def ask(number: int, frame: object) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._is_asked = True
            if Termination._calls:
                raise Terminated

        signal.signal(signal.SIGTERM, ask)
        Termination._awaited = self
        try:
            with contextlib.suppress(Terminated):
                yield
        finally:
            Termination._awaited = None
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self._is_asked:
            tf.logging.warning('SIGTERM: the training ended after a step; now the process ends.')
            signal.raise_signal(signal.SIGTERM)

    def proceed(self) -> None:
        """Returns unless SIGTERM has come; called where a run cannot end by itself.

        Raises:
          Terminated: if SIGTERM has come.
        """
        if self._is_asked:
            raise Terminated

    @staticmethod
    @contextlib.contextmanager
    def ends_call(wake: Callable[[], None]) -> Iterator[None]:
        """Lets SIGTERM end the body, a call of a user's function, by a `Terminated`.

        That error is raised in the main thread, so a body in another thread is left alone.
        Otherwise it would end a training of the main thread amid a step, unsaved.

        Args:
          wake: interrupts a wait of the body. Python looks for signals before a wait. A signal
            that comes just after that, or in another thread, does not end the wait.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        Termination._calls.append(wake)
        try:
            yield
        finally:
            Termination._calls.remove(wake)

    @staticmethod
    def wake_calls() -> bool:
        """Lets the main thread see that SIGTERM has come; called from another thread.

        Returns:
          Whether there is a call to be ended.
        """
        calls = list(Termination._calls)
        for wake in calls:
            wake()
        return bool(calls)


@functools.cache  # Once per process.
def _warn_of_thread() -> None:
    tf.logging.warning('%s', Problem(
        'W531', 'train', 'signals reach only what runs in the main thread',
        f'a training in thread "{threading.current_thread().name}"', 'It works, but SIGTERM does '
        'not save it before the process ends, and Ctrl-C does not end it.'))
