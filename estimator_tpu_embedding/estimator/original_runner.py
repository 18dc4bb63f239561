"""Runs a job on a real TPU, or writes its graphs, by the TPUEstimator of the nightly.

tf-estimator-nightly has the source of TensorFlow 2.15's TPUEstimator, and TensorFlow still has the
functions that it builds graphs with. Gone are only the modules of the embedding engine. So this
module gives it ours, and translates the arguments of a job into those of the original.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import inspect
import math
import os
import threading
import types
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf, defaults
from ..checkpoint import file_names, model_dir
from ..checkpoint.storage import Storage
from ..errors import ConfigError, Problem, UnsupportedError
from ..hosts import tpu_system
from ..runner.progress import announce
from ..runner.run_sessions import SessionLostError
from . import (
    enqueue,
    optimizer_parameters,
    session_support,
    table_config,
    tpu_embedding,
    tpu_embedding_gradient,
    user_functions,
)
from .embedding_spec import EmbeddingConfigSpec
from .tpu_config import RunConfig, without_cluster
from .tpu_embedding import SLOT_TUPLES
from .tpu_estimator_spec import TPUEstimatorSpec
from .tpu_ops_embedding import TpuOpsEmbedding, metadata_of

GRAPH, SYSTEM, CONFIG = '.graph.pb', '.system.pb', '.config.pbtxt'
"""The ends of the names of files with the graph, with that of the system, and with the config."""


_importing = threading.Lock()


_OF_EMULATION = ('kernels', 'kernel_threads', 'table_memory', 'id_policy', 'nonfinite_gradients',
                 'checkpoint', 'input_deadline_secs', 'shutdown_deadline_secs')
"""Settings of a RunConfig, and of the process, that concern the emulated system alone."""


_MOST_SESSIONS = 5
"""How many sessions a run may lose in a row, as on an emulated system."""


class _Built(BaseException):
    """Ends a run whose graph is complete. The original would report any Exception."""


def original() -> Any:
    """Returns the nightly's module `tpu_estimator`, with our modules where TensorFlow lost its own.
    """
    with _importing:
        return _imported()


@functools.cache
def _imported() -> Any:
    return _legacy.original_tpu_estimator(
        tpu_embedding={
            **optimizer_parameters.ALL, **SLOT_TUPLES, 'TPUEmbedding': TpuOpsEmbedding,
            'TRAINING': tpu_embedding.TRAINING, 'INFERENCE': tpu_embedding.INFERENCE,
            'TableConfig': table_config.TableConfig, 'FeatureConfig': table_config.FeatureConfig,
            'EnqueueData': enqueue.EnqueueData},
        gradients=vars(tpu_embedding_gradient), support=vars(session_support),
        slot_names=_slot_variable_names, system=types.SimpleNamespace(
            _query_tpu_system_metadata=metadata_of, master_job=_tf.job_of_tpu))


def _slot_variable_names(scope: str, name: str, its: Any) -> Any:
    """Returns the tuple of the names of a table's slots, as the emulated system names them."""
    optimizer = its.to_optimizer()
    variable = f'{scope}/{name}' if scope else name
    return None if not optimizer.slots else SLOT_TUPLES[
        f'{type(optimizer).__name__}SlotVariableNames'](
            *[f'{variable}/{slot.suffix}' for slot in optimizer.slots])


def estimator_of(model_fn: Any, *, config: RunConfig,
                 embedding_config_spec: EmbeddingConfigSpec | None, **arguments: Any) -> Any:
    """Returns the original's TPUEstimator for the arguments of ours.

    Raises:
      UnsupportedError: if a hook of the script is to feed it.
      ConfigError: if it has workers.
    """
    module = original()
    if config.workers.is_used:
        raise ConfigError(Problem('E940', 'RunConfig.workers', 'they emulate a TPU',
                                  'backend "tpu"', 'Leave out one of the two.'))
    if defaults.current().graph_only is None:
        _warn_of_what_has_no_effect(config)
    if config.tpu_config.experimental_feed_hook is not None:
        raise UnsupportedError(Problem(
            'E907', 'TPUConfig.experimental_feed_hook', 'no hook of a script feeds a real TPU',
            repr(config.tpu_config.experimental_feed_hook), 'Leave it out.'))

    def translated(features: Any, labels: Any, mode: str, params: Any) -> Any:
        spec = user_functions.call_model_fn(
            model_fn, features, labels, mode, params, copy.deepcopy(config), '')
        return (module.TPUEstimatorSpec(**spec._asdict()) if isinstance(spec, TPUEstimatorSpec)
                else spec)

    made = module.TPUEstimator(
        translated, config=_config_of(config),
        embedding_config_spec=_spec_of(embedding_config_spec), **arguments)
    made.has_tables, made.reached = embedding_config_spec is not None, 0
    return made


def _warn_of_what_has_no_effect(config: RunConfig) -> None:
    declared = inspect.signature(RunConfig.__init__).parameters
    choices, usual = defaults.current(), defaults.Defaults()
    given = [name for name in _OF_EMULATION if
             getattr(config, name) != declared[name].default or
             getattr(choices, name, None) != getattr(usual, name, None)]
    if given:
        tf.logging.warning('%s', Problem(
            'W462', 'RunConfig, install() or etpe run',
            'settings of the emulated system have no effect on a TPU', ', '.join(given)))


def _config_of(config: RunConfig) -> Any:
    """Returns the original's RunConfig."""
    module = original().tpu_config
    plain = {name: getattr(config, name)
             for name in inspect.signature(_legacy.load().RunConfig.__init__).parameters
             if name not in ('self', 'experimental_distribute')}
    if defaults.current().graph_only is not None:
        addresses = {'master': tpu_system.MADE_UP, 'evaluation_master': tpu_system.MADE_UP}
        plain['session_config'] = None  # It may name a cluster.
    else:
        addresses = {'evaluation_master': config.evaluation_master, **(
            {'master': config.stated_master} if config.cluster is None
            else {'cluster': config.cluster})}
        plain['session_config'] = without_cluster(config.session_config)
    return module.RunConfig(tpu_config=module.TPUConfig(**config.tpu_config._asdict()),
                            **addresses, **plain)


def _spec_of(spec: EmbeddingConfigSpec | None) -> Any:
    """Returns the original's EmbeddingConfigSpec."""
    if spec is None:
        return None
    fields = spec._asdict()
    of_tensor_core = fields.pop('tensor_core_feature_columns')
    if fields['feature_columns'] is not None:
        fields['feature_columns'] = [*fields['feature_columns'], *(of_tensor_core or ())]
    return original().EmbeddingConfigSpec(**fields)


def run(estimator: Any, verb: str, *given: Any) -> Any:
    """Trains or evaluates; or builds the graph of that, or of `predict`, and only writes it.

    Returns:
      What the original returns, or what `_write_instead` does.
    """
    if defaults.current().graph_only is not None:
        return _write_instead(estimator, verb, *given)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_while_there(estimator, verb, collections.Counter()))
        if verb == 'train':
            *others, listeners = _limited(estimator, *given)
            if '://' not in estimator.model_dir:
                stack.enter_context(model_dir.claimed(estimator.model_dir))
                listeners = [*(listeners or []), _ManifestLeaves(estimator.model_dir)]
            given = (*others, listeners)
        return getattr(estimator, verb)(*given)


def rows(estimator: Any, *arguments: Any) -> Iterator[Any]:
    """Yields the predictions of a job without tables."""
    opened = collections.Counter[Any]()
    with contextlib.closing(estimator.predict(*arguments)) as predictions:
        while True:
            with _while_there(estimator, 'predict', opened):  # Not while others open sessions.
                row = next(predictions, predictions)
            if row is predictions:
                return
            yield row


def _limited(estimator: Any, input_fn: Any, hooks: Any, steps: int | None, max_steps: int | None,
             listeners: Any) -> tuple[Any, ...]:
    """Returns the arguments of a training of no more steps than the process allows."""
    limit = defaults.current().step_limit
    if limit is not None and max_steps is not None:
        max_steps = min(max_steps, limit + _legacy.step_reached(estimator.model_dir))
    elif limit is not None and steps is not None:
        steps = min(steps, limit)
    return input_fn, hooks, steps, max_steps, listeners


class _ManifestLeaves(tf.train.CheckpointSaverListener):
    """Removes the manifest of a checkpoint that the original is about to write anew."""

    def __init__(self, directory: str):
        self._directory = directory

    def before_save(self, session: tf.Session, global_step_value: int) -> None:
        """Removes it: it would describe other files."""
        checkpoint = file_names.name_of(file_names.BASE, int(global_step_value))
        with contextlib.suppress(FileNotFoundError), Storage(self._directory) as storage:
            storage.remove(checkpoint + file_names.MANIFEST)


@contextlib.contextmanager
def _while_there(estimator: Any, verb: str, opened: collections.Counter[Any]) -> Iterator[None]:
    """Ends a run whose TPU is lost, when the original would open sessions again and again.

    Args:
      opened: counts the sessions of the run by graph, as far as no step is saved between them.

    Raises:
      SessionLostError: if no TPU answers when a session is opened, or if too many are lost.
    """
    config = estimator.config
    address = config.evaluation_master if verb == 'evaluate' else config.master
    session_config = config.session_config

    def ask(target: str, graph: tf.Graph) -> None:
        if target != address or not graph.get_operations():  # Who asks for a TPU has none.
            return
        problem = tpu_system.problem_of(
            address, session_config.cluster_def if session_config is not None else None)
        known = id(graph), _legacy.step_reached(estimator.model_dir)
        opened[known] += 1
        if problem is None and opened[known] > _MOST_SESSIONS:
            problem = Problem('E802', 'sessions on the TPU', 'one must save a step', f'{verb}: '
                              f'{_MOST_SESSIONS} in a row were lost before')
        if problem is not None:
            raise SessionLostError(dataclasses.replace(
                problem, code='E802', remedy='Run the job again when the TPU is there: it goes on '
                'from its last checkpoint.'))

    with _tf.before_sessions(ask):
        yield


def _write_instead(estimator: Any, verb: str, *arguments: Any) -> Any:
    """Builds the graph of a `train`, `evaluate` or `predict`, and writes it instead of running it.

    Returns:
      What a script can go on with: the results of an evaluation have the step that the trainings
      before would have reached, and NaN for every other name.
    """
    if verb == 'predict' and estimator.has_tables:
        # The original hands over the ids, but its model_fn gets no rows.
        announce('predict: nothing is written, since a TPU looks up no tables in predictions')
        return None
    directory = defaults.current().graph_only or ''

    def write(target: str, graph: tf.Graph) -> None:
        if target == tpu_system.MADE_UP:
            _write(estimator, verb, directory, graph)

    with _tf.before_sessions(write), contextlib.suppress(_Built):
        result = getattr(estimator, verb)(*arguments)
        if verb == 'predict':
            next(result, None)
    if verb == 'train':
        _, _, steps, max_steps, _ = arguments
        estimator.reached = max_steps or estimator.reached + (steps or 0)
    return collections.defaultdict(_nan, global_step=estimator.reached)


def _nan() -> float:
    return math.nan


def _write(estimator: Any, verb: str, directory: str, graph: tf.Graph) -> None:
    """Writes a graph, that of its system and its config into a directory; ends the run."""
    keys = _legacy.load().ModeKeys
    mode = {'train': keys.TRAIN, 'evaluate': keys.EVAL, 'predict': keys.PREDICT}[verb]
    path = next(path for path in _paths(directory, verb)
                if not any(os.path.lexists(path + end) for end in (GRAPH, SYSTEM, CONFIG)))
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
    """Yields `train`, `train_2`, `train_3`, ... in a directory."""
    yield os.path.join(directory, verb)
    number = 2
    while True:
        yield os.path.join(directory, f'{verb}_{number}')
        number += 1
