"""One update rule per optimizer: (rows, slots, gradient, rate) -> (rows, slots).

The formulas are those of TensorFlow's `optimization_parameters.proto` and the kernels it
links to; see the class of each optimizer in `core/optimizers.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow.compat.v1 as tf

from ..core.optimizers import Adagrad, Limits, Optimizer, StochasticGradientDescent

Slots = tuple[tf.Tensor, ...]
Rule = Callable[[Optimizer, tf.Tensor, Slots, tf.Tensor, tf.Tensor], tuple[tf.Tensor, Slots]]


def update_rows(optimizer: Optimizer, rows: tf.Tensor, slots: Slots, gradient: tf.Tensor,
                rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    """One step of an optimizer on touched rows, options included.

    The order is the documented one: clip the gradient, decay the weights, apply the rule, clip
    the weights.

    Args:
      optimizer: which rule, with its hyper-parameters.
      rows: float32 `[u, D]`.
      slots: one float32 `[u, D]` per slot, in the order of `optimizer.slots`.
      gradient: float32 `[u, D]`, summed over all occurrences of each row.
      rate: float32 scalar.

    Returns:
      The new rows and slots.
    """
    gradient = _clip(gradient, optimizer.clip_gradients)
    if optimizer.decay is not None:
        factor = optimizer.decay * rate if optimizer.decay_times_rate else optimizer.decay
        rows -= factor * rows
    rows, slots = RULES[type(optimizer)](optimizer, rows, slots, gradient, rate)
    return _clip(rows, optimizer.clip_weights), slots


def _clip(values: tf.Tensor, limits: Limits) -> tf.Tensor:
    if limits.lower is not None:
        values = tf.maximum(values, limits.lower)
    if limits.upper is not None:
        values = tf.minimum(values, limits.upper)
    return values


def _stochastic_gradient_descent(optimizer: Optimizer, rows: tf.Tensor, slots: Slots,
                                 gradient: tf.Tensor, rate: tf.Tensor
                                 ) -> tuple[tf.Tensor, Slots]:
    return rows - rate * gradient, slots


def _adagrad(optimizer: Optimizer, rows: tf.Tensor, slots: Slots, gradient: tf.Tensor,
             rate: tf.Tensor) -> tuple[tf.Tensor, Slots]:
    accumulator = slots[0] + tf.square(gradient)
    return rows - rate * gradient / tf.sqrt(accumulator), (accumulator,)


RULES: dict[type[Optimizer], Rule] = {
    StochasticGradientDescent: _stochastic_gradient_descent,
    Adagrad: _adagrad,
}
