"""The hook that makes one `run` of a session many steps, and what it needs of other hooks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from .. import _tf
from ..hosts.backend import QUEUE_CAPACITY
from .faults import Failures
from .finite import require_few_skipped, require_finite_loss
from .infeed import Infeed
from .pace import Pace
from .progress import RunReport
from .stop_at_step import StopAtStep


class FeedsKept(tf.train.SessionRunHook):
    """Passes everything on to a hook of the user and keeps what it feeds.

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
        """What the hook asks for."""
        asked = self._before_run(run_context)
        self.feeds = dict(asked.feed_dict or {}) if asked is not None else {}
        return asked


class StepOps(NamedTuple):
    """What `StepsPerRun` runs and feeds; see `graph.StepGraph`."""

    step: tf.Operation
    host_call: tf.Operation | None
    loss: tf.Tensor
    clock: tf.Tensor
    refused: Any
    is_step: tf.Tensor
    begin: tf.Operation | None
    has_next: tf.Tensor | None


class StepsPerRun(tf.train.SessionRunHook):
    """Makes one `run` of a monitored session many steps; must be its last hook.

    All steps but the last run in `before_run`, after the `before_run` of every other hook; the
    last is the run itself. So hooks see one run per loop, may fetch any tensor of the model,
    and Ctrl-C and failures of threads are noticed between steps.
    """

    def __init__(self, ops: StepOps, infeed: Infeed, failures: Failures, report: RunReport, *,
                 pace: Pace, stop: StopAtStep | None, others: Sequence[FeedsKept],
                 until_data_ends: bool = False, host_call_every: int = 1,
                 is_over: Callable[[], bool] = lambda: False,
                 gives_up: Callable[[float], bool] = lambda waited: False,
                 draws_ahead: bool = True):
        """Runs as many steps per run as `pace` says, fewer where `stop` comes earlier.

        Args:
          ops: of one step.
          infeed: is told how many batches are wanted.
          failures: of other threads, checked between steps.
          report: counts the steps.
          pace: of the steps.
          stop: ends the run; `None` for an evaluation, where one run is all and the loss may
            be anything.
          others: what they feed is fed to every step of the loop.
          until_data_ends: run on without `stop`, for a prediction.
          host_call_every: the host_call runs in the first step of a run and in every so many
            after it.
          is_over: asked between steps; once it says so, the run ends with at most one step more.
          gives_up: asked with the seconds that a batch has been lacking; once it says so, none is
            waited for.
          draws_ahead: whether input may be drawn before its step; a look-up of the next step,
            where the backend makes one, is drawn for in any case.
        """
        self._is_over, self._gives_up, self._is_last = is_over, gives_up, False
        self._ops = ops
        self._others = others
        self._infeed = infeed
        self._failures = failures
        self._report = report
        self._pace = pace
        self._host_call_every = host_call_every
        self._draws_ahead = draws_ahead
        self._steps, self._began, self._skipped_in_a_row = 1, 0.0, 0
        self._stop = stop
        self._until_data_ends = until_data_ends
        self._global_step: tf.Variable | None = None
        self._callables: dict[bool, Any] = {}
        self._has_begun = False

    def begin(self) -> None:
        """Finds the global step."""
        self._global_step = tf.train.get_global_step()

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Forgets the session before."""
        self._callables = {}
        self._has_begun = self._ops.begin is None

    def before_run(self, run_context: tf.train.SessionRunContext) -> tf.train.SessionRunArgs:
        """Runs all steps of the loop but the last."""
        steps, following = self._pace.steps(), QUEUE_CAPACITY if self._until_data_ends else 0
        if self._stop is not None:
            left = self._stop.final_step - int(run_context.session.run(self._global_step))
            steps = max(1, min(steps, left))
            following = max(0, left - steps)
            self._report.last_step = self._stop.final_step
            self._report.first_step = self._stop.final_step - left - self._report.steps
        elif not self._until_data_ends:
            self._report.last_step = steps
        self._began = time.monotonic()
        if self._draws_ahead:
            self._infeed.request(steps, following=following)
        else:
            self._request_next(steps - 1 + following)
        if not self._has_begun:
            run_context.session.run(self._ops.begin)
            self._has_begun = True
        self._await_batch()
        feeds = {key: value for hook in self._others for key, value in hook.feeds.items()}
        number = 0
        while number < steps - 1 and not self._is_over():
            loss, clock, refused = self._run_step(run_context.session, number, feeds)
            self._count(clock, refused, loss)
            if self._stop is not None:
                require_finite_loss(loss, run_context.session, self._global_step)
            if not self._draws_ahead:  # Else a loop that is cut short leaves drawn batches behind.
                self._request_next(steps - 2 - number + following)
            self._await_batch()
            number += 1
        self._steps, self._is_last = number + 1, self._is_over()
        loss, _, clock, refused, *rest = self._fetches(self._has_host_call(number))
        return tf.train.SessionRunArgs(
            [clock, refused, loss, *rest], feed_dict=self._fed(following > 0 and not self._is_last))

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Counts the last step."""
        self._count(*run_values.results[:3])
        self._pace.add(time.monotonic() - self._began, self._steps)
        if self._is_last or self._stop is None and not self._until_data_ends:
            run_context.request_stop()

    def _has_host_call(self, number: int) -> bool:
        """Whether step `number` of a run calls it."""
        return number % self._host_call_every == 0

    def _request_next(self, following: int) -> None:
        """Asks for the batch of one step, and of what is looked up in it for the next."""
        self._infeed.request(1, following=min(following, int(self._ops.begin is not None)))

    def _await_batch(self) -> None:
        """Waits for the batches of a step, on the account of the input."""
        began = time.monotonic()
        self._infeed.await_batch(lambda: self._gives_up(time.monotonic() - began))
        self._report.time.input += time.monotonic() - began

    def _fetches(self, has_host_call: bool) -> list[Any]:
        """What a step consists of: loss, step, clock, what it refused, perhaps the host_call."""
        refused = () if self._ops.refused is None else self._ops.refused
        with_call = has_host_call and self._ops.host_call is not None
        return [self._ops.loss, self._ops.step, self._ops.clock, refused, *(
            [self._ops.host_call] if with_call else [])]

    def _run_step(self, session: tf.Session, number: int, feeds: dict[Any, Any]
                  ) -> tuple[Any, Any, Any]:
        """The loss of a step, its clock, and what it refused."""
        fed, has_host_call = self._fed(has_next=True), self._has_host_call(number)
        loss, step, clock, refused, *host_call = fetches = self._fetches(has_host_call)
        if feeds:
            loss, _, clock, refused, *_ = session.run(fetches, {**feeds, **fed})
            return loss, clock, refused
        key = bool(host_call)
        if key not in self._callables:  # TensorFlow optimizes the graph for each by itself.
            self._callables[key] = _tf.fast_callable(
                session, list(fed), [loss, clock, *refused], [step, *host_call])
        loss, clock, *parts = self._callables[key](*map(np.array, fed.values()))
        return loss, clock, type(refused)(*parts)

    def _fed(self, has_next: bool) -> dict[Any, bool]:
        fed = {self._ops.is_step: True}
        if self._ops.has_next is not None:
            fed[self._ops.has_next] = has_next
        return fed

    def _count(self, clock: Any, refused: Any, loss: Any) -> None:
        self._report.add_step(loss)
        self._report.time.add_step(clock)
        is_skipped = bool(refused) and len(refused.tables) > 0
        self._skipped_in_a_row = self._skipped_in_a_row + 1 if is_skipped else 0
        if is_skipped:
            self._report.add_skipped(int(refused.step),
                                     [name.decode() for name in refused.tables])
            require_few_skipped(self._skipped_in_a_row, int(refused.step))
        failure = self._failures.root_cause()
        if failure is not None:
            raise failure
