"""Counts, for one session, the batches that the input of each host made and that steps asked for.

The infeed threads and the steps wait here for each other.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence

import tensorflow.compat.v1 as tf

from ..hosts.backend import QUEUE_CAPACITY
from .faults import Failures
from .host_feeds import HostFeed
from .progress import RunReport

_SLICE_SECONDS = 0.5


@dataclasses.dataclass(slots=True, eq=False)
class HostProgress:
    """How far the input of one host is in one session.

    Attributes:
      number: of the host's feed.
      feed: the operations of its thread.
      produced: batches that its thread has handed over.
      produced_with_data: how many of these are more than padding.
      has_begun: whether its input has started.
      has_ended: whether its data has ended.
      has_left: whether its thread has ended because its data has ended.
      idle_since: when its thread last went on after it had waited for steps; seconds, monotonic.
      thread: of the host, once it is started.
    """

    number: int
    feed: HostFeed
    produced: int = 0
    produced_with_data: int = 0
    has_begun: bool = False
    has_ended: bool = False
    has_left: bool = False
    idle_since: float = dataclasses.field(default_factory=time.monotonic)
    thread: threading.Thread | None = None

    def is_alive(self) -> bool:
        """Returns whether the thread runs."""
        return self.thread is not None and self.thread.is_alive()


class FeedProgress:
    """Counts the batches of one session: infeed threads make them, and steps take them.

    Threads make only as many batches as steps were asked for, plus as many as the queues hold
    while more steps are sure to come. So the next batch is made while a step runs, and no batch
    is drawn that no step will use. Any thread may call any method.

    Attributes:
      hosts: the progress of each host.
      lost: the error that lost the session, if a thread has met one.
      is_stopping: whether the threads are to end.
      ended_input: the host whose data ended first, if that ended the run.
    """

    def __init__(self, feeds: Sequence[HostFeed], failures: Failures, report: RunReport):
        """Begins to count.

        Args:
          feeds: one per host.
          failures: of all threads; their root cause ends every wait of a step.
          report: counts the steps that were made.
        """
        self.hosts = [HostProgress(number, feed) for number, feed in enumerate(feeds)]
        self.lost: tf.errors.OpError | None = None
        self.is_stopping = False
        self.ended_input: str | None = None
        self._failures, self._report = failures, report
        self._steps_before = report.steps
        self._allowed = 0
        self._change = threading.Condition()

    def request(self, steps: int, following: int) -> None:
        """Asks for the batches of `steps` steps, and of some of the `following` ones."""
        with self._change:
            self._allowed = self._consumed() + steps + min(following, QUEUE_CAPACITY)
            for host in self.hosts:  # Time between runs is not the input's.
                host.idle_since = max(host.idle_since, time.monotonic())
            self._change.notify_all()

    def await_start(self, gives_up: Callable[[], bool]) -> None:
        """Waits until the input of every host has started.

        Args:
          gives_up: asked now and then; ends the wait if it returns true or raises.

        Raises:
          Whatever ended a thread.
        """
        self._await(self._have_begun, gives_up)

    def await_batch(self, gives_up: Callable[[], bool]) -> None:
        """Waits until every core has its batch of the next step.

        Args:
          gives_up: asked now and then; ends the wait if it returns true or raises.

        Raises:
          tf.errors.OutOfRangeError: if a host has no batch because its data has ended, if no
            host has a sample, or if `gives_up` returned true.
          Whatever ended a thread.
        """
        self._await(self._has_batch, gives_up)

    def await_demand(self, host: HostProgress) -> bool:
        """Waits until another batch of a host is wanted; returns false if the run is over."""
        with self._change:
            while not self.is_stopping and host.produced >= self._allowed:
                self._change.wait()
            host.idle_since = time.monotonic()
            return not self.is_stopping

    def await_change(self, seconds: float) -> None:
        """Waits until something changes, but not longer than `seconds`."""
        with self._change:
            self._change.wait(seconds)

    def add_start(self, host: HostProgress) -> None:
        """Takes note that the input of a host has started."""
        with self._change:
            host.has_begun = True
            self._change.notify_all()

    def add_batch(self, host: HostProgress, has_data: bool) -> None:
        """Takes note that a host has handed over a batch, perhaps one of padding only."""
        with self._change:
            host.produced += 1
            host.produced_with_data += int(has_data)
            host.has_ended = not has_data
            self._change.notify_all()

    def notify(self) -> None:
        """Lets everybody who waits look again."""
        with self._change:
            self._change.notify_all()

    def stop(self) -> bool:
        """Tells the threads to end; returns whether this is the first call."""
        with self._change:
            if self.is_stopping:
                return False
            self.is_stopping = True
            self._change.notify_all()
            return True

    def is_starving(self, host: HostProgress, ahead: int) -> bool:
        """Returns whether a step waits for a batch that a host has not made.

        Args:
          host: the host.
          ahead: batches beyond its own that a step waits for.
        """
        with self._change:
            return host.is_alive() and (not host.has_begun or (
                host.produced <= self._consumed() + ahead and host.produced < self._allowed))

    def _await(self, is_there: Callable[[], bool], gives_up: Callable[[], bool]) -> None:
        """Waits until `is_there`, which is called with the lock held, returns true."""
        while True:
            self._raise_failure()
            with self._change:
                if is_there():
                    return
                if gives_up():
                    raise tf.errors.OutOfRangeError(None, None, 'given up')
                self._change.wait(_SLICE_SECONDS)  # So that a failure and Ctrl-C are noticed.

    def _have_begun(self) -> bool:
        lacking = [host for host in self.hosts if not host.has_begun]
        self._require_alive(lacking)
        return not lacking

    def _has_batch(self) -> bool:
        done = self._consumed()
        lacking = [host for host in self.hosts if host.produced <= done]
        if not lacking and any(host.produced_with_data > done for host in self.hosts):
            return True
        if not lacking or any(host.has_left for host in lacking):
            self.ended_input = min((host.produced_with_data, host.number, host.feed.name)
                                   for host in self.hosts if host.has_ended)[2]
            raise tf.errors.OutOfRangeError(None, None, 'end of input')
        self._require_alive(lacking)
        return False

    def _require_alive(self, hosts: Sequence[HostProgress]) -> None:
        """Raises the reason why a thread has ended, if one of these has."""
        if not all(host.is_alive() for host in hosts):
            self._raise_failure()  # A thread says first why it ends.
            raise tf.errors.CancelledError(None, None, 'the input was cancelled')

    def _raise_failure(self) -> None:
        failure = self._failures.root_cause() or self.lost
        if failure is not None:
            raise failure

    def _consumed(self) -> int:
        return self._report.steps - self._steps_before
