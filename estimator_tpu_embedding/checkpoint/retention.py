"""Decides which checkpoints are deleted: the newest are kept, and a policy may keep others forever.

The step alone says which checkpoint is newer. A policy may also ask for the time of a checkpoint.
As in `tf.train.Saver`, that is known only if this process wrote it, by a clock that never jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Saved(NamedTuple):
    """A checkpoint: its step, and the time of its commit in seconds of a monotonic clock.

    `at` is `None` if an earlier process committed it.
    """

    step: int
    at: float | None = None


class Policy(Protocol):
    """Says whether a checkpoint is kept forever; asked once, when newer ones displace it."""

    def keeps(self, saved: Saved) -> bool:
        """Whether a checkpoint is kept."""


class KeepEveryHours:
    """Keeps about one checkpoint in so many hours: `keep_checkpoint_every_n_hours`."""

    def __init__(self, hours: float, now: float):
        """Keeps the first checkpoint that comes more than `hours` after `now`, and so on.

        Args:
          hours: the time between two checkpoints that are kept.
          now: in seconds of the clock of `Saved.at`.
        """
        self._seconds = hours * 3600
        self._next = now + self._seconds

    def keeps(self, saved: Saved) -> bool:
        """Whether it is the first one after the next time is due."""
        if saved.at is None or saved.at <= self._next:
            return False
        self._next += self._seconds
        return True


class KeepEverySteps:
    """Keeps the checkpoints whose step is a multiple of a number."""

    def __init__(self, steps: int):
        """Keeps the multiples of `steps`, which is >= 1."""
        self._steps = steps

    def keeps(self, saved: Saved) -> bool:
        """Whether its step is a multiple."""
        return saved.step % self._steps == 0


class Retention:
    """Keeps the newest checkpoints, and others if a policy keeps them.

    >>> retention = Retention(2, [KeepEverySteps(10)])
    >>> retention.split([Saved(step) for step in (10, 15, 20, 25)])
    ([Saved(step=20, at=None), Saved(step=25, at=None)], [Saved(step=15, at=None)])
    """

    def __init__(self, newest: int = 0, others: Sequence[Policy] = ()):
        """Sets the rules.

        Args:
          newest: number of checkpoints that are kept in any case; 0 for all.
          others: policies for the rest.
        """
        self._newest, self._others = newest, others

    def split(self, saved: Sequence[Saved]) -> tuple[list[Saved], list[Saved]]:
        """Decides about checkpoints in the order of their steps.

        Returns:
          `(undecided, released)`: the checkpoints to decide about another time, and the ones to
          delete. A checkpoint in neither list is kept forever.
        """
        count = len(saved) - self._newest if self._newest else 0
        older = saved[:max(0, count)]
        return list(saved[len(older):]), [
            one for one in older if not any(policy.keeps(one) for policy in self._others)]
