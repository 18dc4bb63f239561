"""Tells which Python objects declare the embedding of a TF1 job, for `etpe migrate config`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..columns.vocabulary import words_of as words_of_columns
from ..estimator.embedding_spec import EmbeddingConfigSpec
from ..estimator.table_config import FeatureConfig, TableConfig
from ..estimator.tpu_embedding import TPUEmbedding

_DICTS = ('feature_to_config_dict', 'table_to_config_dict')


def tf1_declaration(value: Any) -> EmbeddingConfigSpec | TPUEmbedding | None:
    """Returns the object that declares a job of TF1, or `None` if `value` declares none.

    Args:
      value: an `EmbeddingConfigSpec`; a `TPUEmbedding` of TF1; a dict of arguments of
        `EmbeddingConfigSpec`; or a pair of the dicts of features and tables, in any order.

    Raises:
      ValueError: as `EmbeddingConfigSpec` does, and TypeError too.
    """
    if isinstance(value, (EmbeddingConfigSpec, TPUEmbedding)):
        return value
    if isinstance(value, Mapping) and set(_DICTS) <= value.keys():
        return EmbeddingConfigSpec(**value)
    if isinstance(value, (tuple, list)) and len(value) == 2:
        one, other = value
        if _is_dict_of(TableConfig, one):
            one, other = other, one
        if _is_dict_of(FeatureConfig, one) and _is_dict_of(TableConfig, other):
            return EmbeddingConfigSpec(**dict(zip(_DICTS, (one, other))))
    return None


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


def _is_dict_of(cls: type, value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(
        isinstance(one, cls) for one in value.values())
