"""Counts the steps of a plain Estimator, whose training this package does not run."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import tensorflow.compat.v1 as tf

from .progress import RunReport


class PlainSteps(tf.train.SessionRunHook):
    """Counts the runs of the session of a plain Estimator; each is one step."""

    def __init__(self, report: RunReport, global_step: Any):
        """Counts into `report`.

        Args:
          report: of the training.
          global_step: tensor to read the step from.
        """
        self._report, self._global_step, self._began = report, global_step, 0.0
        self._has_begun = False

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Finds where the training begins; a session that is made again does not move it."""
        if not self._has_begun:
            self._has_begun = True
            self._report.first_step = int(session.run(self._global_step))

    def before_run(self, run_context: tf.train.SessionRunContext) -> None:
        """Starts the clock."""
        self._began = time.monotonic()

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Counts a step."""
        self._report.add_step()
        self._report.add_run(time.monotonic() - self._began)

    def end(self, session: tf.Session) -> None:
        """Takes the global step instead: with several workers one run may be many steps."""
        with contextlib.suppress(tf.errors.OpError, RuntimeError):  # Others may have ended first.
            made = int(session.run(self._global_step)) - self._report.first_step
            self._report.steps = max(made, self._report.steps)
