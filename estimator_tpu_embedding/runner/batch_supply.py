"""Asks the infeed for the batches of a loop of steps, and waits for each step's batch."""

from __future__ import annotations

import time
from collections.abc import Callable

from .infeed import Infeed
from .progress import RunReport
from .schedule import Loop


class BatchSupply:
    """Asks for the batches of a loop at once, or for each batch only at its step."""

    def __init__(self, infeed: Infeed, report: RunReport, *, ahead: int, draws_ahead: bool,
                 gives_up: Callable[[float], bool]):
        """Asks an infeed.

        Args:
          infeed: draws the batches.
          report: gets the seconds that steps waited.
          ahead: batches beyond its own that a step waits for, 0 or 1.
          draws_ahead: whether batches may be drawn before their step. The batches that
            a step waits for are drawn in any case.
          gives_up: asked with the seconds that a batch has been lacking. If it returns true, the
            wait ends.
        """
        self._infeed, self._report, self._ahead = infeed, report, ahead
        self._draws_ahead, self._gives_up = draws_ahead, gives_up

    def begin_loop(self, loop: Loop) -> None:
        """Asks for the batches of a loop, or only for the batches of its first step."""
        if self._draws_ahead:
            self._infeed.request(loop.steps, following=loop.following)
        else:
            self._request_one(loop.steps - 1 + loop.following)

    def begin_step(self, following: int) -> None:
        """Asks for the batches that another step of the loop needs, unless that was done before.

        Args:
          following: how many steps are sure to be made after that step.
        """
        if not self._draws_ahead:  # Otherwise a loop cut short would leave batches behind.
            self._request_one(following)

    def wait(self) -> None:
        """Waits for the batch of the next step.

        Raises:
          See `Infeed.await_batch`.
        """
        began = time.monotonic()
        self._infeed.await_batch(lambda: self._gives_up(time.monotonic() - began))
        self._report.time.input += time.monotonic() - began

    def _request_one(self, following: int) -> None:
        """Asks for the batch of one step, and for batches beyond it that the step waits for."""
        self._infeed.request(1, following=min(following, self._ahead))
