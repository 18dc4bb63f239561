"""Watches the input of each host: warns if it takes long, and ends the run at the deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import tensorflow.compat.v1 as tf

from .faults import Failures, nothing_came
from .feed_progress import FeedProgress, HostProgress
from .progress import RunReport

WARN_SECONDS = 60.0


class FeedWatch:
    """Watches the hosts of one session, in a thread of its own."""

    def __init__(self, progress: FeedProgress, deadline: float, ahead: int, *,
                 failures: Failures, report: RunReport, close: Callable[[], None]):
        """Prepares the thread.

        Args:
          progress: of the hosts; its end ends the thread.
          deadline: seconds that a host may produce nothing while a step waits for it.
          ahead: batches beyond its own that a step waits for.
          failures: told of hosts that are too late.
          report: counts the steps.
          close: ends every wait for batches.
        """
        self._progress, self._deadline, self._ahead = progress, deadline, ahead
        self._failures, self._report, self._close = failures, report, close
        self.thread = threading.Thread(target=self._watch, name='infeed-watch', daemon=True)

    def _watch(self) -> None:
        warned_at = time.monotonic()
        while not self._progress.is_stopping:
            self._progress.await_change(min(1.0, self._deadline / 4))
            now = time.monotonic()
            waiting = [host for host in self._progress.hosts
                       if self._progress.is_starving(host, self._ahead)]
            late = [host for host in waiting if now - host.idle_since >= self._deadline]
            if late:
                self._give_up(late, now)
                return
            silent = [host for host in waiting if now - host.idle_since >= WARN_SECONDS]
            if silent and now - warned_at >= WARN_SECONDS:
                warned_at = now
                tf.logging.warning(
                    'Step %d waits for input: %s has produced nothing for %.0f s.',
                    self._report.steps + 1, ' and '.join(host.feed.name for host in silent),
                    now - min(host.idle_since for host in silent))

    def _give_up(self, late: Sequence[HostProgress], now: float) -> None:
        """Says at once which hosts came too late: the end of the run may take its time."""
        errors = [nothing_came(host.feed.name, now - host.idle_since, has_stacks=not number)
                  for number, host in enumerate(late)]
        for host, error in zip(late, errors):
            self._failures.record(f'infeed of {host.feed.name}', error)
        tf.logging.error('%s', '\n'.join([*map(str, errors), *errors[0].__notes__]))
        self._close()
        self._progress.notify()
