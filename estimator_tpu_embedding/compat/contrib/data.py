"""`tf.contrib.data`: names of `tf.data.experimental`, and three functions of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from . import same

Transformation = Callable[[Any], Any]


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """For `Dataset.apply`: full batches only, whose first dimension is known."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any,
                                    padding_values: Any = None) -> Transformation:
    """For `Dataset.apply`: full padded batches only, whose first dimension is known."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values,
                                                drop_remainder=True)


def sloppy_interleave(map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1
                      ) -> Transformation:
    """For `Dataset.apply`: `parallel_interleave`, with elements in the order of arrival."""
    transformation: Transformation = tf.data.experimental.parallel_interleave(
        map_func, cycle_length, block_length, sloppy=True)
    return transformation


NAMES: dict[str, Any] = same.names_of('data')
NAMES |= {one.__name__: one for one in (
    batch_and_drop_remainder, padded_batch_and_drop_remainder, sloppy_interleave)}
