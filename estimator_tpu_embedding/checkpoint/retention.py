"""Decides which checkpoints of a job are kept: the newest ones, and others for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Saved(NamedTuple):
    """A checkpoint: its step, and the time of its commit in seconds of a monotonic clock.

    The step alone says which one is newer. `at` is `None` if an earlier process committed it: as in
    `tf.train.Saver`, only the process that wrote it knows, by a clock that never jumps.
    """

    step: int
    at: float | None = None


Policy = Callable[[Saved], bool]
"""Whether a checkpoint is kept forever; asked once, when newer ones displace it."""


def keep_every_steps(steps: int) -> Policy:
    """Keeps the checkpoints whose step is a multiple of `steps`, which is >= 1."""
    return lambda saved: saved.step % steps == 0


def keep_every_hours(hours: float, now: float) -> Policy:
    """Keeps about one checkpoint in so many hours after `now`, a time of the clock of `Saved.at`.

    It is `keep_checkpoint_every_n_hours`: the first checkpoint is kept that comes later than that.
    """
    due = now + hours * 3600

    def keeps(saved: Saved) -> bool:
        nonlocal due
        if saved.at is None or saved.at <= due:
            return False
        due += hours * 3600
        return True

    return keeps


class Retention(NamedTuple):
    """Keeps so many of the newest checkpoints (0 for all), and others if a policy keeps them.

    >>> retention = Retention(2, [keep_every_steps(10)])
    >>> retention.split([Saved(step) for step in (10, 15, 20, 25)])
    ([Saved(step=20, at=None), Saved(step=25, at=None)], [Saved(step=15, at=None)])
    """

    newest: int = 0
    others: Sequence[Policy] = ()

    def split(self, saved: Sequence[Saved]) -> tuple[list[Saved], list[Saved]]:
        """Decides about checkpoints in the order of their steps.

        Returns:
          `(undecided, released)`: the checkpoints to decide about another time, and the ones to
          delete. A checkpoint in neither list is kept forever.
        """
        count = len(saved) - self.newest if self.newest else 0
        older = saved[:max(0, count)]
        return list(saved[len(older):]), [
            one for one in older if not any(keeps(one) for keeps in self.others)]


def retention_of(definition: Any, every_steps: int | None, now: float) -> Retention:
    """Returns what a `SaverDef` asks for; see `keep_every_steps` and `keep_every_hours`."""
    others: list[Policy] = []
    if definition.keep_checkpoint_every_n_hours:
        others.append(keep_every_hours(definition.keep_checkpoint_every_n_hours, now))
    if every_steps is not None:
        others.append(keep_every_steps(every_steps))
    return Retention(definition.max_to_keep, others)


def in_order(saved: Sequence[Saved], newest: Saved) -> list[Saved]:
    """Returns the checkpoints of lower steps in order, and the newest, which must outlive them.

    A checkpoint of a higher step is damaged, or of another training; it is left alone.
    """
    older = {each.step: each for each in saved if each.step < newest.step}
    same = [each for each in saved if each.step == newest.step]
    return [*sorted(older.values()), *(same[:1] or [newest])]
