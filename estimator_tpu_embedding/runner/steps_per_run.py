"""Makes one `run` of a monitored session many steps, one by one, and says how many.

Each step waits for its batch before it begins, and gets the feeds of the hooks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from .. import _legacy, _tf
from ..errors import Problem
from .failures import Failures, SessionLostError
from .finite_checks import require_few_skipped, require_finite_loss
from .infeed import Infeed
from .progress import RunReport
from .step_graph import StepOps


class Loop(NamedTuple):
    """The steps of one run of a session, at least 1; how many are sure to follow, if it matters."""

    steps: int
    following: int


class Schedule:
    """Makes every run of a session alike: in one loop or, until the data ends, step by step.

    Attributes:
      requires_finite_loss: whether a loss that is not finite ends the run.
      is_one_loop: whether one run of the session makes all steps.
    """

    requires_finite_loss = False

    def __init__(self, loop: Loop, *, is_one_loop: bool = False):
        self._loop, self.is_one_loop = loop, is_one_loop

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns the steps of the next run, and tells the report the last step of all."""
        return self._loop

    def add(self, seconds: float, steps: int) -> None:
        """Takes note of the time that a run took."""


class TrainingSchedule(Schedule):
    """Makes loops of a number of steps or, if `seconds` is given, as long; up to a last step."""

    requires_finite_loss = True

    def __init__(self, stop: StopAtStep, steps: int, seconds: float | None = None):
        super().__init__(Loop(steps, 0))
        self._stop = stop
        self._seconds = seconds
        self._estimator = _legacy.module(
            'tpu.iteration_count_estimator').IterationCountEstimator()

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns the steps of the next loop, fewer than usual if the end comes earlier."""
        left = self._stop.steps_left(session)
        wanted = self._loop.steps if self._seconds is None else self._estimator.get(self._seconds)
        steps = max(1, min(wanted, left))
        report.first_step = self._stop.final_step - left - report.steps
        return Loop(steps, max(0, left - steps))

    def add(self, seconds: float, steps: int) -> None:
        """Lets the estimator know the time of a loop."""
        self._estimator.update(seconds, steps)


class StopAtStep(tf.train.SessionRunHook):
    """Ends training when the global step has reached the final step."""

    def __init__(self, steps: int | None, max_steps: int | None, limit: int | None = None):
        """Stops after `steps` or `limit` steps or at step `max_steps`, whichever comes first."""
        self._steps = steps
        self._limit = limit
        self._wanted = max_steps
        self._final_step: int | None = None
        self._global_step: tf.Tensor | None = None
        self._last_step = -1
        self._has_warned = False

    @property
    def final_step(self) -> int:
        """The step to stop at; known once a session exists."""
        assert self._final_step is not None
        return self._final_step

    def steps_left(self, session: tf.Session) -> int:
        """Returns how many steps lie between the global step and the final step."""
        return self.final_step - int(session.run(self._global_step))

    def begin(self) -> None:
        """Finds the global step as the saver reads it: a session optimizes each fetch by itself."""
        self._global_step = _tf.global_step_read(tf.get_default_graph())

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Fixes the final step at the first session; a recovered one does not move it.

        A session that is recovered at the final step is an error: the end of the run was lost, and
        another step would be one too many.
        """
        self._last_step = int(session.run(self._global_step))
        if self._final_step is not None and self._last_step >= self._final_step:
            raise SessionLostError(Problem(
                'E802', 'session', 'the last one must reach the end of the training',
                f'an Aborted or Unavailable error after step {self._last_step}, which is saved',
                'It is in the log above: perhaps of a hook, or of a listener of the saver.'))
        if self._final_step is None:
            ends = [self._wanted, *[self._last_step + steps for steps in (
                self._steps, self._limit) if steps is not None]]
            self._final_step = min(end for end in ends if end is not None)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Asks for the end if it is time; warns of a step that stands still."""
        step = int(run_context.session.run(self._global_step))
        if step >= self.final_step:
            run_context.request_stop()
        elif step == self._last_step and not self._has_warned:
            self._has_warned = True
            tf.logging.warning(
                'The global step is %d as before this run, so training to step %d may never '
                'end. Pass tf.train.get_global_step() to minimize() or apply_gradients().',
                step, self.final_step)
        self._last_step = step


def clock_of(looked_up: tf.Operation, trained: tf.Operation, done: tf.Operation) -> tf.Tensor:
    """Returns when a step began, had looked up, had trained and was done: float64 `[4]`, seconds.
    """
    times = [tf.timestamp()]
    for ended in (looked_up, trained, done):
        with tf.control_dependencies([times[-1], ended]):
            times.append(tf.timestamp())
    return tf.stack(times)


class StepResult(NamedTuple):
    """What is fetched of a step; see `clock_of`, and `Refused`, instead of which there may be `()`.
    """

    loss: Any
    clock: Any
    refused: Any


class FeedsKept(tf.train.SessionRunHook):
    """Passes all calls on to a hook of the user; keeps the `feeds` of the run about to begin."""

    def __init__(self, hook: tf.train.SessionRunHook):
        self.feeds: dict[Any, Any] = {}
        self.begin = hook.begin
        self.after_create_session = hook.after_create_session
        self.after_run = hook.after_run
        self.end = hook.end
        self._before_run = hook.before_run

    def before_run(self, run_context: tf.train.SessionRunContext) -> Any:
        """Returns the arguments that the hook asks for."""
        asked = self._before_run(run_context)
        self.feeds = dict(asked.feed_dict or {}) if asked is not None else {}
        return asked


class StepCaller:
    """Runs steps of a loop one by one, with the feeds of all hooks.

    The host_call runs in the first step of a loop and in every `host_call_every`-th after it.
    """

    def __init__(self, ops: StepOps, clock: tf.Tensor, hooks: Sequence[FeedsKept],
                 host_call_every: int):
        self._ops, self._hooks, self._host_call_every = ops, hooks, host_call_every
        self._fetched = StepResult(ops.loss, clock, () if ops.refused is None else ops.refused)
        self._has_looked_ahead = False
        self._feeds: dict[Any, Any] = {}
        self._callables: dict[bool, Any] = {}

    def begin_session(self) -> None:
        """Forgets the session before."""
        self._callables = {}
        self._has_looked_ahead = self._ops.lookahead is None

    def begin_loop(self, session: tf.Session) -> None:
        """Takes over the feeds of hooks; in a new session it looks up the first batch."""
        if not self._has_looked_ahead:
            assert self._ops.lookahead is not None
            session.run(self._ops.lookahead.begin)
            self._has_looked_ahead = True
        self._feeds = {key: value for hook in self._hooks for key, value in hook.feeds.items()}

    def run(self, session: tf.Session, number: int) -> StepResult:
        """Runs step `number` of a loop, counted from 0; it is not the last step."""
        calls = self._host_calls(number)
        fed = self._ops.feeds(has_next=True)
        if self._feeds:
            result, *_ = session.run([self._fetched, self._ops.operation, *calls],
                                     {**self._feeds, **fed})
            return result
        key = bool(calls)
        if key not in self._callables:  # TensorFlow optimizes the graph for each by itself.
            self._callables[key] = _tf.fast_callable(
                session, list(fed), [self._fetched.loss, self._fetched.clock,
                                     *self._fetched.refused], [self._ops.operation, *calls])
        loss, clock, *parts = self._callables[key](*map(np.array, fed.values()))
        return StepResult(loss, clock, type(self._fetched.refused)(*parts))

    def last(self, number: int, *, has_next: bool) -> tf.train.SessionRunArgs:
        """Returns the arguments of the session's run that makes the last step of a loop.

        The results of that run begin with the `StepResult`. `has_next` says whether a step of
        another loop is sure to follow.
        """
        return tf.train.SessionRunArgs([self._fetched, *self._host_calls(number)],
                                       feed_dict=self._ops.feeds(has_next=has_next))

    def _host_calls(self, number: int) -> list[tf.Operation]:
        is_due = number % self._host_call_every == 0
        return [self._ops.host_call] if is_due and self._ops.host_call is not None else []


class StepsPerRun(tf.train.SessionRunHook):
    """Makes one `run` of a monitored session many steps; must be its last hook.

    All steps but the last run in `before_run`, after the `before_run` of every other hook; the
    last is the run itself. So hooks see one run per loop, may fetch any tensor of the model,
    and Ctrl-C and failures of threads are noticed between steps.
    """

    def __init__(self, schedule: Schedule, infeed: Infeed, caller: StepCaller,
                 report: RunReport, failures: Failures, *, is_over: Callable[[], bool]):
        """Makes the steps of a run.

        Args:
          failures: of other threads, which end the run.
          is_over: asked between steps; ends the run with at most one step more.
        """
        self._schedule, self._infeed, self._caller = schedule, infeed, caller
        self._report, self._failures = report, failures
        self._is_over, self._is_last = is_over, False
        self._steps, self._began, self._skipped_in_a_row = 1, 0.0, 0
        self._global_step: tf.Variable | None = None

    def begin(self) -> None:
        """Finds the global step."""
        self._global_step = tf.train.get_global_step()

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Forgets the session before."""
        self._caller.begin_session()

    def before_run(self, run_context: tf.train.SessionRunContext) -> tf.train.SessionRunArgs:
        """Runs all steps of the loop but the last."""
        session = run_context.session
        loop = self._schedule.next_loop(session, self._report)
        self._began = time.monotonic()
        self._infeed.request(0, *loop)
        self._caller.begin_loop(session)
        self._await_batch()
        number = 0
        while number < loop.steps - 1 and not self._is_over():
            result = self._caller.run(session, number)
            self._count(result)
            if self._schedule.requires_finite_loss:
                require_finite_loss(result.loss, session, self._global_step)
            number += 1
            self._infeed.request(number, *loop)
            self._await_batch()
        self._steps, self._is_last = number + 1, self._is_over()
        return self._caller.last(number, has_next=loop.following > 0 and not self._is_last)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Counts the last step."""
        self._count(run_values.results[0])
        self._schedule.add(time.monotonic() - self._began, self._steps)
        if self._is_last or self._schedule.is_one_loop:
            run_context.request_stop()

    def _await_batch(self) -> None:
        began = time.monotonic()
        self._infeed.await_batch()
        self._report.time.input += time.monotonic() - began

    def _count(self, result: StepResult) -> None:
        """Counts a step, and raises the reason to end the run after it, if there is one."""
        self._report.steps += 1
        self._report.time.add_step(result.clock)
        refused = result.refused
        if bool(refused) and len(refused.tables) > 0:
            self._skipped_in_a_row += 1
            self._report.add_skipped(int(refused.step),
                                     [name.decode() for name in refused.tables])
            require_few_skipped(self._skipped_in_a_row, int(refused.step))
        else:
            self._skipped_in_a_row = 0
        failure = self._failures.root_cause()
        if failure is not None:
            raise failure
