"""Counts seconds for a process that the system may leave waiting: those it slept do not count."""

from __future__ import annotations

import time
from collections.abc import Callable


class Patience:
    """A clock that a thread keeps by looking at it often.

    If the thread looks late, its process did not run, because it was stopped or the machine was
    busy. Nobody else can be blamed for that time, so most of it is left out.

    >>> times = iter([0, .1, 9.1])
    >>> clock = Patience(most=.2, clock=lambda: next(times))
    >>> clock.look(), clock.look()
    (0.1, 0.30000000000000004)
    """

    def __init__(self, most: float, clock: Callable[[], float] = time.monotonic):
        """Begins at 0.

        Args:
          most: seconds that count of those from one look to the next.
          clock: tells seconds.
        """
        self._most, self._clock = most, clock
        self._last = clock()
        self.now = 0.0

    def look(self) -> float:
        """Returns the seconds that count until now."""
        last, self._last = self._last, self._clock()
        self.now += min(self._last - last, self._most)
        return self.now
