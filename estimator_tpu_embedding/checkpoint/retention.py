"""Which checkpoints are deleted: three small policies, of which each may keep one.

Steps alone say what is newer. Time is that of a clock that never jumps, so it is known of the
checkpoints of this process only, as in `tf.train.Saver`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Saved(NamedTuple):
    """A checkpoint: its step, and when it was committed, in seconds of a monotonic clock.

    `at` is `None` for those of earlier processes.
    """

    step: int
    at: float | None = None


class Policy(Protocol):
    """Says whether a checkpoint is kept forever; asked once, when it is not among the newest."""

    def keeps(self, saved: Saved) -> bool:
        """Whether it is kept."""


class KeepEveryHours:
    """`keep_checkpoint_every_n_hours`: keeps about one in so many hours of this process."""

    def __init__(self, hours: float, now: float):
        """Keeps one of those that come `hours` after `now`, one of the next `hours`, ..."""
        self._seconds = hours * 3600
        self._next = now + self._seconds

    def keeps(self, saved: Saved) -> bool:
        """Whether it is the first of its time."""
        if saved.at is None or saved.at <= self._next:
            return False
        self._next += self._seconds
        return True


class KeepEverySteps:
    """Keeps those whose step is a multiple of a number."""

    def __init__(self, steps: int):
        """Keeps the multiples of `steps`, which is >= 1."""
        self._steps = steps

    def keeps(self, saved: Saved) -> bool:
        """Whether its step is one."""
        return saved.step % self._steps == 0


class Retention:
    """Keeps the newest, and of the others those that a policy keeps.

    >>> retention = Retention(2, [KeepEverySteps(10)])
    >>> retention.split([Saved(step) for step in (10, 15, 20, 25)])
    ([Saved(step=20, at=None), Saved(step=25, at=None)], [Saved(step=15, at=None)])
    """

    def __init__(self, newest: int = 0, others: Sequence[Policy] = ()):
        """Sets the rules.

        Args:
          newest: so many are kept in any case; 0 for all.
          others: asked about the rest.
        """
        self._newest, self._others = newest, others

    def split(self, saved: Sequence[Saved]) -> tuple[list[Saved], list[Saved]]:
        """Decides about checkpoints in the order of their steps.

        Returns:
          (those that are decided upon another time, those to delete). What is in neither list
          is kept forever.
        """
        count = len(saved) - self._newest if self._newest else 0
        older = saved[:max(0, count)]
        return list(saved[len(older):]), [
            one for one in older if not any(policy.keeps(one) for policy in self._others)]
