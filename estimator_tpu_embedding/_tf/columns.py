"""What TensorFlow's feature columns for TPUs keep to themselves."""

from __future__ import annotations

import sys
from typing import Any


def tpu_embedding_columns() -> tuple[type, ...]:
    """The classes that `tf.tpu.experimental.embedding_column` and its shared twin return.

    Users test for them with `isinstance`, so they are used, not copied. Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import feature_column_v2
    return (feature_column_v2._TPUEmbeddingColumnV2,
            feature_column_v2._TPUSharedEmbeddingColumnV2)


def old_tpu_embedding_columns() -> tuple[type, ...]:
    """The classes that `tensorflow.python.tpu.feature_column` makes, which jobs of TensorFlow
    1.x use with `tf.feature_column.input_layer`. Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import feature_column
    return (feature_column._TPUEmbeddingColumn, feature_column._TPUSharedEmbeddingColumn)


def other_columns_of_a_spec() -> tuple[type, ...]:
    """The classes of columns that an `EmbeddingConfigSpec` takes and no TPU looks up.

    Checked: 2.16-2.21.
    """
    from tensorflow.python.feature_column import feature_column, feature_column_v2
    return (feature_column._NumericColumn, feature_column_v2.NumericColumn,
            feature_column._EmbeddingColumn, feature_column_v2.EmbeddingColumn,
            feature_column._SharedEmbeddingColumn)


def is_tensor_core_column(column: Any) -> bool:
    """Whether a column was made with `embedding_lookup_device='tpu_tensor_core'`.

    Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import feature_column_v2
    device = getattr(column, '_embedding_lookup_device', None)
    return bool(device == feature_column_v2.EmbeddingDevice.TPU_TENSOR_CORE)


def tensor_core_length(column: Any) -> int:
    """How many ids of a sample a column for the tensor core takes. Checked: 2.16-2.21."""
    return int(column._tensor_core_shape[1])


def recorded_column_scopes(graph: Any) -> dict[str, tuple[str, str]]:
    """What TPU columns recorded in `graph`: embedding name -> (variable scope, name in it).

    The columns write it while model_fn runs; TensorFlow's own reader was deleted with the
    TPUEstimator. Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import feature_column
    collection = graph.get_collection(feature_column._TPU_FC_TO_SCOPE)
    return dict(collection[0]) if collection else {}


class _Records(dict[str, tuple[str, str]]):
    """What TPU columns record, and which columns did so."""

    def __init__(self, before: dict[str, tuple[str, str]]):
        super().__init__(before)
        self.columns: list[Any] = []

    def __contains__(self, name: object) -> bool:
        # TensorFlow's function that records asks this first. It is told a name alone, which
        # columns of one table share; the column is the one whose method called it.
        column = sys._getframe(2).f_locals.get('self')
        if column is not None and column not in self.columns:
            self.columns.append(column)
        return super().__contains__(name)


def columns_used(graph: Any) -> list[Any]:
    """A list that gets every TPU column that is used in `graph` from now on.

    TensorFlow keeps the names of their tables only. Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import feature_column
    collection = graph.get_collection_ref(feature_column._TPU_FC_TO_SCOPE)
    records = _Records(collection[0] if collection else {})
    collection[:] = [records]
    return records.columns


def forget_column_scopes(graph: Any) -> None:
    """Removes those records, which a MetaGraph cannot hold, from `graph`."""
    from tensorflow.python.tpu import feature_column
    graph.clear_collection(feature_column._TPU_FC_TO_SCOPE)


def identity_columns() -> tuple[type, ...]:
    """The class of `categorical_column_with_identity`. Checked: 2.16-2.21."""
    from tensorflow.python.feature_column import feature_column_v2
    return (feature_column_v2.IdentityCategoricalColumn,)


def column_ids(categorical_column: Any, words: Any) -> Any:
    """Maps a SparseTensor of words to ids as the categorical column does.

    The public way needs a transformation cache that is private itself. Checked: 2.16-2.21.
    """
    return categorical_column._transform_input_tensor(words)
