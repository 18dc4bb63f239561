"""Tells which Python objects declare the embedding of a TF1 job, for `etpe migrate config`."""

from __future__ import annotations

from typing import Any

from ..columns.embedding_columns import words_of as words_of_columns
from ..estimator.embedding_spec import EmbeddingConfigSpec
from ..estimator.tpu_embedding import TPUEmbedding


def is_declaration(value: Any) -> bool:
    """Whether an object is an `EmbeddingConfigSpec` or a `TPUEmbedding` of TF1."""
    return isinstance(value, (EmbeddingConfigSpec, TPUEmbedding))


def is_spec(value: Any) -> bool:
    """Whether a declaration is an `EmbeddingConfigSpec`."""
    return isinstance(value, EmbeddingConfigSpec)


def features_with_words(spec: EmbeddingConfigSpec) -> list[str]:
    """Returns the names of the features whose columns map words to ids."""
    return [words.feature for words in words_of_columns(spec.feature_columns or [])]


def unsafe_features(spec: EmbeddingConfigSpec) -> set[str]:
    """Returns the names of the features whose columns keep ids below 0 in look-ups on a CPU."""
    return {column.get_feature_key_name() for column in spec.feature_columns or []
            if not getattr(column, 'use_safe_embedding_lookup', True)}
