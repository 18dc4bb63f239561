"""`etpe run --steps N` for Estimators that are not TPUEstimators."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, defaults


def limit_plain_estimators() -> None:
    """Lets every plain Estimator train as many steps per call as `step_limit` says, at most."""
    cls = _legacy.estimator_class()
    original = cls._convert_train_steps_to_hooks
    if hasattr(original, '__wrapped__'):
        return  # By an earlier install().

    @functools.wraps(original)
    def limited(self: Any, steps: int | None, max_steps: int | None
                ) -> list[tf.train.SessionRunHook]:
        hooks: list[tf.train.SessionRunHook] = original(self, steps, max_steps)
        limit = defaults.current().step_limit
        return hooks if limit is None else [*hooks, tf.train.StopAtStepHook(num_steps=limit)]

    cls._convert_train_steps_to_hooks = limited
