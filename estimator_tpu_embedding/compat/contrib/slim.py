"""The areas of `tf.contrib` that live on in tf-slim, which Google made of them.

tf-slim 1.1.0 has their code, names of variables and numbers. It is no longer developed, and neither
is `tf.contrib`.
"""

from __future__ import annotations

from types import ModuleType
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
from .. import aliases
from . import same
from .hparams import HParams, parse_values


def embed_sequence(ids: Any, vocab_size: int | None = None, embed_dim: int | None = None,
                   unique: bool = False, initializer: Any = None, regularizer: Any = None,
                   trainable: bool = True, scope: Any = None, reuse: Any = None) -> tf.Tensor:
    """Looks up rows of the variable `embeddings`, in the scope `EmbedSequence` unless one is given.

    It is the one layer that tf-slim lacks and jobs for TPUs use.

    Args:
      ids: integers of any shape.
      vocab_size: number of rows of the variable.
      embed_dim: width of its rows.
      unique: whether each row is read only once, even if its id occurs several times.
      initializer: initializer of the variable.
      regularizer: regularizer of the variable.
      trainable: whether the variable is trained.
      scope: scope of the variable.
      reuse: whether the variable exists already; then its sizes may be left out.

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


def _names_of(*modules: ModuleType) -> dict[str, Any]:
    """Returns the public names of modules; where these do not say them, functions and classes."""
    return {name: value for module in modules for name, value in vars(module).items()
            if (name in module.__all__ if hasattr(module, '__all__')
                else callable(value) and not name.startswith('_'))}


AREAS: dict[str, dict[str, Any]] = {
    'framework': {**_names_of(arg_scope, variables), **same.names_of('framework'),
                  'nest': _tf.modules_of_contrib()['nest'],
                  'smart_cond': _tf.modules_of_contrib()['smart_cond'].smart_cond},
    'layers': {**_names_of(initializers, layers, normalization, optimizers, regularizers,
                           rev_block_lib, summaries), 'embed_sequence': embed_sequence},
    'losses': _names_of(tf_slim.losses),
    'metrics': {**_names_of(tf_slim.metrics), **same.names_of('metrics')},
    'training': {**_names_of(evaluation, training), **same.names_of('training'),
                 'HParams': HParams, 'parse_values': parse_values}}
"""By area, its names."""

aliases.put_in_place()  # tf-slim asks for private names of TensorFlow that have moved.
_tf.keep_arg_scopes_by_thread(arg_scope)
