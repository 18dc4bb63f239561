"""Hooks that end a run: at a step, or because its numbers or its threads have failed."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from .faults import Failures
from .infeed import Infeed
from .progress import RunReport


class StopAtStep(tf.train.SessionRunHook):
    """Ends training when the global step has been reached.

    Attributes:
      final_step: the step to stop at; known once a session exists.
    """

    def __init__(self, steps: int | None, max_steps: int | None):
        """Stops after `steps` steps from where the session begins, or at `max_steps`."""
        self._steps = steps
        self._max_steps = max_steps
        self._global_step: tf.Variable | None = None
        self.final_step = max_steps or 0

    def begin(self) -> None:
        """Finds the global step."""
        self._global_step = tf.train.get_global_step()

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Fixes the final step at the first session; a recovered one does not move it."""
        if self._max_steps is None and not self.final_step:
            self.final_step = int(session.run(self._global_step)) + (self._steps or 0)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Asks for the end if it is time."""
        if run_context.session.run(self._global_step) >= self.final_step:
            run_context.request_stop()


class FiniteLoss(tf.train.SessionRunHook):
    """Fails at a loss that is not a number, before any later hook can save the state."""

    def __init__(self, loss: tf.Tensor):
        """Guards `loss`; must be the first hook of its session."""
        self._loss = loss

    def before_run(self, run_context: tf.train.SessionRunContext) -> tf.train.SessionRunArgs:
        """Asks for the loss."""
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Checks it."""
        check_loss(run_values.results)


def check_loss(loss: Any) -> None:
    """Raises what TensorFlow raises for a loss that is not a number."""
    if np.isnan(loss):
        raise tf.train.NanLossDuringTrainingError


class StepsPerRun(tf.train.SessionRunHook):
    """Makes one `run` of a monitored session many steps; must be its last hook.

    All steps but the last run in `before_run`, after the `before_run` of every other hook; the
    last is the run itself. So hooks see one run per loop, may fetch any tensor of the model,
    and Ctrl-C and failures of threads are noticed between steps.
    """

    def __init__(self, step: tf.Operation, loss: tf.Tensor, infeed: Infeed, failures: Failures,
                 report: RunReport, *, steps_per_run: int, stop: StopAtStep | None):
        """Runs `steps_per_run` steps per run, fewer where `stop` comes earlier.

        Args:
          step: runs one step.
          loss: its loss.
          infeed: is told how many batches are wanted.
          failures: of other threads, checked between steps.
          report: counts the steps.
          steps_per_run: steps of one run.
          stop: ends the run; `None` for an evaluation, where one run is all and the loss may
            be anything.
        """
        self._step = step
        self._loss = loss
        self._infeed = infeed
        self._failures = failures
        self._report = report
        self._steps_per_run = steps_per_run
        self._stop = stop
        self._global_step: tf.Variable | None = None

    def begin(self) -> None:
        """Finds the global step."""
        self._global_step = tf.train.get_global_step()

    def before_run(self, run_context: tf.train.SessionRunContext) -> None:
        """Runs all steps of the loop but the last."""
        steps, following = self._steps_per_run, 0
        if self._stop is not None:
            left = self._stop.final_step - int(run_context.session.run(self._global_step))
            steps = max(1, min(steps, left))
            following = max(0, left - steps)
        self._infeed.request(steps, following=following)
        for _ in range(steps - 1):
            loss, _ = run_context.session.run([self._loss, self._step])
            self._count()
            if self._stop is not None:
                check_loss(loss)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Counts the last step."""
        self._count()
        if self._stop is None:
            run_context.request_stop()

    def _count(self) -> None:
        self._report.steps += 1
        failure = self._failures.root_cause()
        if failure is not None:
            raise failure
