"""Tells which Python objects declare the embedding of a TF2 job, for `etpe migrate config`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from .. import _tf
from ..errors import CallError
from .declaration import Declared, declare
from .embedding import TPUEmbedding

_DICT = {'feature_config', 'optimizer'}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What an object declares.

    Attributes:
      declared: its tables and features.
      pipelined: whether look-ups run one step ahead of updates.
      config: the config proto if the shapes of features are known, otherwise `None`.
    """

    declared: Declared
    pipelined: bool = False
    config: Any = None


def declared_by(value: Any) -> Found | None:
    """Returns what an object of TF2 declares, or `None` if it declares nothing.

    Args:
      value: an embedding object of this package or of TensorFlow, or FeatureConfigs in any nested
        structure. The latter may be in a pair with an optimizer, or in a dict of `feature_config`
        and `optimizer`. Its tables get names and optimizers.

    Raises:
      ConfigError: with all problems of the declaration.
    """
    if isinstance(value, TPUEmbedding):
        return _of_ours(value)
    structure, optimizer, pipelined = value, None, False
    stock = _tf.feature_config_of(value)
    if stock is not None:
        structure, pipelined = stock
    elif isinstance(value, Mapping) and _DICT <= value.keys():
        structure, optimizer = value['feature_config'], value['optimizer']
        pipelined = bool(value.get('pipeline_execution_with_tensor_core'))
    elif isinstance(value, tuple) and len(value) == 2 and not _is_feature_config(value[1]):
        structure, optimizer = value
    if not _is_feature_config(structure):
        return None
    return Found(declared=declare(structure, optimizer, needs_optimizer=False),
                 pipelined=pipelined)


def is_embedding(value: Any) -> bool:
    """Whether a value is an embedding object; some can be called, and are no functions."""
    return isinstance(value, TPUEmbedding) or _tf.feature_config_of(value) is not None


def _of_ours(embedding: TPUEmbedding) -> Found:
    declared, pipelined = embedding.declared
    try:
        config = embedding.config_proto
    except CallError:  # Nothing has told the shapes of features yet.
        config = None
    return Found(declared=declared, pipelined=pipelined, config=config)


def _is_feature_config(value: Any) -> bool:
    """Whether a value is a nested structure of FeatureConfigs, with one or more of them."""
    try:
        flat = tf.nest.flatten(value)
    except TypeError:  # A dict whose keys have no order.
        return False
    return bool(flat) and all(
        isinstance(one, tf.tpu.experimental.embedding.FeatureConfig) for one in flat)
