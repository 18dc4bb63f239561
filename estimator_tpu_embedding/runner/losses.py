"""Decides after the loss of a session over a cluster whether the run goes on, and says so."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..cluster.faults import HostUnavailableError
from ..errors import EteError, Problem
from .faults import SessionLostError
from .model import Cluster
from .progress import RunReport, announce

SAME_FAILURES = 3


class Losses:
    """Counts the losses of a run. The same one at the same step ends it, for it would come again.

    Two losses are the same if they have the same code and the same hosts.
    """

    def __init__(self, cluster: Cluster, report: RunReport, proceed: Callable[[], None]):
        """Counts none yet.

        Args:
          cluster: whose sessions are lost.
          report: of the run; knows its step.
          proceed: called before a session takes the place of a lost one. It may raise.
        """
        self._cluster, self._report, self._proceed = cluster, report, proceed
        self._steps_of_others = 0
        self._has_begun = False
        self._last: tuple[object, ...] = ()
        self._step, self._count = 0, 0

    def begin_session(self) -> None:
        """Makes the cluster ready for a session, perhaps in place of a lost one.

        Own tasks that end while they start again are one more loss, and are started once more. At
        the start of the run they end it.

        Raises:
          SessionLostError: E722 if the same failure has happened too often.
          HostUnavailableError: if workers do not come back in time.
        """
        if not self._has_begun:
            self._has_begun = True
            self._cluster.prepare()
            return
        self._proceed()
        self._count_loss()
        end = time.monotonic() + self._cluster.restart_deadline
        while True:
            try:
                self._cluster.prepare()
                return
            except HostUnavailableError as error:
                if error.problems[0].code != 'E711' or time.monotonic() > end:
                    raise
                self._count += 1
                self._go_on_after(error)
                self._proceed()

    def _count_loss(self) -> None:
        if self._cluster.loss is None:
            self._cluster.check()  # The error of a session may come before the news of its task.
        if self._cluster.loss is None:
            self._cluster.lost(SessionLostError(Problem(
                'E802', 'session', 'it must live until the run ends', 'an error that ends it')))
        loss, report = self._cluster.loss, self._report
        steps = report.steps - self._steps_of_others
        if report.verb != 'train':  # Others begin from the first step.
            self._steps_of_others = report.steps
        self._step = report.first_step + steps
        code = loss.problems[0].code if isinstance(loss, EteError) else type(loss).__name__
        failure = (self._step, code, getattr(loss, 'hosts', ()))
        self._count = self._count + 1 if failure == self._last else 1
        self._last = failure
        self._go_on_after(loss)

    def _go_on_after(self, loss: BaseException | None) -> None:
        """Tells a loss, or raises SessionLostError if it was one too many."""
        verb = self._report.verb
        if self._count >= SAME_FAILURES:
            raise SessionLostError(Problem(
                'E722', verb, f'the same failure at one step may happen {SAME_FAILURES - 1} '
                f'times', f'number {self._count} after step {self._step}: {loss}',
                'Look what that step does on that host; what was saved stays.')) from loss
        announce(f'{verb}: after step {self._step}: {loss}')
