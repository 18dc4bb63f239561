"""Remembers for which run a worker works, and until when: its client has to say again and again."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(slots=True)
class _Holder:
    run: str
    client: str
    renewed: float
    has_ended: Callable[[], bool]
    is_leaving: bool = False


class Lease:
    """The claim of one run on a worker; safe to use from any thread.

    It is over if the client was silent for too long, gave the worker back, or is known to have
    ended. Then the process of the worker begins anew, so a lease is never given to a second run.

    >>> lease = Lease(60, clock=lambda: 5.0)
    >>> lease.claim('run-1', 'alice'), lease.claim('run-2', 'bob')
    (True, False)
    >>> lease.as_data()['client'], lease.is_over()
    ('alice', False)
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
        """Begins without a claim.

        Args:
          seconds: of silence after which the claim is over; `inf` is never.
          clock: tells seconds.
        """
        self._seconds, self._clock = seconds, clock
        self._lock = threading.Lock()
        self._holder: _Holder | None = None

    def claim(self, run: str, client: str, has_ended: Callable[[], bool] = lambda: False) -> bool:
        """Claims or renews; returns whether the worker is this run's from now on.

        Args:
          run: the run.
          client: its client, for messages.
          has_ended: whether the process of the client has ended, if that can be known.
        """
        with self._lock:
            if self._holder is None:
                self._holder = _Holder(run, client, self._clock(), has_ended)
            return self._renew(run)

    def renew(self, run: str) -> bool:
        """Returns whether the worker is still this run's."""
        with self._lock:
            return self._renew(run)

    def release(self, run: str) -> bool:
        """Ends the claim of a run; returns whether it had one."""
        with self._lock:
            is_held = self._renew(run)
            if self._holder is not None and is_held:
                self._holder.is_leaving = True
            return is_held

    def is_over(self) -> bool:
        """Whether there was a claim that has ended."""
        with self._lock:
            return self._holder is not None and self._left(self._holder) <= 0

    def as_data(self) -> dict[str, Any] | None:
        """Returns who has the worker, for how long silent, and seconds left; `None` if nobody."""
        with self._lock:
            if self._holder is None:
                return None
            left = self._left(self._holder)
            return {'run': self._holder.run, 'client': self._holder.client,
                    'silent_seconds': round(self._clock() - self._holder.renewed, 3),
                    'seconds_left': None if left == float('inf') else round(max(left, 0.0), 3)}

    def _renew(self, run: str) -> bool:
        holder = self._holder
        if holder is None or holder.run != run or self._left(holder) <= 0:
            return False
        holder.renewed = self._clock()
        return True

    def _left(self, holder: _Holder) -> float:
        if holder.is_leaving or holder.has_ended():
            return 0.0
        return holder.renewed + self._seconds - self._clock()
