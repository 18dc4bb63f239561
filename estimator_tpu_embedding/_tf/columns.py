"""Private classes, attributes and records of TensorFlow's feature columns for TPUs."""

from __future__ import annotations

import sys
from typing import Any


def tpu_embedding_columns() -> tuple[type, ...]:
    """Returns the classes of `tf.tpu.experimental.embedding_column` and its shared twin.

    Users test for them with `isinstance`, so a copy would not do.
    """
    from tensorflow.python.tpu import feature_column_v2
    return (feature_column_v2._TPUEmbeddingColumnV2,
            feature_column_v2._TPUSharedEmbeddingColumnV2)


def old_tpu_embedding_columns() -> tuple[type, ...]:
    """Returns the classes of the columns that `tensorflow.python.tpu.feature_column` makes.

    Jobs of TensorFlow 1.x use them with `tf.feature_column.input_layer`.
    """
    from tensorflow.python.tpu import feature_column
    return (feature_column._TPUEmbeddingColumn, feature_column._TPUSharedEmbeddingColumn)


def other_columns_of_a_spec() -> tuple[type, ...]:
    """Returns the classes of columns that an `EmbeddingConfigSpec` takes and no TPU looks up."""
    from tensorflow.python.feature_column import feature_column, feature_column_v2
    return (feature_column._NumericColumn, feature_column_v2.NumericColumn,
            feature_column._EmbeddingColumn, feature_column_v2.EmbeddingColumn,
            feature_column._SharedEmbeddingColumn)


def is_tensor_core_column(column: Any) -> bool:
    """Whether a column was made with `embedding_lookup_device='tpu_tensor_core'`."""
    from tensorflow.python.tpu import feature_column_v2
    device = getattr(column, '_embedding_lookup_device', None)
    return bool(device == feature_column_v2.EmbeddingDevice.TPU_TENSOR_CORE)


def tensor_core_length(column: Any) -> int:
    """Returns how many ids of a sample a tensor-core column takes."""
    return int(column._tensor_core_shape[1])


def recorded_column_scopes(graph: Any) -> dict[str, tuple[str, str]]:
    """Returns the records of TPU columns: embedding name -> (variable scope, name in it).

    The columns write them into `graph` while model_fn runs. TensorFlow deleted its own reader
    together with TPUEstimator.
    """
    from tensorflow.python.tpu import feature_column
    collection = graph.get_collection(feature_column._TPU_FC_TO_SCOPE)
    return dict(collection[0]) if collection else {}


class _Records(dict[str, tuple[str, str]]):
    """The records of TPU columns, and the columns that made them."""

    def __init__(self, before: dict[str, tuple[str, str]]):
        super().__init__(before)
        self.columns: list[Any] = []

    def __contains__(self, name: object) -> bool:
        # TensorFlow's recording function asks this first. It knows only a name, which the
        # columns of a table share. The column is the object whose method called the function.
        column = sys._getframe(2).f_locals.get('self')
        if column is not None and column not in self.columns:
            self.columns.append(column)
        return super().__contains__(name)


def columns_used(graph: Any) -> list[Any]:
    """Returns a list that gets every TPU column that is used in `graph` from now on.

    TensorFlow keeps only the names of their tables.
    """
    from tensorflow.python.tpu import feature_column
    collection = graph.get_collection_ref(feature_column._TPU_FC_TO_SCOPE)
    records = _Records(collection[0] if collection else {})
    collection[:] = [records]
    return records.columns


def forget_column_scopes(graph: Any) -> None:
    """Removes the records of TPU columns from `graph`, because a MetaGraph cannot hold them."""
    from tensorflow.python.tpu import feature_column
    graph.clear_collection(feature_column._TPU_FC_TO_SCOPE)


def identity_columns() -> tuple[type, ...]:
    """Returns the class of `categorical_column_with_identity`."""
    from tensorflow.python.feature_column import feature_column_v2
    return (feature_column_v2.IdentityCategoricalColumn,)


def column_ids(categorical_column: Any, words: Any) -> Any:
    """Maps a SparseTensor of words to ids as the categorical column does.

    The public method needs a transformation cache, which is private.
    """
    return categorical_column._transform_input_tensor(words)


def computed_columns() -> tuple[type, ...]:
    """Returns the classes of columns that TensorFlow computes of others."""
    from tensorflow.python.feature_column import feature_column_v2
    return (feature_column_v2.BucketizedColumn, feature_column_v2.CrossedColumn)
