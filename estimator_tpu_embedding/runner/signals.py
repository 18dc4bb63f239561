"""Signals that end a run: Ctrl-C at once, SIGTERM after the step that is under way.

Python runs its handlers only when TensorFlow's C++ returns, so Ctrl-C needs a thread.
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


@contextlib.contextmanager
def woken_by_interrupt(wake: Callable[[], None]) -> Iterator[None]:
    """Calls `wake` from another thread as soon as SIGINT arrives.

    `wake` ends what the main thread waits for; whatever error that makes there, the body ends
    with `KeyboardInterrupt`. Where a user has another handler for the signal, or outside of the
    main thread, where Python has no signals, nothing happens.
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
        while number := receiver.recv(1):
            if number[0] == signal.SIGINT:
                has_come.set()
                wake()
            elif number[0] == signal.SIGTERM:
                Termination.wake_calls()

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


class Terminated(BaseException):
    """Ends what runs inside of a training that SIGTERM has asked to end; the training ends with it.

    Like `KeyboardInterrupt` it is no `Exception`, which hooks of users may catch.
    """


class Termination:
    """Whether the process was asked to end by SIGTERM, as preempted machines are."""

    _awaited: Termination | None = None
    _calls: list[Callable[[], None]] = []

    def __init__(self) -> None:
        self._is_asked = False

    @staticmethod
    def of_process() -> Termination:
        """That of the training inside of which something runs, else a new one."""
        return Termination._awaited or Termination()

    def is_asked(self) -> bool:
        """Whether the run is to end after its step."""
        return self._is_asked

    @contextlib.contextmanager
    def awaited(self) -> Iterator[None]:
        """While the body runs, SIGTERM only asks for its end; the process dies of it then.

        A second signal ends the process at once. An error of the body is raised instead. Where
        a user has a handler for the signal, or outside of the main thread, nothing happens.

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
        """Ends what cannot end by itself, if SIGTERM has come: it goes on otherwise.

        Raises:
          Terminated: if so.
        """
        if self._is_asked:
            raise Terminated

    @staticmethod
    @contextlib.contextmanager
    def ends_call(wake: Callable[[], None]) -> Iterator[None]:
        """While the body runs, a function of the user, SIGTERM ends it by a `Terminated`.

        That is raised in the main thread. A call in another thread must not let it end there a
        training amid its step, which would not be saved.

        Args:
          wake: interrupts what the body waits for. Python looks for signals before a wait, and one
            that comes between that and the wait, or in another thread, does not end it.
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
    def wake_calls() -> None:
        """Has the main thread look whether SIGTERM has come; called from another one."""
        for wake in list(Termination._calls):
            wake()


@functools.cache  # Once per process.
def _warn_of_thread() -> None:
    tf.logging.warning('%s', Problem(
        'W531', 'train', 'signals reach only what runs in the main thread',
        f'a training in thread "{threading.current_thread().name}"', 'It works, but SIGTERM does '
        'not save it before the process ends, and Ctrl-C does not end it.'))
