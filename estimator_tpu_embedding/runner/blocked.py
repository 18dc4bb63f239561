"""An input_fn that does not return, which is called where nobody else can wait for it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import tensorflow.compat.v1 as tf

from ..errors import InputPipelineError
from .faults import nothing_came
from .feed_watch import WARN_SECONDS
from .signals import Termination


@contextlib.contextmanager
def called_in_time(name: str, deadline: float) -> Iterator[None]:
    """Makes a call that does not return visible, and after the deadline a failure.

    The call stays in its thread, since what it uses may belong there. So only a signal can end it,
    as Ctrl-C does; SIGURG is one that does nothing by itself. Outside of the main thread, where
    Python has no signals, or if a user handles it, the call goes on, and a line per minute says so.

    Args:
      name: of the invocation of input_fn.
      deadline: seconds that the body may take.

    Raises:
      InputPipelineError: E522, if the body takes longer.
    """
    caller = threading.current_thread()
    has_ended, late = threading.Event(), list[InputPipelineError]()

    def interrupt(number: int, frame: object) -> None:
        if late:  # Else it is of somebody else, to whom it does nothing by itself.
            raise late[0]

    may_end = (caller is threading.main_thread()
               and signal.getsignal(signal.SIGURG) is signal.SIG_DFL)

    def wake() -> None:
        if may_end:
            assert caller.ident is not None
            signal.pthread_kill(caller.ident, signal.SIGURG)

    def watch() -> None:
        waited = 0.0
        while not has_ended.wait(pause := _pause(waited, deadline)):
            waited += pause
            if waited < deadline or late:
                tf.logging.warning('input_fn of %s has not returned for %.0f s.', name, waited)
            else:
                late.append(nothing_came(name, waited))
                tf.logging.error('%s', '\n'.join([str(late[0]), *late[0].__notes__]))
            if late:
                wake()

    watcher = threading.Thread(target=watch, name='infeed-call', daemon=True)
    if may_end:
        signal.signal(signal.SIGURG, interrupt)
    watcher.start()
    try:
        with Termination.ends_call(wake):
            yield
    finally:
        has_ended.set()
        try:
            watcher.join()
        finally:  # The signal may come as late as here.
            if may_end:
                signal.signal(signal.SIGURG, signal.SIG_DFL)


def _pause(waited: float, deadline: float) -> float:
    """Seconds to the next line: one per minute, and one at the deadline."""
    return min(WARN_SECONDS, deadline - waited) if waited < deadline else WARN_SECONDS
