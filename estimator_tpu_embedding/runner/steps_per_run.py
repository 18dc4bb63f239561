"""Makes one `run` of a monitored session many steps: a hook that runs and counts them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from .batch_supply import BatchSupply
from .faults import Failures
from .finite import require_few_skipped, require_finite_loss
from .progress import RunReport
from .schedule import Schedule
from .step_caller import StepCaller
from .step_ops import StepResult


class StepCount:
    """Counts steps in the report of a run, and ends a run that must not go on."""

    def __init__(self, report: RunReport, failures: Failures):
        """Counts.

        Args:
          report: of the run.
          failures: of other threads, which are looked at after each step.
        """
        self._report, self._failures = report, failures
        self._skipped_in_a_row = 0

    def add(self, result: StepResult) -> None:
        """Counts a step.

        Raises:
          DivergedError: if too many steps in a row changed no table.
          Whatever failed first, in whichever thread.
        """
        self._report.add_step()
        self._report.time.add_step(result.clock)
        refused = result.refused
        is_skipped = bool(refused) and len(refused.tables) > 0
        self._skipped_in_a_row = self._skipped_in_a_row + 1 if is_skipped else 0
        if is_skipped:
            self._report.add_skipped(int(refused.step),
                                     [name.decode() for name in refused.tables])
            require_few_skipped(self._skipped_in_a_row, int(refused.step))
        failure = self._failures.root_cause()
        if failure is not None:
            raise failure


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
          schedule: says how many.
          supply: gives each its batch.
          caller: runs one.
          report: counts them.
          failures: of other threads, which end the run.
          is_over: asked between steps. If it returns true, the run ends with at most one step
            more.
        """
        self._schedule, self._supply, self._caller = schedule, supply, caller
        self._report, self._count = report, StepCount(report, failures)
        self._is_over, self._is_last = is_over, False
        self._steps, self._began = 1, 0.0
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
        self._supply.begin_loop(loop)
        self._caller.begin_loop(session)
        self._supply.wait()
        number = 0
        while number < loop.steps - 1 and not self._is_over():
            result = self._caller.run(session, number)
            self._count.add(result)
            if self._schedule.requires_finite_loss:
                require_finite_loss(result.loss, session, self._global_step)
            number += 1
            self._supply.begin_step(loop.steps - 1 - number + loop.following)
            self._supply.wait()
        self._steps, self._is_last = number + 1, self._is_over()
        return self._caller.last(number, has_next=loop.following > 0 and not self._is_last)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Counts the last step."""
        self._count.add(run_values.results[0])
        self._schedule.add(time.monotonic() - self._began, self._steps)
        if self._is_last or self._schedule.is_one_loop:
            run_context.request_stop()
