"""Lets threads run one at a time, in turn; see `towers.py`."""

from __future__ import annotations

import threading


class Abandoned(BaseException):
    """Unwinds a thread after another one failed."""


class Turns:
    """Whose turn it is. The first thread begins.

    Attributes:
      failure: what the first failing thread raised, or `None`.
    """

    def __init__(self, count: int):
        """Prepares turns of `count` threads."""
        self.failure: BaseException | None = None
        lock = threading.Lock()
        # One for each, so that a turn wakes one thread, however many there are.
        self._conditions = [threading.Condition(lock) for _ in range(count)]
        self._is_done = [False] * count
        self._running: int | None = 0

    def wait(self, own: int) -> None:
        """Waits for the turn of thread `own`. Unbounded: another thread runs user code.

        Raises:
          Abandoned: if another thread failed.
        """
        with self._conditions[own]:
            self._conditions[own].wait_for(
                lambda: self._running == own or self.failure is not None)
        if self.failure is not None:
            raise Abandoned

    def hand_over(self, own: int, is_done: bool = False) -> None:
        """Gives the turn to the next thread that is not done, which may be the same one."""
        count = len(self._conditions)
        with self._conditions[own]:
            self._is_done[own] = is_done
            self._running = next((each % count for each in range(own + 1, own + 1 + count)
                                  if not self._is_done[each % count]), None)
            if self._running is not None:
                self._conditions[self._running].notify()

    def fail(self, error: BaseException) -> None:
        """Lets all threads give up."""
        with self._conditions[0]:
            self.failure = self.failure or error
            for condition in self._conditions:
                condition.notify()
