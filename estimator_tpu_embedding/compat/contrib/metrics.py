"""`tf.contrib.metrics`: mostly `tf.metrics`, which takes labels before predictions today."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from . import same, streaming

Metric = tuple[Any, Any]
"""The value so far, and the operation that takes a batch in and gives the value after it."""


def _predictions_first(today: Callable[..., Metric]) -> Callable[..., Metric]:
    """Returns a metric of `tf.metrics` that takes `predictions` before `labels`."""
    @functools.wraps(today)
    def metric(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Metric:
        return today(labels, predictions, *args, **kwargs)

    labels, predictions, *others = inspect.signature(today).parameters.values()
    vars(metric)['__signature__'] = inspect.Signature([predictions, labels, *others])
    return metric


def streaming_recall_at_k(predictions: Any, labels: Any, k: int, weights: Any = None,
                          metrics_collections: Any = None, updates_collections: Any = None,
                          name: str | None = None) -> Metric:
    """Returns how often the label of a sample is among its `k` greatest predictions.

    Args:
      predictions: float `[samples, classes]`.
      labels: int `[samples]`.
      k: number of predictions that count.
      weights: of the samples, or `None`.
      metrics_collections: collections that get the value.
      updates_collections: collections that get the update.
      name: `recall_at_<k>` if `None`.
    """
    found = tf.cast(tf.math.in_top_k(predictions, labels, k), tf.float32)
    metric: Metric = tf.metrics.mean(found, weights, metrics_collections, updates_collections,
                                     name or f'recall_at_{k}')
    return metric


def streaming_sparse_precision_at_top_k(
        top_k_predictions: Any, labels: Any, class_id: Any = None, weights: Any = None,
        metrics_collections: Any = None, updates_collections: Any = None,
        name: str | None = None) -> Metric:
    """Calls `tf.metrics.precision_at_top_k` with the old names and order of arguments."""
    metric: Metric = tf.metrics.precision_at_top_k(
        labels, top_k_predictions, None, class_id, weights, metrics_collections,
        updates_collections, name)
    return metric


def sparse_recall_at_top_k(
        labels: Any, top_k_predictions: Any, class_id: Any = None, weights: Any = None,
        metrics_collections: Any = None, updates_collections: Any = None,
        name: str | None = None) -> Metric:
    """Calls `tf.metrics.recall_at_top_k` with the old names and order of arguments."""
    metric: Metric = tf.metrics.recall_at_top_k(
        labels, top_k_predictions, None, class_id, weights, metrics_collections,
        updates_collections, name)
    return metric


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None
             ) -> tf.Tensor:
    """Returns the fraction of right predictions in one batch; keeps nothing between batches.

    Args:
      predictions: bool, integers or strings, of any shape.
      labels: of the same dtype and shape.
      weights: of the elements, or `None`.
      name: name of the scope.

    Raises:
      ValueError: for other dtypes, or dtypes and shapes that differ.
    """
    predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
    for each in (predictions, labels):
        if not (each.dtype.is_integer or each.dtype in (tf.bool, tf.string)):
            raise ValueError(
                f'Labels should have bool, integer, or string dtype, not {each.dtype}.')
    if labels.dtype != predictions.dtype:
        raise ValueError(f'Dtypes of predictions and labels should match. Given: predictions '
                         f'({predictions.dtype}) and labels ({labels.dtype})')
    predictions.shape.assert_is_compatible_with(labels.shape)
    with tf.name_scope(name, 'accuracy', [predictions, labels]):
        right = tf.cast(tf.equal(predictions, labels), tf.float32)
        if weights is None:
            return tf.reduce_mean(right)
        weights = tf.cast(weights, tf.float32)
        return (tf.reduce_sum(right * weights)
                / tf.reduce_sum(weights * tf.ones_like(right)))


def aggregate_metrics(*value_update_tuples: Metric) -> tuple[list[Any], list[Any]]:
    """Returns the values of metrics, and their updates.

    Raises:
      ValueError: if there is none.
    """
    if not value_update_tuples:
        raise ValueError('Expected at least one value_tensor/update_op pair')
    values, updates = zip(*value_update_tuples)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples: Mapping[str, Metric]
                         ) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the values of metrics by their names, and their updates.

    >>> aggregate_metric_map({'a': ('value', 'update')})
    ({'a': 'value'}, {'a': 'update'})
    """
    return ({name: value for name, (value, _) in names_to_tuples.items()},
            {name: update for name, (_, update) in names_to_tuples.items()})


NAMES: dict[str, Any] = {f'streaming_{name}': _predictions_first(getattr(tf.metrics, name))
                         for name in (
    'accuracy auc false_negatives false_negatives_at_thresholds false_positives '
    'false_positives_at_thresholds mean_absolute_error mean_cosine_distance mean_iou '
    'mean_relative_error mean_squared_error precision precision_at_thresholds recall '
    'recall_at_thresholds root_mean_squared_error sensitivity_at_specificity '
    'specificity_at_sensitivity true_negatives true_negatives_at_thresholds true_positives '
    'true_positives_at_thresholds').split()}
NAMES |= {f'streaming_sparse_{name}': _predictions_first(getattr(tf.metrics, name)) for name in (
    'average_precision_at_k', 'precision_at_k', 'recall_at_k')}
NAMES |= {one.__name__: one for one in (
    accuracy, aggregate_metric_map, aggregate_metrics, sparse_recall_at_top_k,
    streaming.cohen_kappa, streaming.count, streaming.f1_score, streaming.streaming_concat,
    streaming.streaming_covariance, streaming.streaming_false_negative_rate,
    streaming.streaming_false_negative_rate_at_thresholds,
    streaming.streaming_false_positive_rate,
    streaming.streaming_false_positive_rate_at_thresholds,
    streaming.streaming_pearson_correlation, streaming_recall_at_k,
    streaming_sparse_precision_at_top_k)}
NAMES |= same.names_of('metrics')
