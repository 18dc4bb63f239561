"""Lists the modules that TensorFlow 2.16 deleted or emptied, and the names that each gets."""

from __future__ import annotations

import functools
import types
from typing import Any

from .. import _tf
from ..estimator import (
    context,
    derived,
    enqueue_data,
    export,
    hooks,
    inference,
    parameters,
    parameters_base,
    session_support,
    slot_variables,
    table_config,
    tpu_config,
    tpu_embedding,
    tpu_embedding_gradient,
)
from ..estimator.embedding_spec import EmbeddingConfigSpec
from ..estimator.estimator import TPUEstimator
from ..estimator.feed_hook import TPUInfeedOutfeedSessionHook
from ..estimator.run_config import RunConfig
from ..estimator.spec import TPUEstimatorSpec
from ..runner.input_state import CheckpointInputPipelineHook
from ..runner.saving import AsyncCheckpointSaverHook
from . import refused
from .resolver import TPUClusterResolver

TPU = 'tensorflow.python.tpu'
NIGHTLY_TPU = 'tensorflow_estimator.python.estimator.tpu'


@functools.cache
def names_by_module() -> dict[str, dict[str, Any]]:
    """Returns the names that each module gets, by its path; the same objects at every call."""
    of_columns = _named(
        EmbeddingConfigSpec, parameters.AdagradParameters, parameters.AdamParameters,
        parameters.FtrlParameters, parameters.MomentumParameters,
        parameters.ProximalAdagradParameters, parameters.RMSPropParameters,
        parameters.StochasticGradientDescentParameters)
    return {
        f'{TPU}.tpu_embedding': {
            **{name: value for part in (enqueue_data, slot_variables, table_config, tpu_embedding)
               for name, value in _names_of(part).items()},
            **_named(parameters_base._OptimizationParameters), **parameters.ALL},
        f'{TPU}.tpu_embedding_gradient': _names_of(tpu_embedding_gradient),
        f'{TPU}.session_support': {
            **_names_of(session_support),
            'CoordinatorShutdownException': session_support.CoordinatorShutdownException},
        f'{TPU}.async_checkpoint': _named(AsyncCheckpointSaverHook),
        f'{TPU}.feature_column': _named(split_sequence_columns),
        'tensorflow.python.data.experimental.ops.iterator_ops':
            _named(CheckpointInputPipelineHook),
        # Not the module that defines TensorFlow's own class, whose methods look it up there.
        'tensorflow.python.distribute.cluster_resolver': _named(TPUClusterResolver),
        'tensorflow.python.distribute.cluster_resolver.tpu_cluster_resolver':
            _named(TPUClusterResolver),
        f'{NIGHTLY_TPU}.tpu_config': _named(
            tpu_config.InputPipelineConfig, RunConfig, tpu_config.TPUConfig),
        f'{NIGHTLY_TPU}.tpu_context': _named(context.TPUContext),
        f'{NIGHTLY_TPU}.tpu_estimator': {
            **refused.refused('tpu_estimator'), **_names_of(derived), **_names_of(hooks),
            **_names_of(inference),
            **_named(TPUEstimator, TPUEstimatorSpec, EmbeddingConfigSpec,
                     TPUInfeedOutfeedSessionHook,
                     tpu_config.ExportSavedModelApiVersion, export.BatchConfig,
                     export.export_estimator_savedmodel, parameters.AdagradParameters,
                     parameters.AdamParameters,
                     parameters.StochasticGradientDescentParameters)},
        f'{NIGHTLY_TPU}._tpu_estimator_embedding': {
            **refused.refused('_tpu_estimator_embedding'), **of_columns}}


def other_paths() -> dict[str, str]:
    """Returns, by each path that is gone, the path of the module that it led to."""
    return {
        **{f'{TPU}.{name}': f'{NIGHTLY_TPU}.{name}' for name in (
            'error_handling', 'tpu_config', 'tpu_context', 'tpu_estimator', 'util')},
        **{f'tensorflow.python.training.{name}': 'tensorflow.python.ops.gen_training_ops'
           for name in ('gen_training_ops', 'training_ops')}}


def split_sequence_columns(feature_columns: Any) -> tuple[list[Any], list[Any]]:
    """Splits columns of `tensorflow.python.tpu.feature_column` as TensorFlow 2.15 did.

    Returns:
      The columns of sequences, and all other columns.

    Raises:
      TypeError: if a column is of another class.
    """
    classes = _tf.old_tpu_embedding_columns()
    for column in feature_columns:
        if not isinstance(column, classes):
            raise TypeError('column must be a _TPUEmbeddingColumn or  _TPUSharedEmbeddingColumn '
                            f'but got {type(column)} instead.')
    return ([column for column in feature_columns if column.is_sequence_column()],
            [column for column in feature_columns if not column.is_sequence_column()])


def _named(*values: Any) -> dict[str, Any]:
    return {value.__name__: value for value in values}


def _names_of(part: types.ModuleType) -> dict[str, Any]:
    """Returns the constants, classes and functions of a module, without its imports."""
    return {name: value for name, value in vars(part).items()
            if name.isupper() and isinstance(value, int)
            or getattr(value, '__module__', None) == part.__name__}
