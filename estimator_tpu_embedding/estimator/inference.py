"""Calls models in exports with API version 2: `call_computation`, `inference_on_tpu`.

A model_fn calls these functions to run itself on a TPU. Only graphs for the CPU are written, so
they call the model as it is. The server batches requests, not the graph: a `BatchConfig` has no
effect.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy
from ..errors import Problem
from .export import BatchConfig


def call_computation(computation_inputs: Any, computation: Callable[[Any], Any],
                     batch_config: BatchConfig | None = None) -> list[Any]:
    """Calls a computation.

    Args:
      computation_inputs: a tensor or dict of tensors.
      computation: called with the inputs; returns a tensor, or a list or tuple of tensors.
      batch_config: has no effect; see above.

    Returns:
      The tensors that the computation returned, as a list.

    Raises:
      TypeError: if it returned something else.
    """
    _say_of_batches(batch_config)
    outputs = computation(computation_inputs)
    listed = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    if isinstance(outputs, dict):
        raise TypeError(str(Problem(
            'E519', 'computation', 'it must return a tensor, or a list or tuple of tensors',
            f'a dict with the keys {sorted(outputs)}', 'Return list(outputs.values()).')))
    return [tf.convert_to_tensor(output) for output in listed]


def inference_on_tpu(computation: Callable[..., Any], inputs_to_tpu: Sequence[Any],
                     num_batch_threads: int, max_batch_size: int | None,
                     batch_timeout_micros: int,
                     allowed_batch_sizes: list[int] | None = None,
                     max_enqueued_batches: int = 100) -> list[Any]:
    """Calls a computation with several inputs.

    Args:
      computation: see `call_computation`.
      inputs_to_tpu: a list of tensors, the arguments of the computation.
      num_batch_threads: see `BatchConfig`, as for the others: they have no effect.
      max_batch_size: see there; 0 or `None` asks for no batches.
      batch_timeout_micros: see there.
      allowed_batch_sizes: see there.
      max_enqueued_batches: see there.

    Returns:
      As `call_computation`.
    """
    batches = BatchConfig(num_batch_threads, max_batch_size, batch_timeout_micros,
                          allowed_batch_sizes, max_enqueued_batches) if max_batch_size else None
    return call_computation(inputs_to_tpu, lambda inputs: computation(*inputs), batches)


def model_fn_inference_on_tpu(model_fn: Callable[..., Any], features: Any, labels: Any = None,
                              config: Any = None, params: Any = None,
                              batch_config: BatchConfig | None = None) -> Any:
    """Calls a model_fn for predictions.

    Args:
      model_fn: called with mode PREDICT, and with the other arguments that it takes.
      features: a tensor or dict of tensors.
      labels: passed on.
      config: passed on.
      params: passed on.
      batch_config: has no effect; see above.

    Returns:
      The `EstimatorSpec` or `TPUEstimatorSpec` that model_fn returned.
    """
    _say_of_batches(batch_config)
    given = {'labels': labels, 'mode': _legacy.mode_keys().PREDICT, 'config': config,
             'params': params}
    taken = inspect.signature(model_fn).parameters
    return model_fn(features, **{name: given[name] for name in given if name in taken})


def _say_of_batches(batch_config: BatchConfig | None) -> None:
    if batch_config is not None:
        tf.logging.info('%s has no effect: the graph for the CPU leaves batches to the server.',
                        batch_config)
