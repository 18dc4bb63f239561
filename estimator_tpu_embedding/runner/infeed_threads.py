"""Feeds the steps of a run: a thread per host draws batches, and steps wait for them.

`infeed_operations` builds the operations that the threads run. A hook starts the threads with every
session. They make only as many batches as steps were asked for, and one more thread ends the run
if a host is too late.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import Problem, UnsupportedError
from ..hosts.backend import QUEUE_CAPACITY
from ..ops import checks
from .core_batches import END_OF_INPUT, Input
from .job import Job
from .progress import RunReport
from .root_cause import Failures, of_pipeline
from .signals_and_deadlines import PROMPT_SECONDS, WARN_SECONDS, Shutdown, nothing_came

_SESSION_LOST = (tf.errors.AbortedError, tf.errors.UnavailableError)
"""After these a `MonitoredSession` makes a new session and restores the newest checkpoint."""
_SLICE_SECONDS = 0.5


class HostFeed(NamedTuple):
    """The operations that the infeed thread of one invocation of input_fn runs.

    Attributes:
      name: of the invocation, as messages show it: `'host 0'`.
      source: whose initializer is run once per session, before the first batch.
      step: hands one batch to each core of the host; blocks while a queue is full.
      counted: the features whose ids are counted, the same for every invocation.
      counts: int64 `[len(counted), 4]`, the `IdCounts` of that step, evaluated with it. They are
        one tensor, since fetching each number by itself took longer than counting.
      end: run once no batch follows.
      ids: per feature, for each core of the host, the `(samples, ids)` of that step.
    """

    name: str
    source: Input
    step: tf.Operation
    counted: tuple[str, ...]
    counts: tf.Tensor
    end: tf.Operation
    ids: dict[str, list[tuple[tf.Tensor, tf.Tensor]]]

    @property
    def fetches(self) -> list[Any]:
        """What a thread fetches of every step: counts, whether the batch has data, and `step`."""
        return [self.counts, self.source.has_data, self.step]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeedGraph:
    """The operations of a graph that carry its input.

    Attributes:
      start: run once per session, before its input starts.
      feeds: one per invocation of input_fn.
      close: ends every wait of the threads, and of a step for its batches.
      ahead: batches beyond its own that a step waits for, 0 or 1.
    """

    start: tf.Operation
    feeds: Sequence[HostFeed]
    close: tf.Operation
    ahead: int


Draw = Callable[[], Sequence[Any]]
"""Hands over one batch; returns its counts, and whether it has data."""


def drawing(session: tf.Session, number: int, feed: HostFeed) -> Draw:
    """Returns the function of the thread of a feed, which is the one of this number."""
    del number
    run: Draw = session.make_callable(feed.fetches)
    return run


class Infeed(tf.train.SessionRunHook):
    """Starts the infeed threads with every session of a run, and ends them.

    The steps of the run ask it for batches and wait for them.

    Attributes:
      draws_ahead: whether batches are drawn before a step asks for them. In a pipelined job a
        step asks for its own and the next one.
      progress: that of the session.
    """

    def __init__(self, graph: FeedGraph, job: Job,
                 drawing: Callable[[tf.Session, int, HostFeed], Draw], *, shutdown: Shutdown,
                 failures: Failures, report: RunReport):
        self._graph, self._job, self._drawing = graph, job, drawing
        self._shutdown, self._failures, self._report = shutdown, failures, report
        self.draws_ahead = True
        self.progress = FeedProgress([], failures, report, lambda: None)
        self._watcher: threading.Thread | None = None
        self._first_step = 0

    def after_create_session(self, session: tf.Session, coord: object) -> None:
        """Starts the engine and the threads, which start every input, and waits until all have.

        A pipeline may block there. Hooks that come later may then put the iterators elsewhere.
        """
        self.stop()
        session.run(self._graph.start)
        self._shutdown.restart()
        self.progress = progress = FeedProgress(
            self._graph.feeds, self._failures, self._report,
            functools.partial(_run_quietly, session, self._graph.close))
        if self._report.verb == 'train':
            self._first_step = int(session.run(_tf.global_step_read(session.graph)))
        for host in progress.hosts:
            host.thread = threading.Thread(target=self._feed, args=(session, progress, host),
                                           daemon=True, name=f'infeed-{host.number}')
            host.thread.start()
        self._watcher = threading.Thread(
            target=watch, name='infeed-watch', daemon=True,
            args=(progress, self._job.input_deadline, self._graph.ahead))
        self._watcher.start()
        began = time.monotonic()

        def gives_up() -> bool:
            if time.monotonic() - began > PROMPT_SECONDS:
                self._shutdown.proceed()
            return False

        progress.wait_until(progress.have_begun, gives_up)

    def request(self, number: int, steps: int, following: int) -> None:
        """Asks for the batches that step `number` of a loop needs, unless that was done before.

        The first of the `steps` of the loop asks for all of them; `following` steps are sure to be
        run after them. Unless this hook draws ahead, each step asks for its own batch: otherwise a
        loop cut short would leave batches behind.
        """
        if not self.draws_ahead:
            self.progress.request(1, min(steps - 1 - number + following, self._graph.ahead))
        elif not number:
            self.progress.request(steps, following)

    def await_batch(self) -> None:
        """Waits until every core has its batch of the next step.

        So a step that lacks data does not begin, and changes nothing.

        Raises:
          tf.errors.OutOfRangeError: if a host has no batch because its data has ended, if no
            host has a sample, or if SIGTERM ends the wait: of an evaluation only if it is slow.
          UnsupportedError: if no session was announced to this hook.
          Whatever ended a thread.
        """
        if not self.progress.hosts:
            raise UnsupportedError(Problem(
                'E907', 'TPUConfig.experimental_feed_hook', 'its after_create_session must call '
                'that of TPUInfeedOutfeedSessionHook, which starts the input'))
        began = time.monotonic()

        def gives_up() -> bool:
            return self._shutdown.termination.is_asked and (
                self._report.verb == 'train' or time.monotonic() - began > PROMPT_SECONDS)

        self.progress.wait_until(self.progress.has_batch, gives_up)

    def interrupt(self) -> None:
        """Ends every wait for batches, from any thread; a step that waits then fails."""
        self.progress.close()

    def stop(self) -> None:
        """Ends the threads; may be called at any time before the session is closed."""
        if not self.progress.stop():
            return
        alive = [(host.thread, host.feed.name) for host in self.progress.hosts
                 if host.thread is not None and host.thread.is_alive()]
        if alive:
            self.interrupt()
        for thread, name in alive:
            if not self._shutdown.wait_for(thread, f'the input of {name}'):
                tf.logging.warning('The input of %s still does not return after the run ended; '
                                   'its thread is left behind.', name)
        if self._watcher is not None:
            self._shutdown.wait_for(self._watcher, 'the thread that watches the input')

    def _feed(self, session: tf.Session, progress: FeedProgress, host: HostProgress) -> None:
        try:
            source = host.feed.source
            session.run(source.initializer if self.draws_ahead else source.tuned_initializer)
            draw = self._drawing(session, host.number, host.feed)
            host.has_begun = True
            progress.notify()
            while progress.await_demand(host):
                began = time.monotonic()
                counts, has_data, *_ = draw()
                self._report.add_counts(host.feed.counted, counts,
                                        (time.monotonic() - began) / len(progress.hosts))
                progress.add_batch(host, has_data)
        except BaseException as error:  # A thread has no caller; failures are its way out.
            if not progress.is_stopping:  # Otherwise its wait was ended, which is no error.
                self._leave(session, progress, host, error)

    def _leave(self, session: tf.Session, progress: FeedProgress, host: HostProgress,
               error: BaseException) -> None:
        """Tells the others why the thread of a host ends."""
        message = error.message if isinstance(error, tf.errors.OpError) else ''
        problem = checks.message_to_problem(message)
        if problem is not None and problem.code == END_OF_INPUT or (
                not host.feed.source.is_dataset and isinstance(error, tf.errors.OutOfRangeError)):
            host.has_ended = host.has_left = True
            _run_quietly(session, host.feed.end)
        elif isinstance(error, _SESSION_LOST):
            progress.lost = error
        else:
            batch, made_by = host.produced + 1, self._job.input_fn
            self._failures.record(
                f'infeed of {host.feed.name} at its batch {batch}', of_pipeline(error, Problem(
                    'E520', f'input of {host.feed.name}', 'its pipeline must give a batch for '
                    f'step {self._first_step + batch}', type(error).__name__,
                    f'The dataset is that of {made_by}.' if made_by else '')))
            progress.close()
        progress.notify()


def _run_quietly(session: tf.Session, operation: tf.Operation) -> None:
    """Closes queues; that they are closed already, or the session is, does not matter."""
    try:
        session.run(operation)
    except (tf.errors.OpError, RuntimeError) as error:
        tf.logging.debug('closing the queues of the infeed: %s', error)


@dataclasses.dataclass(slots=True, eq=False)
class HostProgress:
    """How far the input of one host is in one session.

    Attributes:
      produced_with_data: how many of the batches that it has produced are more than padding.
      has_left: whether its thread has ended too, since its data has ended.
      idle_since: when its thread last went on after it had waited for steps; seconds, monotonic.
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
      close: ends every wait of the threads, and of a step for its batches.
      lost: the error that lost the session, if a thread has met one.
      ended_input: the host whose data ended first, if that ended the run.
    """

    def __init__(self, feeds: Sequence[HostFeed], failures: Failures, report: RunReport,
                 close: Callable[[], None]):
        self.hosts = [HostProgress(number, feed) for number, feed in enumerate(feeds)]
        self.failures, self.report, self.close = failures, report, close
        self.lost: tf.errors.OpError | None = None
        self.is_stopping = False
        self.ended_input: str | None = None
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
        """Returns whether a step, which needs `ahead` batches beyond its own, waits for a host."""
        with self._change:
            return host.is_alive() and (not host.has_begun or (
                host.produced <= self._consumed() + ahead and host.produced < self._allowed))

    def wait_until(self, is_there: Callable[[], bool], gives_up: Callable[[], bool]) -> None:
        """Waits until `have_begun` or `has_batch` is true; see `Infeed.await_batch`."""
        while True:
            self._raise_failure()
            with self._change:
                if is_there():
                    return
                if gives_up():
                    raise tf.errors.OutOfRangeError(None, None, 'given up')
                self._change.wait(_SLICE_SECONDS)  # So that a failure and Ctrl-C are noticed.

    def have_begun(self) -> bool:
        """Returns whether the input of every host has started."""
        lacking = [host for host in self.hosts if not host.has_begun]
        self._require_alive(lacking)
        return not lacking

    def has_batch(self) -> bool:
        """Returns whether every core has its batch of the next step."""
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
        failure = self.failures.root_cause() or self.lost
        if failure is not None:
            raise failure

    def _consumed(self) -> int:
        return self.report.steps - self._steps_before


def watch(progress: FeedProgress, deadline: float, ahead: int) -> None:
    """Warns while the input of a host takes long, and ends the run at the deadline.

    It is late if it gives nothing while a step waits, which needs `ahead` batches beyond its own.
    """
    warned_at = time.monotonic()
    while not progress.is_stopping:
        progress.await_change(min(1.0, deadline / 4))
        now = time.monotonic()
        waiting = [host for host in progress.hosts if progress.is_starving(host, ahead)]
        late = [host for host in waiting if now - host.idle_since >= deadline]
        if late:
            errors = [nothing_came(host.feed.name, now - host.idle_since, has_stacks=not number)
                      for number, host in enumerate(late)]
            for host, error in zip(late, errors):
                progress.failures.record(f'infeed of {host.feed.name}', error)
            # At once: the end of the run may take its time.
            tf.logging.error('%s', '\n'.join([*map(str, errors), *errors[0].__notes__]))
            progress.close()
            progress.notify()
            return
        silent = [host for host in waiting if now - host.idle_since >= WARN_SECONDS]
        if silent and now - warned_at >= WARN_SECONDS:
            warned_at = now
            tf.logging.warning(
                'Step %d waits for input: %s has produced nothing for %.0f s.',
                progress.report.steps + 1, ' and '.join(host.feed.name for host in silent),
                now - min(host.idle_since for host in silent))
