"""The trainings of plain Estimators, and of TPUEstimators without a TPU, are counted too."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _process
from ..runner.plain_steps import PlainSteps
from ..runner.progress import RunReport


def count_steps() -> None:
    """Has every plain Estimator report its trainings as runs of this package are reported."""
    cls = _legacy.estimator_class()
    original = cls._train_with_estimator_spec
    if hasattr(original, '__wrapped__'):
        return  # By an earlier install().

    @functools.wraps(original)
    def counted(self: Any, estimator_spec: Any, worker_hooks: list[Any], hooks: Sequence[Any],
                global_step_tensor: Any, saving_listeners: Any) -> Any:
        _process.require_threads('train')
        report = RunReport('train', _batch_size(self) or 0, trainer=_name_of(self),
                           directory=self.model_dir)
        saves = self.config.save_checkpoints_secs or self.config.save_checkpoints_steps or any(
            isinstance(hook, tf.train.CheckpointSaverHook) for hook in (
                *worker_hooks, *hooks, *estimator_spec.training_hooks,
                *estimator_spec.training_chief_hooks))
        if not saves and self.config.is_chief and not saving_listeners:
            report.tell_that_nothing_is_saved()
        steps = PlainSteps(report, global_step_tensor, estimator_spec.loss)
        try:
            return original(self, estimator_spec, worker_hooks, [*hooks, steps],
                            global_step_tensor, saving_listeners)
        finally:
            report.finish()

    cls._train_with_estimator_spec = counted


def _batch_size(estimator: Any) -> int | None:
    """The global batch size, which only a TPUEstimator knows."""
    sizes: dict[str, int | None] = getattr(estimator, '_batch_sizes', {})
    return sizes.get('train_batch_size')


def _name_of(estimator: Any) -> str:
    name = type(estimator).__name__.removesuffix('V2')
    return f'{name} without TPU' if hasattr(estimator, '_use_tpu') else name
