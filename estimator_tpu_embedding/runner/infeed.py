"""One thread per host draws batches and hands them to the queues of its cores."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence

import tensorflow.compat.v1 as tf

from ..errors import Problem, UnsupportedError
from ..hosts.backend import QUEUE_CAPACITY
from ..ops import checks
from .shutdown import PROMPT_SECONDS, Shutdown
from .faults import SESSION_LOST, Failures, nothing_came, of_pipeline
from .input import END_OF_INPUT, Drawing, HostFeed, drawing
from .progress import RunReport

WARN_SECONDS = 60.0
_SLICE_SECONDS = 0.5


class Infeed(tf.train.SessionRunHook):
    """Runs the threads of all hosts for the sessions of one run."""

    def __init__(self, feeds: Sequence[HostFeed], close: tf.Operation, failures: Failures,
                 report: RunReport, deadline: float, ahead: int, draw: Drawing = drawing, *,
                 shutdown: Shutdown, proceed: Callable[[], None] = lambda: None,
                 made_by: str = ''):
        """Prepares threads that are started with each session.

        Args:
          feeds: one per host.
          close: ends every wait of the threads, and of a step for their batches.
          failures: where a thread says what went wrong.
          report: where counts of ids go, and how many steps have been run.
          deadline: seconds after which a host that produces nothing while a step waits for it
            is a failure.
          ahead: batches beyond its own that a step waits for.
          draw: makes what a thread calls once per step.
          shutdown: how long `stop` waits for a thread that is in an input pipeline.
          proceed: called now and then while a pipeline that starts is waited for; what it raises
            ends that.
          made_by: the input_fn and where it is, for messages; empty where nobody knows.
        """
        self._feeds = feeds
        self._proceed = proceed
        self._shutdown = shutdown
        self._make = functools.partial(
            _SessionFeed, feeds=feeds, close=close, failures=failures, report=report,
            deadline=deadline, ahead=ahead, draw=draw, shutdown=shutdown, made_by=made_by)
        self._current: _SessionFeed | None = None

    def after_create_session(self, session: tf.Session, coord: object) -> None:
        """Starts the threads, and they the datasets from their beginning.

        Raises:
          Whatever ended a thread.
        """
        self.stop()
        self._shutdown.restart()
        self._current = self._make(session)
        self._current.start(self._proceed)

    def request(self, steps: int, *, following: int) -> None:
        """Asks for the batches of more steps.

        Args:
          steps: how many will be run now.
          following: how many are sure to be run after those.
        """
        if self._current is not None:
            self._current.request(steps, following)

    def await_batch(self, gives_up: Callable[[], bool] = lambda: False) -> None:
        """Waits until every core has its batch of the next step.

        So a step that lacks data does not begin, and changes nothing.

        Args:
          gives_up: asked now and then while a batch is lacking.

        Raises:
          tf.errors.OutOfRangeError: if a host has no batch because its data has ended, or none
            has a sample, or `gives_up` says so.
          UnsupportedError: if no session was announced to this hook.
          Whatever ended a thread.
        """
        if self._current is None:
            raise UnsupportedError(Problem(
                'E907', 'TPUConfig.experimental_feed_hook', 'its after_create_session must call '
                'that of TPUInfeedOutfeedSessionHook, which starts the input'))
        self._current.await_batch(gives_up)

    def ended_input(self) -> str | None:
        """Whose data ended first, if that ended the run, or `None`."""
        return self._current.ended_input() if self._current is not None else None

    def interrupt(self) -> None:
        """Ends a wait of the step for its batch, from any thread; the step then fails."""
        if self._current is not None:
            self._current.interrupt()

    def stop(self) -> None:
        """Ends the threads; may be called at any time before the session is closed."""
        if self._current is not None:
            self._current.stop()


class _Host:
    """The thread of one host and what is known of its progress."""

    def __init__(self, number: int, feed: HostFeed):
        self.number = number
        self.feed = feed
        self.produced = 0
        self.produced_with_data = 0
        self.has_begun = False
        self.has_ended = False
        self.has_left = False
        self.idle_since = time.monotonic()
        self.thread: threading.Thread | None = None

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self.thread is not None and self.thread.is_alive()


class _SessionFeed:
    """The threads of one session.

    They draw only as many batches as steps were asked for, plus what fits into the queues
    while more steps are sure to come: the next batch is made while a step runs, and none is
    drawn that no step will use.
    """

    def __init__(self, session: tf.Session, *, feeds: Sequence[HostFeed], close: tf.Operation,
                 failures: Failures, report: RunReport, deadline: float, ahead: int,
                 draw: Drawing, shutdown: Shutdown, made_by: str):
        self._shutdown = shutdown
        self._session = session
        self._close = close
        self._failures = failures
        self._report = report
        self._deadline = deadline
        self._ahead = ahead
        self._draw = draw
        self._made_by = made_by
        self._steps_before = report.steps
        self._first_step = 0
        self._change = threading.Condition()
        self._allowed = 0
        self._ended_input: str | None = None
        self._lost: tf.errors.OpError | None = None
        self._stopping = False
        self._hosts = [_Host(number, feed) for number, feed in enumerate(feeds)]
        self._watcher = threading.Thread(target=self._watch, name='infeed-watch', daemon=True)

    def start(self, proceed: Callable[[], None]) -> None:
        """Starts the threads and waits until every dataset has begun: a pipeline may block there.

        Hooks that come later may then put the iterators elsewhere.
        """
        if self._report.verb == 'train':
            self._first_step = int(self._session.run(
                tf.train.get_global_step(self._session.graph)))
        for host in self._hosts:
            host.thread = threading.Thread(target=self._feed, args=(host,), daemon=True,
                                           name=f'infeed-{host.number}')
            host.thread.start()
        self._watcher.start()

        began = time.monotonic()

        def gives_up() -> bool:
            if time.monotonic() - began > PROMPT_SECONDS:
                proceed()
            return False

        self._await(self._have_begun, gives_up)

    def request(self, steps: int, following: int) -> None:
        with self._change:
            self._allowed = self._consumed() + steps + min(following, QUEUE_CAPACITY)
            for host in self._hosts:  # Time between runs is not the input's.
                host.idle_since = max(host.idle_since, time.monotonic())
            self._change.notify_all()

    def await_batch(self, gives_up: Callable[[], bool]) -> None:
        self._await(self._has_batch, gives_up)

    def _await(self, is_there: Callable[[], bool], gives_up: Callable[[], bool]) -> None:
        """Waits for what threads do, which is asked with the lock held."""
        while True:
            self._raise_failure()
            with self._change:
                if is_there():
                    return
                if gives_up():
                    raise tf.errors.OutOfRangeError(None, None, 'given up')
                self._change.wait(_SLICE_SECONDS)  # So that a failure and Ctrl-C are noticed.

    def _raise_failure(self) -> None:
        failure = self._failures.root_cause() or self._lost
        if failure is not None:
            raise failure

    def _require_alive(self, hosts: Sequence[_Host]) -> None:
        """Raises why a thread that is waited for has ended."""
        if not all(host.is_alive() for host in hosts):
            self._raise_failure()  # A thread says first why it ends.
            raise tf.errors.CancelledError(None, None, 'the input was cancelled')

    def _have_begun(self) -> bool:
        """Whether every dataset has."""
        lacking = [host for host in self._hosts if not host.has_begun]
        self._require_alive(lacking)
        return not lacking

    def _has_batch(self) -> bool:
        """Whether every core has its batch of the next step."""
        done = self._consumed()
        lacking = [host for host in self._hosts if host.produced <= done]
        if not lacking and any(host.produced_with_data > done for host in self._hosts):
            return True
        if not lacking or any(host.has_left for host in lacking):
            self._ended_input = min((host.produced_with_data, host.number, host.feed.name)
                                    for host in self._hosts if host.has_ended)[2]
            raise tf.errors.OutOfRangeError(None, None, 'end of input')
        self._require_alive(lacking)
        return False

    def ended_input(self) -> str | None:
        return self._ended_input

    def interrupt(self) -> None:
        self._run_quietly(self._close)

    def stop(self) -> None:
        with self._change:
            if self._stopping:
                return
            self._stopping = True
            self._change.notify_all()
        alive = [host for host in self._hosts if host.is_alive()]
        if alive:
            self._run_quietly(self._close)
        for host in alive:
            assert host.thread is not None
            if not self._shutdown.wait_for(host.thread, f'the input of {host.feed.name}'):
                tf.logging.warning('The input of %s still does not return after the run ended; '
                                   'its thread is left behind.', host.feed.name)
        self._shutdown.wait_for(self._watcher, 'the thread that watches the input')

    def _consumed(self) -> int:
        return self._report.steps - self._steps_before

    def _feed(self, host: _Host) -> None:
        """The life of one thread."""
        try:
            self._session.run(host.feed.initializer)
            draw = self._draw(self._session, host.number, host.feed)
            with self._change:
                host.has_begun = True
                self._change.notify_all()
            while self._may_produce(host):
                began = time.monotonic()
                counts, has_data = draw()
                self._report.add_counts(host.feed.counted, counts,
                                        (time.monotonic() - began) / len(self._hosts))
                with self._change:
                    host.produced += 1
                    host.produced_with_data += int(has_data)
                    host.has_ended = not has_data
                    self._change.notify_all()
        except BaseException as error:  # A thread has no caller; failures are its way out.
            if not self._stopping:  # Else the error is only that its wait was ended.
                self._leave(host, error)

    def _may_produce(self, host: _Host) -> bool:
        """Waits until another batch is wanted; False when the run is over."""
        with self._change:
            while not self._stopping and host.produced >= self._allowed:
                self._change.wait()
            host.idle_since = time.monotonic()
            return not self._stopping

    def _leave(self, host: _Host, error: BaseException) -> None:
        """Tells the others why the thread of a host ends."""
        message = error.message if isinstance(error, tf.errors.OpError) else ''
        problem = checks.message_to_problem(message)
        if problem is not None and problem.code == END_OF_INPUT or (
                not host.feed.is_dataset and isinstance(error, tf.errors.OutOfRangeError)):
            host.has_ended = host.has_left = True
            self._run_quietly(host.feed.end)
        elif isinstance(error, SESSION_LOST):
            self._lost = error
        else:
            batch = host.produced + 1
            self._failures.record(
                f'infeed of {host.feed.name} at its batch {batch}', of_pipeline(error, Problem(
                    'E520', f'input of {host.feed.name}', 'its pipeline must give a batch for '
                    f'step {self._first_step + batch}', type(error).__name__,
                    f'The dataset is that of {self._made_by}.' if self._made_by else '')))
            self._run_quietly(self._close)
        with self._change:
            self._change.notify_all()

    def _run_quietly(self, operation: tf.Operation) -> None:
        """Closes queues; that they are closed already, or the session is, does not matter."""
        try:
            self._session.run(operation)
        except (tf.errors.OpError, RuntimeError) as error:
            tf.logging.debug('closing the queues of the infeed: %s', error)

    def _watch(self) -> None:
        """Makes hosts that produce nothing visible, and after the deadline a failure."""
        warned_at = time.monotonic()
        while not self._stopping:
            with self._change:
                self._change.wait(min(1.0, self._deadline / 4))
            now = time.monotonic()
            waiting = [host for host in self._hosts if self._is_starving(host)]
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

    def _give_up(self, late: Sequence[_Host], now: float) -> None:
        """Says at once which hosts came too late: the end of the run may take its time."""
        errors = [nothing_came(host.feed.name, now - host.idle_since, has_stacks=not number)
                  for number, host in enumerate(late)]
        for host, error in zip(late, errors):
            self._failures.record(f'infeed of {host.feed.name}', error)
        tf.logging.error('%s', '\n'.join([*map(str, errors), *errors[0].__notes__]))
        self._run_quietly(self._close)
        with self._change:
            self._change.notify_all()

    def _is_starving(self, host: _Host) -> bool:
        """Whether a step wants a batch of this host that the host has not made."""
        with self._change:
            return host.is_alive() and (not host.has_begun or (
                host.produced <= self._consumed() + self._ahead
                and host.produced < self._allowed))
