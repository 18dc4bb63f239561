"""`tf.contrib.tpu`: the names of this package and of `tf.tpu`, in one module."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from ... import _tf
from ...estimator import parameters
from ...estimator.run_config import RunConfig
from ...estimator.tpu_config import InputPipelineConfig, TPUConfig
from ...estimator.context import TPUContext
from ...estimator.embedding_spec import EmbeddingConfigSpec
from ...estimator.estimator import TPUEstimator
from ...estimator.export import export_estimator_savedmodel
from ...estimator.spec import TPUEstimatorSpec
from ...estimator.table_config import FeatureConfig, TableConfig
from ...estimator.tpu_embedding import TPUEmbedding
from ...runner.async_saver import AsyncCheckpointSaverHook

_loops = _tf.modules_of_contrib()['training_loop']
NAMES: dict[str, Any] = {one.__name__: one for one in (
    AsyncCheckpointSaverHook, EmbeddingConfigSpec, FeatureConfig, InputPipelineConfig, RunConfig,
    TPUConfig, TPUContext, TPUEmbedding, TPUEstimator, TPUEstimatorSpec, TableConfig,
    export_estimator_savedmodel, _loops.repeat, _loops.while_loop, parameters.AdagradParameters,
    parameters.AdamParameters, parameters.FtrlParameters,
    parameters.StochasticGradientDescentParameters)}
NAMES |= {name: getattr(tf.tpu, name) for name in (
    'CrossShardOptimizer batch_parallel bfloat16_scope core cross_replica_sum initialize_system '
    'outside_compilation replicate rewrite shard shutdown_system').split()}
