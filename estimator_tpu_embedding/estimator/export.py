"""Exports a plain Estimator in the way of a TPUEstimator: `export_estimator_savedmodel`.

It also holds `BatchConfig`, which scripts may make, and which has no effect here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _legacy
from .estimator import TPUEstimator
from .run_config import RunConfig
from .tpu_config import InputPipelineConfig, TPUConfig


class BatchConfig(NamedTuple):
    """The batching of a TPU server. Nothing here uses it; scripts may make one."""

    num_batch_threads: int
    max_batch_size: int
    batch_timeout_micros: int
    allowed_batch_sizes: list[int] | None
    max_enqueued_batches: int = 100


def export_estimator_savedmodel(estimator: Any, export_dir_base: str,
                                serving_input_receiver_fn: Callable[[], Any],
                                assets_extra: dict[str, str] | None = None,
                                as_text: bool = False, checkpoint_path: str | None = None) -> Any:
    """Exports the model of a plain Estimator, as a TPUEstimator with its model_fn does.

    Args:
      estimator: has a model_fn that takes params, and a model_dir.
      export_dir_base: see `tf.estimator.Estimator.export_saved_model`, as for the others.
      serving_input_receiver_fn: see there.
      assets_extra: see there.
      as_text: see there.
      checkpoint_path: see there.

    Returns:
      The path of the export, as bytes.
    """
    config = RunConfig(model_dir=estimator.model_dir, tpu_config=TPUConfig(
        per_host_input_for_training=InputPipelineConfig.PER_HOST_V2))  # Never called for input.
    exporter = TPUEstimator(
        _legacy.model_fn_of(estimator), config=config,
        params=estimator.params, use_tpu=True, train_batch_size=2048, eval_batch_size=2048)
    return exporter.export_saved_model(
        export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path)
