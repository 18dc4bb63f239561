"""`tf.contrib.layers`: layer_norm, optimize_loss and a few more layers that TPU models use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from . import initial_values, optimize_loss
from .arg_scope import add_arg_scope
from .framework import model_variable, smart_cond

Collections = Sequence[str] | Mapping[str, Sequence[str]] | None
Activation = Callable[[tf.Tensor], tf.Tensor] | None


@add_arg_scope
def layer_norm(inputs: Any, center: bool = True, scale: bool = True,
               activation_fn: Activation = None, reuse: Any = None,
               variables_collections: Collections = None, outputs_collections: Any = None,
               trainable: bool = True, begin_norm_axis: int = 1, begin_params_axis: int = -1,
               scope: Any = None) -> tf.Tensor:
    """Shifts and scales each sample to mean 0 and variance 1 (arXiv:1607.06450).

    The mean and variance are taken over the axes from `begin_norm_axis` on. Then the variables
    `gamma` (if `scale`) and `beta` (if `center`) apply, which have the sizes of the axes from
    `begin_params_axis` on.

    Returns:
      A tensor like `inputs`: (x - mean) / sqrt(variance + 1e-12) * gamma + beta, with 1e-3 for
      float16.

    Raises:
      ValueError: if the rank, or the shape of the variables, is unknown, or an axis is beyond it.
    """
    with tf.variable_scope(scope, 'LayerNorm', [inputs], reuse=reuse):
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if rank is None:
            raise ValueError(f'Inputs {inputs.name} has undefined rank.')
        if begin_norm_axis < 0:
            begin_norm_axis += rank
        if begin_norm_axis >= rank or begin_params_axis >= rank:
            raise ValueError(f'begin_params_axis ({begin_params_axis}) and begin_norm_axis '
                             f'({begin_norm_axis}) must be < rank(inputs) ({rank})')
        shape = inputs.shape[begin_params_axis:]
        if not shape.is_fully_defined():
            raise ValueError(f'Inputs {inputs.name}: shape(inputs)[{begin_params_axis}:] is not '
                             f'fully defined: {inputs.shape}')
        made = functools.partial(model_variable, shape=shape, dtype=inputs.dtype.base_dtype,
                                 trainable=trainable)
        beta = gamma = None
        if center:
            beta = made('beta', initializer=tf.zeros_initializer(),
                        collections=_of(variables_collections, 'beta'))
        if scale:
            gamma = made('gamma', initializer=tf.ones_initializer(),
                         collections=_of(variables_collections, 'gamma'))
        mean, variance = tf.nn.moments(inputs, list(range(begin_norm_axis, rank)), keepdims=True)
        outputs = tf.nn.batch_normalization(
            inputs, mean, variance, beta, gamma, 1e-3 if inputs.dtype == tf.float16 else 1e-12)
        outputs.set_shape(inputs.shape)
        return _collected(outputs_collections, outputs, activation_fn)


@add_arg_scope
def fully_connected(inputs: Any, num_outputs: int, activation_fn: Activation = tf.nn.relu,
                    normalizer_fn: Callable[..., Any] | None = None,
                    normalizer_params: Mapping[str, Any] | None = None,
                    weights_initializer: Any = initial_values.xavier_initializer(),
                    weights_regularizer: Any = None,
                    biases_initializer: Any = tf.zeros_initializer(),
                    biases_regularizer: Any = None, reuse: Any = None,
                    variables_collections: Collections = None, outputs_collections: Any = None,
                    trainable: bool = True, scope: Any = None) -> tf.Tensor:
    """activation(inputs weights + biases), over the last axis.

    There are no biases with a `normalizer_fn`, or with `biases_initializer=None`. Variables are
    called `weights` and `biases`, in the scope `fully_connected` unless one is given.

    Raises:
      ValueError: if the last dimension is unknown.
    """
    with tf.variable_scope(scope, 'fully_connected', [inputs], reuse=reuse):
        inputs = tf.convert_to_tensor(inputs)
        width = tf.dimension_value(inputs.shape[-1])
        if width is None:
            raise ValueError('The last dimension of the inputs should be defined.')
        made = functools.partial(model_variable, dtype=inputs.dtype.base_dtype,
                                 trainable=trainable)
        weights = made('weights', [width, num_outputs], initializer=weights_initializer,
                       regularizer=weights_regularizer,
                       collections=_of(variables_collections, 'weights'))
        outputs = tf.tensordot(inputs, weights, 1) if inputs.shape.rank > 2 else tf.matmul(
            inputs, weights)
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        elif biases_initializer is not None:
            outputs = tf.nn.bias_add(outputs, made(
                'biases', [num_outputs], initializer=biases_initializer,
                regularizer=biases_regularizer,
                collections=_of(variables_collections, 'biases')))
        return _collected(outputs_collections, outputs, activation_fn)


relu = functools.partial(fully_connected, activation_fn=tf.nn.relu)
relu6 = functools.partial(fully_connected, activation_fn=tf.nn.relu6)
linear = functools.partial(fully_connected, activation_fn=None)


@add_arg_scope
def dropout(inputs: Any, keep_prob: Any = .5, noise_shape: Any = None, is_training: Any = True,
            outputs_collections: Any = None, scope: Any = None, seed: int | None = None
            ) -> tf.Tensor:
    """While training, keeps each element with `keep_prob` and divides by it; drops the others."""
    with tf.variable_scope(scope, 'Dropout', [inputs]):
        inputs = tf.convert_to_tensor(inputs)
        outputs = smart_cond(
            is_training,
            lambda: tf.nn.dropout(inputs, rate=1 - keep_prob, noise_shape=noise_shape, seed=seed),
            lambda: inputs)
        return _collected(outputs_collections, outputs)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> tf.Tensor:
    """Merges all axes but the first."""
    with tf.name_scope(scope, 'Flatten', [inputs]):
        return _collected(outputs_collections, tf.layers.flatten(inputs))


@add_arg_scope
def one_hot_encoding(labels: Any, num_classes: int, on_value: float = 1., off_value: float = 0.,
                     outputs_collections: Any = None, scope: str | None = None) -> tf.Tensor:
    """Returns `tf.one_hot` of labels of any integer type."""
    with tf.name_scope(scope, 'OneHotEncoding', [labels, num_classes]):
        return _collected(outputs_collections, tf.one_hot(
            tf.cast(labels, tf.int64), num_classes, on_value=on_value, off_value=off_value))


def embed_sequence(ids: Any, vocab_size: int | None = None, embed_dim: int | None = None,
                   unique: bool = False, initializer: Any = None, regularizer: Any = None,
                   trainable: bool = True, scope: Any = None, reuse: Any = None) -> tf.Tensor:
    """Looks up rows of the variable `embeddings`, in the scope `EmbedSequence` unless one is given.

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
        table = model_variable('embeddings', [vocab_size, embed_dim] if vocab_size else None,
                               initializer=initializer, regularizer=regularizer,
                               trainable=trainable)
        if not unique:
            return tf.nn.embedding_lookup(table, ids)
        distinct, places = tf.unique(tf.reshape(ids, [-1]))
        return tf.nn.embedding_lookup(tf.nn.embedding_lookup(table, distinct),
                                      tf.reshape(places, tf.shape(ids)))


def _of(collections: Collections, name: str) -> list[str] | None:
    """Returns the collections of one of a layer's variables."""
    chosen = collections.get(name) if isinstance(collections, Mapping) else collections
    return [chosen] if isinstance(chosen, str) else list(chosen) if chosen else None


def _collected(collections: Any, outputs: tf.Tensor, activation_fn: Activation = None
               ) -> tf.Tensor:
    """Returns the output of a layer, after adding it to the collections."""
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    if collections:
        tf.add_to_collections(collections, outputs)
    return outputs


NAMES: dict[str, Any] = {one.__name__: one for one in (
    dropout, embed_sequence, flatten, fully_connected, initial_values.apply_regularization,
    initial_values.l1_l2_regularizer, initial_values.l1_regularizer,
    initial_values.l2_regularizer, initial_values.sum_regularizer,
    initial_values.variance_scaling_initializer, initial_values.xavier_initializer, layer_norm,
    one_hot_encoding, optimize_loss.optimize_loss)}
NAMES |= {'linear': linear, 'relu': relu, 'relu6': relu6,
          'xavier_initializer_conv2d': initial_values.xavier_initializer,
          'OPTIMIZER_CLS_NAMES': optimize_loss.OPTIMIZER_CLS_NAMES,
          'OPTIMIZER_SUMMARIES': optimize_loss.OPTIMIZER_SUMMARIES}
