"""Combines rows of one feature into activations, and gives and sums gradients of the rows."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from ..core.specs import Quantization
from .ids import IdBatch


def shares(batch: IdBatch, combiner: str | None) -> tf.Tensor | None:
    """Returns the factor of each id's row in the activation of its sample.

    The forward and the backward pass both use it, so they cannot disagree. An id of weight `w`
    among ids of weights `w_i` has the factor `w` (sum, `None`), `w / sum(w_i)` (mean) or
    `w / sqrt(sum(w_i**2))` (sqrtn). The factor is 0 where the divisor is 0.

    Returns:
      float32 `[n, 1]`, or `None` if every factor is 1.
    """
    weights = batch.weights
    if combiner in ('sum', None):
        return None if weights is None else tf.expand_dims(weights, 1)
    if weights is None:
        weights = tf.ones_like(batch.samples, tf.float32)
    if combiner == 'sqrtn':
        norms = tf.sqrt(tf.math.unsorted_segment_sum(
            tf.square(weights), batch.samples, batch.num_samples))
    else:
        norms = tf.math.unsorted_segment_sum(weights, batch.samples, batch.num_samples)
    return tf.expand_dims(tf.math.divide_no_nan(weights, tf.gather(norms, batch.samples)), 1)


def combine(rows: tf.Tensor, batch: IdBatch, combiner: str | None) -> tf.Tensor:
    """Returns the activation of each sample; exact zeros for a sample without ids.

    Args:
      rows: float32 `[n, D]`, the row of each id.

    Returns:
      float32 `[num_samples, D]`.
    """
    share = shares(batch, combiner)
    weighted = rows if share is None else rows * share
    return tf.math.unsorted_segment_sum(weighted, batch.samples, batch.num_samples)


def spread(gradient: tf.Tensor, batch: IdBatch, combiner: str | None) -> tf.Tensor:
    """Returns the gradient of each id's row, float32 `[n, D]`, from that of the activations."""
    rows = tf.gather(gradient, batch.samples)
    share = shares(batch, combiner)
    return rows if share is None else rows * share


def sum_duplicates(ids: tf.Tensor, gradients: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the distinct ids in order of first occurrence, and the sums of their gradients."""
    distinct, positions = tf.unique(ids)
    return distinct, tf.math.unsorted_segment_sum(gradients, positions, tf.size(distinct))


def turns(ids: tf.Tensor, core: int, num_cores: int) -> tf.Tensor:
    """Returns the turn in which a core's sums are applied, for rows that are updated core by core.

    A row resides on core `id % num_cores`, and that core has turn 0. The others follow in
    ascending order, core 0 after the last one. So in one turn one core updates each row. The ids
    3, 1 and 2 of core 2 of 3 have the turns 2, 1 and 0.
    """
    return (core - ids) % num_cores


def rounded(rows: tf.Tensor, quantization: Quantization | None) -> tf.Tensor:
    """Rounds looked-up float32 `rows` of any shape as `quantization` says; see `Quantization`."""
    if quantization is None:
        return rows
    lower, upper, step = quantization.lower, quantization.upper, quantization.step
    kept = tf.minimum(tf.maximum(rows, lower), upper)
    return tf.floor(tf.math.divide_no_nan(kept - lower, step) + .5) * step + lower
