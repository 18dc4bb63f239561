"""Gathers rows of one shard, sums duplicate gradients, and writes rows back."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from ..core.specs import Quantization


def sum_duplicates(ids: tf.Tensor, gradients: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Sums the gradients of each distinct id over its occurrences.

    Args:
      ids: int64 `[n]`.
      gradients: float32 `[n, D]`.

    Returns:
      The distinct ids, int64 `[u]` in order of first occurrence, and float32 `[u, D]`.
    """
    distinct, positions = tf.unique(ids)
    return distinct, tf.math.unsorted_segment_sum(gradients, positions, tf.size(distinct))


def turns(ids: tf.Tensor, core: int, num_cores: int) -> tf.Tensor:
    """Returns the turn in which a core's sums are applied, for rows that are updated core by core.

    A row resides on core `id % num_cores`, and that core has turn 0. The others follow in
    ascending order, core 0 after the last one. So in one turn one core updates each row.

    Args:
      ids: int64 `[n]`.
      core: the core that has the sums.
      num_cores: of the whole system.

    Returns:
      int64 `[n]`, from 0 to `num_cores - 1`: 2, 1 and 0 for the ids 3, 1 and 2 of core 2 of 3.
    """
    return (core - ids) % num_cores


def rounded(rows: tf.Tensor, quantization: Quantization | None) -> tf.Tensor:
    """Rounds looked-up float32 `rows` of any shape as `quantization` says; see `Quantization`."""
    if quantization is None:
        return rows
    lower, upper, step = quantization.lower, quantization.upper, quantization.step
    kept = tf.minimum(tf.maximum(rows, lower), upper)
    return tf.floor(tf.math.divide_no_nan(kept - lower, step) + .5) * step + lower


def read(shard: tf.Variable, rows: tf.Tensor) -> tf.Tensor:
    """Returns the given rows of a shard: float32 `[n, D]` for int64 `[n]`."""
    return tf.gather(shard, rows)


def spread_over_all(shard: tf.Variable, rows: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns float32 `[rows of shard, D]`: `values` at the distinct `rows`, zeros elsewhere."""
    return tf.scatter_nd(tf.expand_dims(rows, 1), values, shard.shape.as_list())


def read_all(shard: tf.Variable) -> tf.Tensor:
    """Returns all rows of a shard."""
    return shard.read_value()


def write_all(shard: tf.Variable, values: tf.Tensor) -> tf.Operation:
    """Overwrites all rows of a shard."""
    return shard.assign(values, read_value=False)


def write(shard: tf.Variable, rows: tf.Tensor, values: tf.Tensor) -> tf.Operation:
    """Overwrites rows of a shard; `rows` must be distinct."""
    return tf.raw_ops.ResourceScatterUpdate(resource=shard.handle, indices=rows, updates=values)
