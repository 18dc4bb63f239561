"""Metrics of `tf.contrib.metrics` that `tf.metrics` does not have.

All return the value so far, and an operation that adds a batch and returns the value after it.
Their state is in local variables in `METRIC_VARIABLES`, as in `tf.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

Metric = tuple[Any, Any]
_EPSILON = 1e-7


def streaming_covariance(predictions: Any, labels: Any, weights: Any = None,
                         metrics_collections: Any = None, updates_collections: Any = None,
                         name: str | None = None) -> Metric:
    """Returns the unbiased sample covariance of predictions and labels; float32.

    It is NaN for less than two pairs.

    Args:
      predictions: numbers of any shape.
      labels: numbers of the same shape.
      weights: how often each pair counts, broadcast to the pairs; `None` is once.
      metrics_collections: collections that get the value.
      updates_collections: collections that get the update.
      name: name of the scope, `covariance` if `None`.

    Raises:
      ValueError: if the shapes differ.
    """
    with tf.variable_scope(name, 'covariance', [predictions, labels, weights]):
        x, y, weight = _alike(predictions, labels, weights)
        kept = [_variable([], kind) for kind in ('count', 'mean_prediction', 'mean_label',
                                                 'comoment')]
        count, mean_x, mean_y, comoment = [one.read_value() for one in kept]
        own_count = tf.reduce_sum(weight)
        own_x = tf.div_no_nan(tf.reduce_sum(weight * x), own_count)
        own_y = tf.div_no_nan(tf.reduce_sum(weight * y), own_count)
        whole = count + own_count
        share = tf.div_no_nan(own_count, whole)
        # Chan et al.: the comoments of two parts, and what lies between their means.
        after = [whole, mean_x + (own_x - mean_x) * share, mean_y + (own_y - mean_y) * share,
                 comoment + tf.reduce_sum(weight * (x - own_x) * (y - own_y))
                 + (own_x - mean_x) * (own_y - mean_y) * count * share]

        def value(count: tf.Tensor, comoment: tf.Tensor, title: str) -> tf.Tensor:
            return tf.where(count <= 1, tf.fill([], float('nan')), comoment / (count - 1),
                            name=title)

        with tf.control_dependencies([tf.group(*[
                one.assign(new, read_value=False) for one, new in zip(kept, after)])]):
            update = value(whole, after[3], 'update_op')
        return _collected(value(count, comoment, 'value'), update, metrics_collections,
                          updates_collections)


def streaming_pearson_correlation(predictions: Any, labels: Any, weights: Any = None,
                                  metrics_collections: Any = None,
                                  updates_collections: Any = None,
                                  name: str | None = None) -> Metric:
    """Returns the coefficient of correlation; arguments as of `streaming_covariance`."""
    with tf.variable_scope(name, 'pearson_r', [predictions, labels, weights]):
        both = streaming_covariance(predictions, labels, weights, name='covariance')
        of_predictions = streaming_covariance(predictions, predictions, weights,
                                              name='variance_predictions')
        of_labels = streaming_covariance(labels, labels, weights, name='variance_labels')
        value, update = [tf.truediv(one, tf.sqrt(first) * tf.sqrt(second))
                         for one, first, second in zip(both, of_predictions, of_labels)]
        return _collected(value, update, metrics_collections, updates_collections)


def streaming_concat(values: Any, axis: int = 0, max_size: int | None = None,
                     metrics_collections: Any = None, updates_collections: Any = None,
                     name: str | None = None) -> Metric:
    """Concatenates all values, batch after batch.

    Args:
      values: tensor of a known rank, and of known sizes on all axes but `axis`.
      axis: axis of the concatenation.
      max_size: the most values along `axis`, further ones are dropped; `None` keeps all.
      metrics_collections: collections that get the value.
      updates_collections: collections that get the update.
      name: name of the scope, `streaming_concat` if `None`.

    Returns:
      The values so far, and an operation that returns their number along `axis` after a batch.

    Raises:
      ValueError: if too many sizes are unknown, or there is no such axis.
    """
    with tf.variable_scope(name, 'streaming_concat', [values]):
        values = tf.convert_to_tensor(values)
        rank = values.shape.rank
        if rank is None:
            raise ValueError('`values` must have known statically known rank')
        at = axis + rank if axis < 0 else axis
        if not 0 <= at < rank:
            raise ValueError(f'axis = {axis} not in [0, {rank})')
        sizes = values.shape.as_list()
        del sizes[at]
        if None in sizes:
            raise ValueError('all dimensions of `values` other than the dimension to concatenate '
                             'along must have statically known size')
        others = [number for number in range(rank) if number != at]
        rows = tf.transpose(values, [at, *others])
        value, size = _appended(rows, sizes, max_size)
        back = [*range(1, at + 1), 0, *range(at + 1, rank)]
        return _collected(tf.transpose(value, back), size, metrics_collections,
                          updates_collections)


def _appended(rows: tf.Tensor, sizes: Sequence[int], max_size: int | None) -> Metric:
    """Returns all rows so far, and their number after a batch; the variable grows by halves."""
    size = _variable([], 'size', tf.int32)
    array = _variable([max_size or 0, *sizes], 'array', rows.dtype, [None, *sizes])
    before, held = size.read_value(), array.read_value()
    if max_size is not None:
        rows = rows[:max_size - before]
    after = before + tf.shape(rows)[0]
    room = tf.shape(held)[0]

    def grow() -> tf.Operation:
        empty = tf.zeros([tf.maximum(after, room * 3 // 2) - room, *sizes], rows.dtype)
        return array.assign(tf.concat([held, empty], 0), read_value=False)

    with tf.control_dependencies([tf.cond(after > room, grow, tf.no_op)]):
        written = array[before:after].assign(rows)
    with tf.control_dependencies([written]):
        update = tf.identity(size.assign(after), 'update_op')
    value = held[:before]
    value.set_shape([None, *sizes])
    return value, update


def count(values: Any, weights: Any = None, metrics_collections: Any = None,
          updates_collections: Any = None, name: str | None = None) -> Metric:
    """Returns the number of values, or the sum of their weights; float32."""
    with tf.variable_scope(name, 'count', [values, weights]):
        kept = _variable([], 'count')
        before = kept.read_value()
        _, _, weight = _alike(values, values, weights)
        update = tf.identity(kept.assign_add(tf.reduce_sum(weight)), 'update_op')
        return _collected(before, update, metrics_collections, updates_collections)


def cohen_kappa(labels: Any, predictions_idx: Any, num_classes: int, weights: Any = None,
                metrics_collections: Any = None, updates_collections: Any = None,
                name: str | None = None) -> Metric:
    """Returns how much more often two raters agree than by chance; float64, 1 at most.

    Args:
      labels: int `[samples]` or `[samples, 1]`, classes by one rater.
      predictions_idx: classes by the other rater, of the same shape.
      num_classes: number of classes, at least 2.
      weights: of the samples, or `None`.
      metrics_collections: collections that get the value.
      updates_collections: collections that get the update.
      name: name of the scope, `cohen_kappa` if `None`.

    Raises:
      ValueError: for fewer than two classes.
    """
    if num_classes < 2:
        raise ValueError(f'`num_classes` must be >= 2.Found: {num_classes}')
    with tf.variable_scope(name, 'cohen_kappa', [labels, predictions_idx, weights]):
        kept = _variable([num_classes, num_classes], 'table', tf.float64)
        before = kept.read_value()
        flat = [tf.reshape(tf.cast(one, tf.int64), [-1]) for one in (labels, predictions_idx)]
        if weights is not None:
            weights = tf.reshape(tf.cast(weights, tf.float64), [-1]) * tf.ones_like(
                flat[0], tf.float64)
        after = kept.assign_add(tf.confusion_matrix(
            *flat, num_classes=num_classes, dtype=tf.float64, weights=weights))

        def kappa(table: tf.Tensor, title: str) -> tf.Tensor:
            total = tf.reduce_sum(table)
            by_chance = tf.div_no_nan(
                tf.reduce_sum(tf.reduce_sum(table, 0) * tf.reduce_sum(table, 1)), total)
            return tf.div_no_nan(tf.linalg.trace(table) - by_chance, total - by_chance,
                                 name=title)

        return _collected(kappa(before, 'value'), kappa(tf.convert_to_tensor(after), 'update_op'),
                          metrics_collections, updates_collections)


def f1_score(labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200,
             metrics_collections: Any = None, updates_collections: Any = None,
             name: str | None = None) -> Metric:
    """Returns the best harmonic mean of precision and recall, over thresholds in [0, 1]."""
    inner = [number / (num_thresholds - 1) for number in range(1, num_thresholds - 1)]
    thresholds = [-_EPSILON, *inner, 1 + _EPSILON]

    def best(right: Any, wrong: Any, missed: Any) -> tf.Tensor:
        precision = right / (_EPSILON + right + wrong)
        recall = right / (_EPSILON + right + missed)
        return tf.reduce_max(2 * precision * recall / (precision + recall + _EPSILON))

    with tf.variable_scope(name, 'f1', [labels, predictions, weights]):
        return _of(best, [one(labels, predictions, thresholds, weights) for one in (
            tf.metrics.true_positives_at_thresholds, tf.metrics.false_positives_at_thresholds,
            tf.metrics.false_negatives_at_thresholds)], metrics_collections, updates_collections)


def streaming_false_positive_rate(predictions: Any, labels: Any, weights: Any = None,
                                  metrics_collections: Any = None,
                                  updates_collections: Any = None,
                                  name: str | None = None) -> Metric:
    """Returns the fraction of false labels that were predicted true; 0 if there are none."""
    with tf.variable_scope(name, 'false_positive_rate', [predictions, labels, weights]):
        return _of(_part, [one(labels, predictions, weights) for one in (
            tf.metrics.false_positives, tf.metrics.true_negatives)],
            metrics_collections, updates_collections)


def streaming_false_negative_rate(predictions: Any, labels: Any, weights: Any = None,
                                  metrics_collections: Any = None,
                                  updates_collections: Any = None,
                                  name: str | None = None) -> Metric:
    """Returns the fraction of true labels that were predicted false; 0 if there are none."""
    with tf.variable_scope(name, 'false_negative_rate', [predictions, labels, weights]):
        return _of(_part, [one(labels, predictions, weights) for one in (
            tf.metrics.false_negatives, tf.metrics.true_positives)],
            metrics_collections, updates_collections)


def streaming_false_positive_rate_at_thresholds(
        predictions: Any, labels: Any, thresholds: Any, weights: Any = None,
        metrics_collections: Any = None, updates_collections: Any = None,
        name: str | None = None) -> Metric:
    """Returns `streaming_false_positive_rate` of each threshold; predictions above are true."""
    with tf.variable_scope(name, 'false_positive_rate_at_thresholds',
                           [predictions, labels, weights]):
        return _of(_part, [one(labels, predictions, thresholds, weights) for one in (
            tf.metrics.false_positives_at_thresholds, tf.metrics.true_negatives_at_thresholds)],
            metrics_collections, updates_collections)


def streaming_false_negative_rate_at_thresholds(
        predictions: Any, labels: Any, thresholds: Any, weights: Any = None,
        metrics_collections: Any = None, updates_collections: Any = None,
        name: str | None = None) -> Metric:
    """Returns `streaming_false_negative_rate` of each threshold; predictions above are true."""
    with tf.variable_scope(name, 'false_negative_rate_at_thresholds',
                           [predictions, labels, weights]):
        return _of(_part, [one(labels, predictions, thresholds, weights) for one in (
            tf.metrics.false_negatives_at_thresholds, tf.metrics.true_positives_at_thresholds)],
            metrics_collections, updates_collections)


def _part(one: Any, other: Any) -> tf.Tensor:
    return tf.div_no_nan(one, one + other)


def _of(function: Callable[..., Any], metrics: Sequence[Metric], values_to: Any,
        updates_to: Any) -> Metric:
    """Returns a metric that is a function of the values of metrics."""
    value, update = (function(*parts) for parts in zip(*metrics))
    return _collected(value, update, values_to, updates_to)


def _alike(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Returns all as float32 of one shape; drops a last axis of size 1 that one of them lacks."""
    x, y = tf.cast(predictions, tf.float32), tf.cast(labels, tf.float32)
    if x.shape.rank is not None and y.shape.rank is not None:
        if x.shape.rank == y.shape.rank + 1:
            x = tf.squeeze(x, [-1])
        elif y.shape.rank == x.shape.rank + 1:
            y = tf.squeeze(y, [-1])
    x.shape.assert_is_compatible_with(y.shape)
    weight = tf.ones_like(x)
    if weights is not None:
        given = tf.cast(weights, tf.float32)
        if (given.shape.rank is not None and x.shape.rank is not None
                and given.shape.rank == x.shape.rank + 1):
            given = tf.squeeze(given, [-1])
        weight *= given
    return x, y, weight


def _variable(shape: Sequence[int], name: str, dtype: Any = tf.float32,
              kept_shape: Sequence[int | None] | None = None) -> tf.Variable:
    """Makes a local variable of zeros; `kept_shape` is its static shape if it may grow."""
    return tf.Variable(
        lambda: tf.zeros(shape, dtype), trainable=False, name=name, use_resource=True,
        collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.METRIC_VARIABLES],
        validate_shape=kept_shape is None, shape=kept_shape)


def _collected(value: Any, update: Any, values_to: Any, updates_to: Any) -> Metric:
    for collections, tensor in ((values_to, value), (updates_to, update)):
        if collections:
            tf.add_to_collections(collections, tensor)
    return value, update
