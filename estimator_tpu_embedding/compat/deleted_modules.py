"""Restores the modules that TensorFlow 2.16 deleted or emptied, and says which names each gets."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

from .. import _legacy, _tf
from ..estimator import (
    enqueue,
    session_support,
    table_config,
    tpu_config,
    tpu_context,
    tpu_embedding,
    tpu_embedding_gradient,
    tpu_estimator_names,
)
from ..estimator import optimizer_parameters as p
from ..estimator.embedding_spec import PARAMETERS_OF_COLUMNS, EmbeddingConfigSpec
from ..estimator.tpu_estimator import TPUEstimator, export_estimator_savedmodel
from ..estimator.tpu_estimator_spec import TPUEstimatorSpec
from ..runner.checkpoint_hooks import AsyncCheckpointSaverHook, CheckpointInputPipelineHook
from . import import_paths, refused_names
from .resolver import TPUClusterResolver

TPU = 'tensorflow.python.tpu'
NIGHTLY = 'tensorflow_estimator.python.estimator'
NIGHTLY_TPU = f'{NIGHTLY}.tpu'


def put_in_place() -> None:
    """Restores modules, the API of Estimators, and names of modules that are still there."""
    _restore_modules()
    _restore_estimator()
    import_paths.put('data.experimental', **_named(CheckpointInputPipelineHook))
    import_paths.put('distribute.cluster_resolver', **_named(TPUClusterResolver))
    import_paths.put('tpu.experimental', import_paths.V1_ROOTS, **_named(
        p.AdagradParameters, p.AdamParameters, p.FtrlParameters,
        p.StochasticGradientDescentParameters))


@functools.cache
def names_by_module() -> dict[str, dict[str, Any]]:
    """Returns the names that each module gets, by its path; the same objects at every call."""
    return {
        f'{TPU}.tpu_embedding': {
            **_names_of(table_config), **_names_of(tpu_embedding),
            **_named(enqueue.EnqueueData, enqueue.RaggedEnqueueData,
                     enqueue.get_enqueue_datas_list_from_sparse_tensors_list,
                     enqueue.get_enqueue_datas_list_from_ragged_tensors_list,
                     p._OptimizationParameters), **p.ALL},
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
            tpu_config.InputPipelineConfig, tpu_config.RunConfig, tpu_config.TPUConfig),
        f'{NIGHTLY_TPU}.tpu_context': _named(tpu_context.TPUContext),
        f'{NIGHTLY_TPU}.tpu_estimator': {
            **refused_names.refused('tpu_estimator'), **_names_of(tpu_estimator_names),
            **_named(TPUEstimator, TPUEstimatorSpec, EmbeddingConfigSpec,
                     export_estimator_savedmodel, tpu_config.ExportSavedModelApiVersion,
                     p.AdagradParameters, p.AdamParameters,
                     p.StochasticGradientDescentParameters)},
        f'{NIGHTLY_TPU}._tpu_estimator_embedding': {
            **refused_names.refused('_tpu_estimator_embedding'),
            **_named(EmbeddingConfigSpec, *PARAMETERS_OF_COLUMNS)}}


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


def _restore_modules() -> None:
    """Fills the deleted modules, and replaces names that other modules imported from them."""
    _legacy.load()
    ours: dict[object, object] = {}
    for path, names in names_by_module().items():
        module = import_paths.module_to_fill(path, _legacy.StandIn)
        placeholders = _legacy.STAND_INS.get(path, {})
        ours.update((placeholders[name], names[name]) for name in placeholders.keys() & names)
        vars(module).update(names)
    for path, module in list(sys.modules.items()):
        if path.startswith('tensorflow_estimator.'):
            for name, value in list(vars(module).items()):
                if isinstance(value, type) and value in ours:
                    setattr(module, name, ours[value])


def _restore_estimator() -> None:
    """Restores `estimator` below all roots, and `tensorflow.python.estimator`."""
    v1, v2 = _legacy.load(), _legacy.load_v2()
    for one, other in ((v2, v1), (v2.experimental, v1.experimental)):
        for name in vars(other).keys() - vars(one).keys():
            if not name.startswith('_'):
                setattr(one, name, getattr(other, name))  # TensorFlow 1.x had it in `tf`.
    for root in import_paths.ROOTS:
        import_paths.put_api(root, v1 if root in import_paths.V1_ROOTS else v2)
    import_paths.put_module(f'{NIGHTLY}.keras', _legacy.keras_module())
    import_paths.move({'tensorflow.python.estimator': NIGHTLY})
