"""Limits the waits for threads at the end of a run: all of them share one deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import tensorflow.compat.v1 as tf

PROMPT_SECONDS = 2.0
"""The seconds that are left of the deadline once SIGTERM has come."""
_QUIET_SECONDS = 5.0
_SLICE_SECONDS = 0.2


class Shutdown:
    """Waits for threads at the end of a run; all waits together have one deadline."""

    def __init__(self, seconds: float, is_urgent: Callable[[], bool] = lambda: False):
        """Prepares the end.

        Args:
          seconds: for all waits together, from the first one on.
          is_urgent: asked during a wait. Once it returns true, `PROMPT_SECONDS` are left.
        """
        self._seconds, self._is_urgent = seconds, is_urgent
        self._end: float | None = None
        self._is_urgent_now = False

    @property
    def seconds(self) -> float:
        """The seconds that all waits together may take."""
        return self._seconds

    def restart(self) -> None:
        """Gives the end of another session, which has begun, a deadline of its own."""
        self._end, self._is_urgent_now = None, False

    def wait_for(self, thread: threading.Thread, what: str,
                 unless: Callable[[], bool] = lambda: False) -> bool:
        """Waits until a thread has ended or the deadline is over.

        Args:
          thread: any but the current one.
          what: describes the thread, for the line that says what the wait is for.
          unless: asked during the wait; ends it if it returns true.

        Returns:
          Whether the thread has ended. Ctrl-C ends all waits.
        """
        quiet_until: float | None = time.monotonic() + _QUIET_SECONDS
        try:
            thread.join(_SLICE_SECONDS)  # Also when the deadline is over: most end at once.
            while thread.is_alive() and not unless() and (left := self._left()) > 0:
                if quiet_until is not None and time.monotonic() > quiet_until:
                    quiet_until = None
                    tf.logging.warning(
                        'The end of the run waits for %s, %.0f s at most: '
                        'RunConfig(shutdown_deadline_secs=%g). Ctrl-C ends the wait.',
                        what, left, self._seconds)
                thread.join(min(left, _SLICE_SECONDS))  # In slices, to see whether it gets urgent.
        except BaseException:
            self._end = 0.0
            raise
        return not thread.is_alive()

    def _left(self) -> float:
        """Returns the seconds that are left; the first call starts the clock."""
        now = time.monotonic()
        if self._end is None:
            self._end = now + self._seconds
        if not self._is_urgent_now and self._is_urgent():
            self._is_urgent_now = True
            self._end = min(self._end, now + PROMPT_SECONDS)
        return self._end - now
