"""Ctrl-C while TensorFlow's C++ waits: Python runs its handlers only when that returns."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator


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
