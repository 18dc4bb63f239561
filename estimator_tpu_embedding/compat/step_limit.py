"""Limits the trainings of plain Estimators to the steps of `etpe run --steps N`."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from .. import _legacy, defaults


def limit_plain_estimators() -> None:
    """Limits each training of a plain Estimator to the step limit of the process."""
    _legacy.add_train_hooks(_limits)


def _limits() -> list[tf.train.SessionRunHook]:
    limit = defaults.current().step_limit
    return [] if limit is None else [tf.train.StopAtStepHook(num_steps=limit)]
