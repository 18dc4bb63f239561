"""Initializers and regularizers of `tf.contrib.layers`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

Regularizer = Callable[..., Any]


def variance_scaling_initializer(factor: float = 2., mode: str = 'FAN_IN', uniform: bool = False,
                                 seed: int | None = None, dtype: Any = tf.float32
                                 ) -> Callable[..., tf.Tensor]:
    """Draws values of the variance factor / n.

    Args:
      factor: factor of the variance.
      mode: meaning of n: `'FAN_IN'`, `'FAN_OUT'`, or `'FAN_AVG'`, which is their mean.
      uniform: whether the distribution is uniform, or normal and cut at two deviations.
      seed: seed of the generator.
      dtype: a float type.

    Raises:
      TypeError: for a dtype that is no float, or another mode.
    """
    if not tf.as_dtype(dtype).is_floating:
        raise TypeError('Cannot create initializer for non-floating point type.')
    if mode not in ('FAN_IN', 'FAN_OUT', 'FAN_AVG'):
        raise TypeError(f'Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]')

    def initializer(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> tf.Tensor:
        whole = shape if partition_info is None else partition_info.full_shape
        sizes = [int(size) for size in whole]
        receptive = math.prod(sizes[:-2])
        fan_in = float(sizes[-2] if len(sizes) > 1 else sizes[-1]) * receptive
        fan_out = float(sizes[-1]) * receptive
        n = {'FAN_IN': fan_in, 'FAN_OUT': fan_out, 'FAN_AVG': (fan_in + fan_out) / 2}[mode]
        if uniform:
            limit = math.sqrt(3 * factor / n)
            return tf.random_uniform(shape, -limit, limit, dtype, seed=seed)
        # A normal distribution cut at two deviations has 1 / 1.3 of the variance.
        return tf.truncated_normal(shape, 0., math.sqrt(1.3 * factor / n), dtype, seed=seed)
    return initializer


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = tf.float32
                       ) -> Callable[..., tf.Tensor]:
    """Draws values of the variance 2 / (fan in + fan out), which keeps the variance of signals."""
    return variance_scaling_initializer(1., 'FAN_AVG', uniform, seed, dtype)


def l1_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """Returns `scale` times the sum of absolute values; `None` for a scale of 0."""
    return _regularizer(scale, scope, 'l1_regularizer',
                        lambda weights: tf.reduce_sum(tf.abs(weights)))


def l2_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """Returns `scale` times half the sum of squares; `None` for a scale of 0."""
    return _regularizer(scale, scope, 'l2_regularizer', tf.nn.l2_loss)


def _regularizer(scale: float, scope: str | None, default_name: str,
                 norm: Callable[[Any], tf.Tensor]) -> Regularizer:
    """Raises ValueError for a scale that is negative or an integer."""
    if isinstance(scale, int):
        raise ValueError(f'scale cannot be an integer: {scale}')
    if scale < 0:
        raise ValueError(f'Setting a scale less than 0 on a regularizer: {scale}')

    def regularizer(weights: Any, name: str | None = None) -> tf.Tensor | None:
        if not scale:
            return None
        with tf.name_scope(scope or name, default_name, [weights]):
            return scale * norm(weights)
    return regularizer


def l1_l2_regularizer(scale_l1: float = 1., scale_l2: float = 1., scope: str | None = None
                      ) -> Regularizer:
    """Returns the sum of both regularizers."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(regularizer_list: Sequence[Regularizer | None], scope: str | None = None
                    ) -> Regularizer:
    """Returns the sum of the regularizers that are not `None`."""
    def regularizer(weights: Any) -> tf.Tensor | None:
        with tf.name_scope(scope, 'sum_regularizer', [weights]):
            terms = [each(weights) for each in regularizer_list if each is not None]
            terms = [each for each in terms if each is not None]
            return tf.add_n(terms) if terms else None
    return regularizer


def apply_regularization(regularizer: Regularizer, weights_list: Sequence[Any] | None = None
                         ) -> tf.Tensor:
    """Returns the sum over variables, and adds it to the losses of the graph.

    If `weights_list` is `None`, it means the variables of `WEIGHTS`.
    """
    weights = tf.get_collection(tf.GraphKeys.WEIGHTS) if weights_list is None else weights_list
    if not weights:
        raise ValueError('No weights to regularize.')
    penalties = [each if each is not None else tf.constant(0.) for each in map(
        regularizer, weights)]
    total = tf.add_n(penalties)
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, total)
    return total
