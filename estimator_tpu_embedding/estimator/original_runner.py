"""Runs a job on a real TPU by the TPUEstimator of tf-estimator-nightly, or writes its graphs.

The nightly has the source of TensorFlow 2.15's TPUEstimator, and TensorFlow still has the
functions that it builds graphs with. Gone are only the modules of the embedding engine. So this
module gives it ours, and translates the arguments of a job into those of the original.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import math
import os
import types
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf, defaults
from ..checkpoint import model_dir
from ..errors import ConfigError, Problem
from ..hosts import tpu_system
from ..runner.progress import announce
from . import (
    enqueue,
    optimizer_parameters,
    session_support,
    table_config,
    tf_tpu,
    tpu_embedding,
    tpu_embedding_gradient,
    user_functions,
)
from .embedding_spec import EmbeddingConfigSpec
from .tpu_config import RunConfig
from .tpu_embedding import SLOT_TUPLES
from .tpu_estimator_spec import TPUEstimatorSpec
from .tpu_ops_embedding import TpuOpsEmbedding, system_at

GRAPH, SYSTEM, CONFIG = '.graph.pb', '.system.pb', '.config.pbtxt'
"""The ends of the names of files with the graph, with that of the system, and with the config."""

_EMULATED = {'id_policy': None, 'nonfinite_gradients': 'error', 'kernels': 'auto',
             'kernel_threads': None}
"""Settings of a RunConfig for the emulated system alone, with the values of whoever sets none."""

_RESTORES = ('grow', 'drop', 'reset_slots', 'rename', 'assume')
"""Options of checkpoints that change what is restored."""


class _Built(BaseException):
    """Ends a run whose graph is complete. The original would report any Exception."""


@functools.cache
def original() -> Any:
    """Returns the nightly's module `tpu_estimator`, with our modules where TensorFlow lost its own.

    Raises:
      ConfigError: if `install()` has put the functions of the emulated system into TensorFlow.
    """
    making = _tf.modules_of_contrib()['tpu'].split_compile_and_replicate
    if making is tf_tpu.split_compile_and_replicate:
        raise ConfigError(Problem(
            'E940', 'RunConfig.backend', 'a real TPU needs the functions of TensorFlow for it',
            'those of the emulated system, which install() has put in their place',
            'Choose the backend for the whole process: etpe run --backend tpu, or '
            'install(backend="tpu").'))
    return _legacy.original_tpu_estimator(
        tpu_embedding={
            **optimizer_parameters.ALL, **SLOT_TUPLES, 'TPUEmbedding': TpuOpsEmbedding,
            'TRAINING': tpu_embedding.TRAINING, 'INFERENCE': tpu_embedding.INFERENCE,
            'TableConfig': table_config.TableConfig, 'FeatureConfig': table_config.FeatureConfig,
            'EnqueueData': enqueue.EnqueueData},
        gradients=vars(tpu_embedding_gradient), support=vars(session_support),
        slot_names=_slot_variable_names, system=types.SimpleNamespace(
            _query_tpu_system_metadata=system_at, master_job=_tf.job_of_tpu))


def _slot_variable_names(scope: str, name: str, its: Any) -> Any:
    """Returns the tuple of the names of a table's slots, as the emulated system names them."""
    optimizer = its.to_optimizer()
    variable = f'{scope}/{name}' if scope else name
    return None if not optimizer.slots else SLOT_TUPLES[
        f'{type(optimizer).__name__}SlotVariableNames'](
            *[f'{variable}/{slot.suffix}' for slot in optimizer.slots])


def estimator_of(model_fn: Any, *, config: RunConfig,
                 embedding_config_spec: EmbeddingConfigSpec | None, **arguments: Any) -> Any:
    """Returns the original's TPUEstimator for the arguments of ours."""
    module = original()
    options = config.checkpoint or defaults.current().checkpoint
    without_effect = [*(name for name, value in _EMULATED.items()
                        if getattr(config, name) != value),
                      *(name for name in _RESTORES if getattr(options, name))]
    if without_effect:
        announce(f'{", ".join(without_effect)}: without effect on a real TPU')

    def translated(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        spec = user_functions.call_model_fn(model_fn, features, labels, mode, params, config, '')
        return (module.TPUEstimatorSpec(**spec._asdict()) if isinstance(spec, TPUEstimatorSpec)
                else spec)

    return module.TPUEstimator(
        translated, config=_config_of(config),
        embedding_config_spec=_spec_of(embedding_config_spec), **arguments)


def _config_of(config: RunConfig) -> Any:
    """Returns the original's RunConfig."""
    module = original().tpu_config
    plain = {name: getattr(config, name)
             for name in inspect.signature(_legacy.load().RunConfig.__init__).parameters
             if name not in ('self', 'experimental_distribute')}
    place: dict[str, Any] = {'evaluation_master': config.evaluation_master}
    if defaults.current().graph_only is not None:
        place = {'master': tpu_system.MADE_UP, 'evaluation_master': tpu_system.MADE_UP}
        plain['session_config'] = None
    elif config.cluster is not None:
        place['cluster'] = config.cluster
    else:
        place['master'] = config.stated_master
    return module.RunConfig(tpu_config=module.TPUConfig(**config.tpu_config._asdict()),
                            **place, **plain)


def _spec_of(spec: EmbeddingConfigSpec | None) -> Any:
    """Returns the original's EmbeddingConfigSpec."""
    if spec is None:
        return None
    fields = spec._asdict()
    of_tensor_core = fields.pop('tensor_core_feature_columns')
    if fields['feature_columns'] is not None:
        fields['feature_columns'] = [*fields['feature_columns'], *(of_tensor_core or ())]
    return original().EmbeddingConfigSpec(**fields)


def run(estimator: Any, verb: str, *arguments: Any) -> Any:
    """Calls `train`, `evaluate` or `predict` of the original's TPUEstimator.

    With `etpe run --graph-only` it builds the graph and writes it instead. Then every metric is
    NaN at step 0, and a prediction has no samples.
    """
    directory, place = defaults.current().graph_only, estimator.model_dir
    if directory is None:
        with (model_dir.claimed(place) if verb == 'train' and '://' not in place
              else contextlib.nullcontext()):
            return getattr(estimator, verb)(*arguments)
    with _tf.instead_of_sessions(functools.partial(_write, estimator, verb, directory)), \
            contextlib.suppress(_Built):
        result = getattr(estimator, verb)(*arguments)
        if verb == 'predict':
            next(result, None)
    nothing: dict[str, float] = collections.defaultdict(lambda: math.nan, global_step=0)
    return {'train': estimator, 'evaluate': nothing, 'predict': iter(())}[verb]


def predicts_nowhere() -> bool:
    """Says where a job with tables predicts: on no TPU, and with `--graph-only` nowhere.

    The original's graph for predictions has the operations that hand over ids, but none that
    receives rows.
    """
    nowhere = defaults.current().graph_only is not None
    announce(f'predict: {"nothing is written" if nowhere else "on the CPU"}, since a TPU looks up '
             'no tables in predictions')
    return nowhere


def _write(estimator: Any, verb: str, directory: str, graph: tf.Graph) -> None:
    """Writes a graph, that of its system and its config into a directory; ends the run."""
    keys = _legacy.load().ModeKeys
    mode = {'train': keys.TRAIN, 'evaluate': keys.EVAL, 'predict': keys.PREDICT}[verb]
    path = next(path for path in _paths(directory, verb) if not os.path.lexists(path + GRAPH))
    with _legacy.context_of_tpu_estimator(estimator, mode) as context:
        embedding = context.embedding_config
        config = None if embedding is None else embedding.tpu_embedding.config_proto
        with tf.Graph().as_default() as system:
            tf.tpu.initialize_system(embedding_config=config, job=context.master_job)
            tf.tpu.shutdown_system(job=context.master_job)
    tf.io.write_graph(system, '', path + SYSTEM, as_text=False)
    if config is not None:
        tf.io.write_graph(config, '', path + CONFIG)  # It writes any message.
    tf.io.write_graph(graph, '', path + GRAPH, as_text=False)
    announce(f'{verb}: wrote the graph of {len(graph.get_operations()):,} operations to '
             f'{path}{GRAPH}; nothing ran')
    raise _Built


def _paths(directory: str, verb: str) -> Iterator[str]:
    """Yields `train`, `train_2`, `train_3`, ... in a directory, which it makes."""
    os.makedirs(directory, exist_ok=True)
    yield os.path.join(directory, verb)
    number = 2
    while True:
        yield os.path.join(directory, f'{verb}_{number}')
        number += 1
