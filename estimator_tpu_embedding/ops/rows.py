"""Gather rows of one shard, sum duplicate gradients, write rows back."""

from __future__ import annotations

import tensorflow.compat.v1 as tf


def sum_duplicates(ids: tf.Tensor, gradients: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """One gradient per distinct id: the sum over its occurrences.

    Args:
      ids: int64 `[n]`.
      gradients: float32 `[n, D]`.

    Returns:
      The distinct ids, int64 `[u]` in order of first occurrence, and float32 `[u, D]`.
    """
    distinct, positions = tf.unique(ids)
    return distinct, tf.math.unsorted_segment_sum(gradients, positions, tf.size(distinct))


def read(shard: tf.Variable, rows: tf.Tensor) -> tf.Tensor:
    """The given rows of a shard: float32 `[n, D]` for int64 `[n]`."""
    return tf.gather(shard, rows)


def write(shard: tf.Variable, rows: tf.Tensor, values: tf.Tensor) -> tf.Operation:
    """Overwrites rows of a shard; `rows` must be distinct."""
    return tf.raw_ops.ResourceScatterUpdate(resource=shard.handle, indices=rows, updates=values)
