"""Warns while a call of input_fn does not return, and ends the call at the input deadline."""

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
    """Warns while the body does not return, and ends it after the deadline.

    The call in the body stays in its thread, since it may use objects that belong there. So only a
    signal can end it, as Ctrl-C does. SIGURG serves for that, since it does nothing by itself. The
    call goes on, with a line per minute in the log, where Python has no signals: outside of the
    main thread. It also goes on if the user handles SIGURG.

    Args:
      name: of the invocation of input_fn.
      deadline: seconds that the body may take.

    Raises:
      InputPipelineError: E522, if the body takes longer.
    """
    caller = threading.current_thread()
    has_ended, late = threading.Event(), list[InputPipelineError]()

    def interrupt(number: int, frame: object) -> None:
        if late:  # Otherwise somebody else sent it, and it does nothing by itself.
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
    """Returns the seconds to the next line: there is one per minute and one at the deadline."""
    return min(WARN_SECONDS, deadline - waited) if waited < deadline else WARN_SECONDS
