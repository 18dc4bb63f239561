"""Rows of one feature -> activations, and gradients of activations -> gradients of rows."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from .ids import IdBatch


def shares(batch: IdBatch, combiner: str | None) -> tf.Tensor | None:
    """How much each id counts in its sample of n ids: 1, 1 / n (mean) or 1 / sqrt(n) (sqrtn).

    Forward and backward pass both use it, so they cannot disagree.

    Returns:
      float32 `[n, 1]`, or `None` where every share is 1.
    """
    if combiner in ('sum', None):
        return None
    ones = tf.ones_like(batch.samples, tf.float32)
    counts = tf.math.unsorted_segment_sum(ones, batch.samples, batch.num_samples)
    norms = tf.sqrt(counts) if combiner == 'sqrtn' else counts
    return tf.expand_dims(1.0 / tf.gather(norms, batch.samples), 1)


def combine(rows: tf.Tensor, batch: IdBatch, combiner: str | None) -> tf.Tensor:
    """The activation of each sample; exact zeros for a sample without ids.

    Args:
      rows: float32 `[n, D]`, the row of each id.
      batch: the ids.
      combiner: `'sum'`, `'mean'`, `'sqrtn'` or `None`.

    Returns:
      float32 `[num_samples, D]`.
    """
    share = shares(batch, combiner)
    weighted = rows if share is None else rows * share
    return tf.math.unsorted_segment_sum(weighted, batch.samples, batch.num_samples)


def spread(gradient: tf.Tensor, batch: IdBatch, combiner: str | None) -> tf.Tensor:
    """The gradient that each id's row receives from the gradient of the activations.

    Args:
      gradient: float32 `[num_samples, D]`.
      batch: the ids.
      combiner: as in `combine`.

    Returns:
      float32 `[n, D]`.
    """
    rows = tf.gather(gradient, batch.samples)
    share = shares(batch, combiner)
    return rows if share is None else rows * share
