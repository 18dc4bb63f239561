"""Makes `tf.contrib` and its areas importable, and names replacements for names that they lack.

Most areas live on in tf-slim, which Google made of them: tf-slim 1.1.0 has their code, names of
variables and numbers. It is no longer developed, and neither is `tf.contrib`.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow.compat.v1 as tf
import tf_slim
from tf_slim.layers import (
    initializers,
    layers,
    normalization,
    optimizers,
    regularizers,
    rev_block_lib,
    summaries,
)
from tf_slim.ops import arg_scope, variables
from tf_slim.training import evaluation, training

from ... import _tf
from ...estimator.table_config import FeatureConfig, TableConfig
from ...estimator.tpu_context import TPUContext
from ...estimator.tpu_embedding import TPUEmbedding
from ...estimator.tpu_estimator import export_estimator_savedmodel
from ...runner.checkpoint_hooks import AsyncCheckpointSaverHook
from .. import import_paths, tf1
from ..old_names import missing_in_contrib, names_of_contrib, places_in_contrib
from ..resolver import TPUClusterResolver
from . import opt
from .hparams import HParams, parse_values

Transformation = Callable[[Any], Any]
_ROOT = 'tensorflow.contrib'
_NIGHTLY = 'tensorflow_estimator.python.estimator.tpu'
_BORROWED = _tf.modules_of_contrib()
_LOOPS, _SUMMARIES = _BORROWED['training_loop'], _BORROWED['summary_ops_v2']


def embed_sequence(ids: Any, vocab_size: int | None = None, embed_dim: int | None = None,
                   unique: bool = False, initializer: Any = None, regularizer: Any = None,
                   trainable: bool = True, scope: Any = None, reuse: Any = None) -> tf.Tensor:
    """Looks up rows of the variable `embeddings`, in the scope `EmbedSequence` unless one is given.

    It is the one layer that tf-slim lacks and jobs for TPUs use: `layers.embed_sequence`. If
    `unique`, each row is read only once, even if its id occurs several times.

    Raises:
      ValueError: if a size is missing and the variable is not reused.
    """
    if not (reuse or vocab_size and embed_dim):
        raise ValueError('Must specify vocab size and embedding dimension when not reusing. Got '
                         f'vocab_size={vocab_size} and embed_dim={embed_dim}')
    with tf.variable_scope(scope, 'EmbedSequence', [ids], reuse=reuse):
        table = variables.model_variable(
            'embeddings', [vocab_size, embed_dim] if vocab_size else None,
            initializer=initializer, regularizer=regularizer, trainable=trainable)
        if not unique:
            return tf.nn.embedding_lookup(table, ids)
        distinct, places = tf.unique(tf.reshape(ids, [-1]))
        return tf.nn.embedding_lookup(tf.nn.embedding_lookup(table, distinct),
                                      tf.reshape(places, tf.shape(ids)))


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """For `Dataset.apply`: full batches only, whose first dimension is known."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any,
                                    padding_values: Any = None) -> Transformation:
    """For `Dataset.apply`: full padded batches only, whose first dimension is known."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values,
                                                drop_remainder=True)


def sloppy_interleave(map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1
                      ) -> Transformation:
    """For `Dataset.apply`: `parallel_interleave`, with elements in the order of arrival."""
    transformation: Transformation = tf.data.experimental.parallel_interleave(
        map_func, cycle_length, block_length, sloppy=True)
    return transformation


def create_file_writer(logdir: str | None, max_queue: Any = None, flush_millis: Any = None,
                       filename_suffix: Any = None, name: str | None = None) -> Any:
    """Returns the writer of summaries to a directory, as `create_file_writer` of TensorFlow."""
    with tf.control_dependencies(None):  # It opens before the first step, also of a host_call.
        return _SUMMARIES.create_file_writer(
            logdir, max_queue, flush_millis, filename_suffix, name)


def _names_of(*modules: types.ModuleType) -> dict[str, Any]:
    """Returns the public names of modules; where these do not say them, functions and classes."""
    return {name: value for module in modules for name, value in vars(module).items()
            if (name in module.__all__ if hasattr(module, '__all__')
                else callable(value) and not name.startswith('_'))}


def _named(*values: Any) -> dict[str, Any]:
    return {value.__name__: value for value in values}


AREAS: dict[str, dict[str, Any]] = {
    'cluster_resolver': {**names_of_contrib('cluster_resolver'), **_named(TPUClusterResolver)},
    'data': {**names_of_contrib('data'), **_named(
        batch_and_drop_remainder, padded_batch_and_drop_remainder, sloppy_interleave)},
    'framework': {**_names_of(arg_scope, variables), **names_of_contrib('framework'),
                  'nest': _BORROWED['nest'], 'smart_cond': _BORROWED['smart_cond'].smart_cond},
    'layers': {**_names_of(initializers, layers, normalization, optimizers, regularizers,
                           rev_block_lib, summaries), **_named(embed_sequence)},
    'losses': _names_of(tf_slim.losses),
    'metrics': {**_names_of(tf_slim.metrics), **names_of_contrib('metrics')},
    'opt': opt.NAMES,
    'summary': {
        **{name: getattr(_SUMMARIES, name) for name in (
            'always_record_summaries audio eval_dir flush generic histogram image import_event '
            'never_record_summaries record_summaries_every_n_global_steps scalar '
            'summary_writer_initializer_op').split()},
        **names_of_contrib('summary'), 'graph': _SUMMARIES.graph_v1,
        'create_file_writer': create_file_writer,
        'create_summary_file_writer': create_file_writer},
    'tpu': {**_named(AsyncCheckpointSaverHook, FeatureConfig, TPUContext, TPUEmbedding, TableConfig,
                     export_estimator_savedmodel, _LOOPS.repeat, _LOOPS.while_loop),
            **names_of_contrib('tpu')},
    'training': {**_names_of(evaluation, training), **names_of_contrib('training'),
                 **_named(HParams, parse_values)}}
"""By area, its names."""


class _Area(types.ModuleType):
    """The module `tensorflow.contrib`, or a module below it."""

    def __init__(self, path: str, names: Mapping[str, Any]):
        super().__init__(path)
        spec = importlib.machinery.ModuleSpec(path, None, is_package=True)
        vars(self).update(names, __path__=[], __spec__=spec, __all__=sorted(names))

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        raise AttributeError(missing_in_contrib(f'{self.__name__}.{name}'), name=name,
                             obj=self)


def put_in_place() -> None:
    """Makes `tf.contrib` and the modules below it; another call does nothing."""
    if _ROOT in sys.modules:
        return
    modules: dict[str, types.ModuleType] = {
        name: _Area(f'{_ROOT}.{name}', names) for name, names in AREAS.items()}
    root = _Area(_ROOT, {**modules, 'slim': tf_slim})
    for path, module in [*modules.items(), *_inner(modules)]:
        sys.modules[f'{_ROOT}.{path}'] = module
        package, _, name = path.rpartition('.')
        setattr(sys.modules[f'{_ROOT}.{package}'] if package else root, name, module)
    sys.modules[_ROOT] = root
    real = tf1.real()
    for namespace in (real, real.compat.v1):
        namespace.contrib = root
    import_paths.move({f'{_ROOT}.slim': 'tf_slim'})
    import_paths.advise(_advice)


def _advice(path: str) -> str | None:
    return missing_in_contrib(path) if path.startswith(f'{_ROOT}.') else None


def _inner(modules: Mapping[str, types.ModuleType]) -> Iterator[tuple[str, types.ModuleType]]:
    """Yields the path and module of each inner path, packages before their modules."""
    for package, leaves in places_in_contrib().items():
        area, *parts = package.split('.')
        path = area
        for part in parts:
            path = f'{path}.{part}'
            yield path, _Area(f'{_ROOT}.{path}', {})
        for leaf in leaves:
            yield f'{path}.{leaf}', modules[area]
    for name in ('tpu_config', 'tpu_context', 'tpu_estimator'):
        yield f'tpu.python.tpu.{name}', sys.modules[f'{_NIGHTLY}.{name}']
    for name, module in _BORROWED.items():
        if module.__name__.startswith('tensorflow.python.tpu.'):
            yield f'tpu.python.tpu.{name}', module
    yield 'tpu.python.ops', _Area(f'{_ROOT}.tpu.python.ops', {})
    yield 'tpu.python.ops.tpu_ops', _tf.tpu_ops_module()


import_paths.put_aliases()  # tf-slim asks for private names of TensorFlow that have moved.
_tf.keep_arg_scopes_by_thread(arg_scope)
