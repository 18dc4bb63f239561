"""Limits and reports the trainings of plain Estimators, and of TPUEstimators without a TPU."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _process, defaults
from ..errors import Problem
from ..estimator import without_tpu
from ..runner.progress import RunReport, announce


def put_in_place() -> None:
    """Limits each training of a plain Estimator, and reports it as runs of this package are."""
    _legacy.surround_trainings(_limited_and_counted)


@contextlib.contextmanager
def _limited_and_counted(training: _legacy.Training) -> Iterator[list[tf.train.SessionRunHook]]:
    """Reports one training; yields the hooks that limit and count its steps."""
    _process.require_threads('train')
    estimator, spec = training.estimator, training.spec
    _tell_of_workers(estimator)
    report = RunReport('train', without_tpu.train_batch_size(estimator) or 0,
                       trainer=_name_of(estimator), directory=estimator.model_dir)
    saves = (estimator.config.save_checkpoints_secs or estimator.config.save_checkpoints_steps
             or any(isinstance(hook, tf.train.CheckpointSaverHook) for hook in (
                 *training.hooks, *spec.training_hooks, *spec.training_chief_hooks)))
    if not saves and estimator.config.is_chief and not training.listeners:
        report.tell_that_nothing_is_saved()
    limit = defaults.current().step_limit
    limiting = [] if limit is None else [tf.train.StopAtStepHook(num_steps=limit)]
    try:
        yield [*limiting, _Steps(report, training.global_step)]
    finally:
        report.finish()


class _Steps(tf.train.SessionRunHook):
    """Counts the runs of the session of a plain Estimator; each is one step."""

    def __init__(self, report: RunReport, global_step: Any):
        self._report, self._global_step, self._began = report, global_step, 0.0

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Finds where the training begins; a session that is made again does not move it."""
        if not self._report.steps:
            self._report.first_step = int(session.run(self._global_step))

    def before_run(self, run_context: tf.train.SessionRunContext) -> None:
        """Starts the clock."""
        self._began = time.monotonic()

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Counts a step."""
        self._report.steps += 1
        self._report.add_run(time.monotonic() - self._began)

    def end(self, session: tf.Session) -> None:
        """Takes the global step instead: with several workers one run may be many steps."""
        with contextlib.suppress(tf.errors.OpError, RuntimeError):  # Others may have ended first.
            made = int(session.run(self._global_step)) - self._report.first_step
            self._report.steps = max(made, self._report.steps)


def _tell_of_workers(estimator: Any) -> None:
    """Says that workers were chosen, and that this training does not use them."""
    choices = [getattr(estimator.config, 'workers', None), defaults.current().cluster]
    if any(one.is_used or one.is_from_script for one in choices if one is not None):
        announce(str(Problem(
            'W701', _name_of(estimator), 'it trains in this process, and uses no workers',
            'workers were chosen', 'Only a TPUEstimator with use_tpu=True uses them.')))


def _name_of(estimator: Any) -> str:
    name = type(estimator).__name__.removesuffix('V2')
    return f'{name} without TPU' if isinstance(estimator, without_tpu.WithoutTpu) else name
