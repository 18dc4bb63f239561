"""Gather rows of one shard, sum duplicate gradients, write rows back."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from ..core.specs import Quantization


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


def occurrence_numbers(ids: tf.Tensor) -> tf.Tensor:
    """How many equal ids stand before each: int32 `[n]`, for example 0, 0, 1 for 7, 2, 7."""
    _, positions, counts = tf.unique_with_counts(ids)
    order = tf.argsort(positions, stable=True)
    firsts = tf.gather(tf.cumsum(counts, exclusive=True), tf.gather(positions, order))
    return tf.scatter_nd(tf.expand_dims(order, 1), tf.range(tf.size(ids)) - firsts,
                         tf.expand_dims(tf.size(ids), 0))


def rounded(rows: tf.Tensor, quantization: Quantization | None) -> tf.Tensor:
    """What is looked up of float32 `rows` of any shape; see `Quantization`."""
    if quantization is None:
        return rows
    lower, upper, step = quantization.lower, quantization.upper, quantization.step
    kept = tf.minimum(tf.maximum(rows, lower), upper)
    return tf.floor(tf.math.divide_no_nan(kept - lower, step) + .5) * step + lower


def read(shard: tf.Variable, rows: tf.Tensor) -> tf.Tensor:
    """The given rows of a shard: float32 `[n, D]` for int64 `[n]`."""
    return tf.gather(shard, rows)


def spread_over_all(shard: tf.Variable, rows: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """float32 `[rows of the shard, D]`: `values` at the distinct `rows`, zeros elsewhere."""
    return tf.scatter_nd(tf.expand_dims(rows, 1), values, shard.shape.as_list())


def read_all(shard: tf.Variable) -> tf.Tensor:
    """All rows of a shard."""
    return shard.read_value()


def write_all(shard: tf.Variable, values: tf.Tensor) -> tf.Operation:
    """Overwrites all rows of a shard."""
    return shard.assign(values, read_value=False)


def write(shard: tf.Variable, rows: tf.Tensor, values: tf.Tensor) -> tf.Operation:
    """Overwrites rows of a shard; `rows` must be distinct."""
    return tf.raw_ops.ResourceScatterUpdate(resource=shard.handle, indices=rows, updates=values)
