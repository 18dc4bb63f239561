"""Makes embedding columns: `embedding_column`, `shared_embedding_columns`.

TensorFlow still has both functions, and users test for the classes of the columns. So the columns
are TensorFlow's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def embedding_column(categorical_column: Any, dimension: int, combiner: str | None = 'mean',
                     initializer: Callable[..., Any] | None = None, max_sequence_length: int = 0,
                     learning_rate_fn: Callable[[Any], Any] | None = None,
                     embedding_lookup_device: str | None = None,
                     tensor_core_shape: Sequence[int | None] | None = None,
                     use_safe_embedding_lookup: bool = True) -> Any:
    """Returns an embedding of one categorical column, looked up by the embedding engine.

    Args:
      categorical_column: from `tf.feature_column.categorical_column_with_identity` or
        `..._with_vocabulary_list`.
      dimension: the width of the embedding, >= 1.
      combiner: `'mean'`, `'sum'`, `'sqrtn'`, or `None` for one id per sample.
      initializer: of the table; a truncated normal of deviation `1 / sqrt(dimension)` if
        `None`.
      max_sequence_length: above 0 for sequence columns only.
      learning_rate_fn: global step -> learning rate of this table.
      embedding_lookup_device: see TensorFlow.
      tensor_core_shape: see TensorFlow.
      use_safe_embedding_lookup: see TensorFlow; it matters only where the column is used
        outside a TPUEstimator.

    Returns:
      TensorFlow's column. Its activation is float32 `[batch, dimension]`.

    Raises:
      TypeError, ValueError: as TensorFlow does, for arguments that do not fit.

    >>> watched = tf.feature_column.categorical_column_with_identity('watched', num_buckets=22)
    >>> column = embedding_column(watched, dimension=4, combiner='sum')
    >>> column.name, column.dimension, column.combiner
    ('watched_embedding', 4, 'sum')
    """
    return tf.tpu.experimental.embedding_column(
        categorical_column, dimension, combiner, initializer, max_sequence_length,
        learning_rate_fn, embedding_lookup_device, tensor_core_shape, use_safe_embedding_lookup)


def shared_embedding_columns(categorical_columns: Sequence[Any], dimension: int,
                             combiner: str | None = 'mean',
                             initializer: Callable[..., Any] | None = None,
                             shared_embedding_collection_name: str | None = None,
                             max_sequence_lengths: Sequence[int] | None = None,
                             learning_rate_fn: Callable[[Any], Any] | None = None,
                             embedding_lookup_device: str | None = None,
                             tensor_core_shape: Sequence[int | None] | None = None,
                             use_safe_embedding_lookup: bool = True) -> list[Any]:
    """Returns embeddings of several categorical columns in one table.

    Args:
      categorical_columns: as for `embedding_column`, all with the same number of buckets.
      dimension: the width of the embedding, >= 1.
      combiner: as for `embedding_column`.
      initializer: as for `embedding_column`.
      shared_embedding_collection_name: the name of the table's variable. `None` joins the sorted
        names of the columns and `_shared_embedding`.
      max_sequence_lengths: one per column, or `None`.
      learning_rate_fn: as for `embedding_column`.
      embedding_lookup_device: see TensorFlow.
      tensor_core_shape: see TensorFlow.
      use_safe_embedding_lookup: as for `embedding_column`.

    Returns:
      TensorFlow's columns, in the order given.

    Raises:
      TypeError, ValueError: as TensorFlow does, for arguments that do not fit.

    >>> identity = tf.feature_column.categorical_column_with_identity
    >>> columns = shared_embedding_columns([identity('watched', 22), identity('liked', 22)], 4)
    >>> [column.get_embedding_var_name() for column in columns]
    ['liked_watched_shared_embedding', 'liked_watched_shared_embedding']
    """
    return tf.tpu.experimental.shared_embedding_columns(
        categorical_columns, dimension, combiner, initializer, shared_embedding_collection_name,
        max_sequence_lengths, learning_rate_fn, embedding_lookup_device, tensor_core_shape,
        use_safe_embedding_lookup)
