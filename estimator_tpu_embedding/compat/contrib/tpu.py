"""`tf.contrib.tpu`: the names of this package and of `tf.tpu`, in one module."""

from __future__ import annotations

from typing import Any

from ... import _tf
from ...estimator.context import TPUContext
from ...estimator.export import export_estimator_savedmodel
from ...estimator.table_config import FeatureConfig, TableConfig
from ...estimator.tpu_embedding import TPUEmbedding
from ...runner.saving import AsyncCheckpointSaverHook
from . import same

_loops = _tf.modules_of_contrib()['training_loop']
NAMES: dict[str, Any] = {one.__name__: one for one in (
    AsyncCheckpointSaverHook, FeatureConfig, TPUContext, TPUEmbedding, TableConfig,
    export_estimator_savedmodel, _loops.repeat, _loops.while_loop)}
NAMES |= same.names_of('tpu')
