"""Makes one `run` of a monitored session many steps: a hook that runs and counts them one by one.

Each step waits for its batch before it begins, and gets the feeds of the hooks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from .. import _tf
from .faults import Failures
from .finite import require_few_skipped, require_finite_loss
from .graph import StepOps
from .infeed import Infeed
from .progress import RunReport
from .schedule import Loop, Schedule


class StepResult(NamedTuple):
    """The tensors, and after a step the values, that are fetched of every step.

    Attributes:
      loss: float scalar.
      clock: see `measures.clock_of`.
      refused: a `Refused`, or `()` if the step has no tables to update.
    """

    loss: Any
    clock: Any
    refused: Any


class FeedsKept(tf.train.SessionRunHook):
    """Passes all calls on to a hook of the user and keeps the feeds of that hook.

    Attributes:
      feeds: of the run that is about to begin.
    """

    def __init__(self, hook: tf.train.SessionRunHook):
        """Stands for `hook`."""
        self.feeds: dict[Any, Any] = {}
        self.begin = hook.begin
        self.after_create_session = hook.after_create_session
        self.after_run = hook.after_run
        self.end = hook.end
        self._before_run = hook.before_run

    def before_run(self, run_context: tf.train.SessionRunContext) -> Any:
        """Returns the arguments that the hook asks for; keeps their feeds."""
        asked = self._before_run(run_context)
        self.feeds = dict(asked.feed_dict or {}) if asked is not None else {}
        return asked


class BatchSupply:
    """Asks for the batches of a loop at once, or for each batch only at its step."""

    def __init__(self, infeed: Infeed, report: RunReport, *, ahead: int, draws_ahead: bool,
                 gives_up: Callable[[float], bool]):
        """Asks an infeed.

        Args:
          report: gets the seconds that steps waited.
          ahead: batches beyond its own that a step waits for, 0 or 1.
          draws_ahead: whether batches may be drawn before their step. The batches that
            a step waits for are drawn in any case.
          gives_up: asked with the seconds that a batch has been lacking. If it returns true, the
            wait ends.
        """
        self._infeed, self._report, self._ahead = infeed, report, ahead
        self._draws_ahead, self._gives_up = draws_ahead, gives_up

    def request(self, loop: Loop, number: int) -> None:
        """Asks for the batches that step `number` of a loop needs, unless that was done before.

        Otherwise a loop cut short would leave batches behind.
        """
        following = loop.steps - 1 - number + loop.following
        if not self._draws_ahead:
            self._infeed.request(1, following=min(following, self._ahead))
        elif not number:
            self._infeed.request(loop.steps, following=loop.following)

    def wait(self) -> None:
        """Waits for the batch of the next step.

        Raises:
          See `Infeed.await_batch`.
        """
        began = time.monotonic()
        self._infeed.await_batch(lambda: self._gives_up(time.monotonic() - began))
        self._report.time.input += time.monotonic() - began


class StepCaller:
    """Runs steps of a loop one by one.

    Every step gets the feeds of all hooks. The host_call runs in the first step of a loop and in
    every so many after it.
    """

    def __init__(self, ops: StepOps, clock: tf.Tensor, hooks: Sequence[FeedsKept],
                 host_call_every: int):
        """Prepares to run a step.

        Args:
          clock: its times; see `measures.clock_of`.
          hooks: may feed tensors of the step.
          host_call_every: steps from one host_call to the next.
        """
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
        """Returns the arguments of the run of the session that makes the last step of a loop.

        The results of that run begin with the `StepResult`.

        Args:
          number: of the step, counted from 0.
          has_next: whether a step of another loop is sure to follow.
        """
        return tf.train.SessionRunArgs([self._fetched, *self._host_calls(number)],
                                       feed_dict=self._ops.feeds(has_next=has_next))

    def _host_calls(self, number: int) -> list[tf.Operation]:
        """Returns the host_call if step `number` of a loop makes it."""
        is_due = number % self._host_call_every == 0
        return [self._ops.host_call] if is_due and self._ops.host_call is not None else []


class StepsPerRun(tf.train.SessionRunHook):
    """Makes one `run` of a monitored session many steps; must be its last hook.

    All steps but the last run in `before_run`, after the `before_run` of every other hook; the
    last is the run itself. So hooks see one run per loop, may fetch any tensor of the model,
    and Ctrl-C and failures of threads are noticed between steps.
    """

    def __init__(self, schedule: Schedule, supply: BatchSupply, caller: StepCaller,
                 report: RunReport, failures: Failures, *, is_over: Callable[[], bool]):
        """Makes the steps of a run.

        Args:
          failures: of other threads, which end the run.
          is_over: asked between steps. If it returns true, the run ends with at most one step
            more.
        """
        self._schedule, self._supply, self._caller = schedule, supply, caller
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
        self._supply.request(loop, 0)
        self._caller.begin_loop(session)
        self._supply.wait()
        number = 0
        while number < loop.steps - 1 and not self._is_over():
            result = self._caller.run(session, number)
            self._count(result)
            if self._schedule.requires_finite_loss:
                require_finite_loss(result.loss, session, self._global_step)
            number += 1
            self._supply.request(loop, number)
            self._supply.wait()
        self._steps, self._is_last = number + 1, self._is_over()
        return self._caller.last(number, has_next=loop.following > 0 and not self._is_last)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Counts the last step."""
        self._count(run_values.results[0])
        self._schedule.add(time.monotonic() - self._began, self._steps)
        if self._is_last or self._schedule.is_one_loop:
            run_context.request_stop()

    def _count(self, result: StepResult) -> None:
        """Counts a step in the report.

        Raises:
          DivergedError: if too many steps in a row changed no table.
          Whatever failed first, in whichever thread.
        """
        self._report.add_step()
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
