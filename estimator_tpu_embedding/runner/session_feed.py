"""Runs the infeed threads of one session: one per host, which draws batches for its cores."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import Problem
from ..ops import checks
from .faults import SESSION_LOST, Failures, of_pipeline
from .feed_progress import FeedProgress, HostProgress
from .feed_watch import FeedWatch
from .host_feeds import Drawing, FeedGraph
from .input import END_OF_INPUT
from .progress import RunReport
from .shutdown import PROMPT_SECONDS, Shutdown


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeedRules:
    """How the infeed threads of a run draw batches, and how long they are waited for.

    Attributes:
      draw: makes the function that a thread calls once per step.
      made_by: the input_fn and where it is, for messages; empty if that is not known.
      deadline: seconds that a host may produce nothing while a step waits for it.
      shutdown: the deadline of the end, also for threads that are in an input pipeline.
      proceed: called now and then while the start of a pipeline takes long. It may raise to
        end that wait.
    """

    draw: Drawing
    made_by: str
    deadline: float
    shutdown: Shutdown
    proceed: Callable[[], None]


class SessionFeed:
    """The infeed threads of one session.

    Attributes:
      progress: counts the batches that threads make and steps take.
    """

    def __init__(self, session: tf.Session, graph: FeedGraph, rules: FeedRules, *,
                 failures: Failures, report: RunReport):
        """Prepares the threads.

        Args:
          session: where they run the operations of `graph`.
          graph: the operations that draw batches and hand them over.
          rules: how threads draw, and how long they are waited for.
          failures: told why a thread failed.
          report: gets the counts of ids; counts the steps.
        """
        self.progress = FeedProgress(graph.feeds, failures, report)
        self._session, self._graph, self._rules = session, graph, rules
        self._failures, self._report = failures, report
        self._first_step = 0
        self._watch = FeedWatch(self.progress, rules.deadline, graph.ahead, failures=failures,
                                report=report, close=self.interrupt)

    def start(self) -> None:
        """Starts the threads and waits until every input has started: a pipeline may block there.

        Hooks that come later may then put the iterators elsewhere.
        """
        if self._report.verb == 'train':
            self._first_step = int(self._session.run(_tf.global_step_read(self._session.graph)))
        for host in self.progress.hosts:
            host.thread = threading.Thread(target=self._feed, args=(host,), daemon=True,
                                           name=f'infeed-{host.number}')
            host.thread.start()
        self._watch.thread.start()
        began = time.monotonic()

        def gives_up() -> bool:
            if time.monotonic() - began > PROMPT_SECONDS:
                self._rules.proceed()
            return False

        self.progress.await_start(gives_up)

    def interrupt(self) -> None:
        """Ends every wait for batches, from any thread."""
        self._run_quietly(self._graph.close)

    def stop(self) -> None:
        """Ends the threads; does nothing at a second call."""
        if not self.progress.stop():
            return
        alive = [host for host in self.progress.hosts if host.is_alive()]
        if alive:
            self.interrupt()
        for host in alive:
            assert host.thread is not None
            if not self._rules.shutdown.wait_for(host.thread, f'the input of {host.feed.name}'):
                tf.logging.warning('The input of %s still does not return after the run ended; '
                                   'its thread is left behind.', host.feed.name)
        self._rules.shutdown.wait_for(self._watch.thread, 'the thread that watches the input')

    def _feed(self, host: HostProgress) -> None:
        """Draws batches for a host until the run is over; its thread runs this method."""
        try:
            self._session.run(host.feed.initializer)
            draw = self._rules.draw(self._session, host.number, host.feed)
            self.progress.add_start(host)
            while self.progress.await_demand(host):
                began = time.monotonic()
                counts, has_data = draw()
                self._report.add_counts(host.feed.counted, counts,
                                        (time.monotonic() - began) / len(self.progress.hosts))
                self.progress.add_batch(host, has_data)
        except BaseException as error:  # A thread has no caller; failures are its way out.
            if not self.progress.is_stopping:  # Otherwise its wait was ended, which is no error.
                self._leave(host, error)

    def _leave(self, host: HostProgress, error: BaseException) -> None:
        """Tells the others why the thread of a host ends."""
        message = error.message if isinstance(error, tf.errors.OpError) else ''
        problem = checks.message_to_problem(message)
        if problem is not None and problem.code == END_OF_INPUT or (
                not host.feed.is_dataset and isinstance(error, tf.errors.OutOfRangeError)):
            host.has_ended = host.has_left = True
            self._run_quietly(host.feed.end)
        elif isinstance(error, SESSION_LOST):
            self.progress.lost = error
        else:
            batch, made_by = host.produced + 1, self._rules.made_by
            self._failures.record(
                f'infeed of {host.feed.name} at its batch {batch}', of_pipeline(error, Problem(
                    'E520', f'input of {host.feed.name}', 'its pipeline must give a batch for '
                    f'step {self._first_step + batch}', type(error).__name__,
                    f'The dataset is that of {made_by}.' if made_by else '')))
            self.interrupt()
        self.progress.notify()

    def _run_quietly(self, operation: tf.Operation) -> None:
        """Closes queues; that they are closed already, or the session is, does not matter."""
        try:
            self._session.run(operation)
        except (tf.errors.OpError, RuntimeError) as error:
            tf.logging.debug('closing the queues of the infeed: %s', error)
