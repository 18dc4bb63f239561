"""Signals that end a run: Ctrl-C at once, SIGTERM after the step that is under way.

Python runs its handlers only when TensorFlow's C++ returns, so Ctrl-C needs a thread.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import tensorflow.compat.v1 as tf


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


class Termination:
    """Whether the process was asked to end by SIGTERM, as preempted machines are."""

    def __init__(self) -> None:
        self._is_asked = False

    def is_asked(self) -> bool:
        """Whether the run is to end after its step."""
        return self._is_asked

    @contextlib.contextmanager
    def awaited(self) -> Iterator[None]:
        """While the body runs, SIGTERM only asks for its end; the process dies of it then.

        A second signal ends the process at once. An error of the body is raised instead. Where
        a user has a handler for the signal, or outside of the main thread, nothing happens.
        """
        if (threading.current_thread() is not threading.main_thread()
                or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL):
            yield
            return

        def ask(number: int, frame: object) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._is_asked = True

        signal.signal(signal.SIGTERM, ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self._is_asked:
            tf.logging.warning('SIGTERM: the training ended after a step; now the process ends.')
            signal.raise_signal(signal.SIGTERM)
