"""One update rule per optimizer: (rows, slots, gradient, rate) -> (rows, slots).

The formulas come from TensorFlow's `optimization_parameters.proto`. Where that only links to a
formula, they come from the CPU kernels of `tf.raw_ops.ResourceApply...`. Proximal Yogi is in
neither and follows TensorFlow Addons' Yogi. All formulas are element-wise. In each rule `w` are
rows and `g` is the gradient. Adam and Yogi have no bias correction, as on the hardware.

A root may be 0, because processors treat numbers below 2**-126 as 0. A quotient by such a root is
0 here, so the element stays as it is; 0 / 0 would make it a NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from ..core import optimizers as o
from ..core.optimizers import Bounds, Optimizer

Slots = tuple[tf.Tensor, ...]
Updated = tuple[tf.Tensor, Slots]
Rule = Callable[[Any, tf.Tensor, Slots, tf.Tensor, tf.Tensor], Updated]


def update_rows(optimizer: Optimizer, rows: tf.Tensor, slots: Slots, gradient: tf.Tensor,
                rate: tf.Tensor) -> Updated:
    """Makes one step of an optimizer on touched rows, options included.

    The order is the documented one: clip the gradient, decay the weights, apply the rule, clip
    the weights.

    Args:
      rows: float32 `[u, D]`.
      slots: one float32 `[u, D]` per slot, in the order of `optimizer.slots`.
      gradient: float32 `[u, D]`, the summed gradient of each row.
      rate: float32 scalar.
    """
    gradient = _clip(gradient, optimizer.clip_gradients)
    if optimizer.decay is not None:
        factor = optimizer.decay * rate if optimizer.decay_times_rate else optimizer.decay
        rows -= factor * rows
    rows, slots = RULES[type(optimizer)](optimizer, rows, slots, gradient, rate)
    return _clip(rows, optimizer.clip_weights), slots


def _clip(values: tf.Tensor, bounds: Bounds) -> tf.Tensor:
    if bounds.lower is not None:
        values = tf.maximum(values, bounds.lower)
    if bounds.upper is not None:
        values = tf.minimum(values, bounds.upper)
    return values


def _stochastic_gradient_descent(optimizer: o.StochasticGradientDescent, w: tf.Tensor,
                                 slots: Slots, g: tf.Tensor, rate: tf.Tensor) -> Updated:
    return w - rate * g, slots


def _adagrad(optimizer: o.Adagrad, w: tf.Tensor, slots: Slots, g: tf.Tensor, rate: tf.Tensor
             ) -> Updated:
    accumulator = slots[0] + tf.square(g)
    return w - _over(rate * g, tf.sqrt(accumulator)), (accumulator,)


def _adagrad_momentum(optimizer: o.AdagradMomentum, w: tf.Tensor, slots: Slots, g: tf.Tensor,
                      rate: tf.Tensor) -> Updated:
    accumulator, momenta = slots
    if optimizer.beta2 == 1:
        accumulator += tf.square(g)
    else:
        accumulator = _decayed(accumulator, tf.square(g), optimizer.beta2)
    step = _over(g, tf.pow(accumulator + optimizer.epsilon, 1 / optimizer.exponent))
    momenta = optimizer.momentum * momenta + step
    update = optimizer.momentum * momenta + step if optimizer.use_nesterov else momenta
    return w - rate * update, (accumulator, momenta)


def _proximal_adagrad(optimizer: o.ProximalAdagrad, w: tf.Tensor, slots: Slots, g: tf.Tensor,
                      rate: tf.Tensor) -> Updated:
    accumulator = slots[0] + tf.square(g)
    rates = _over(rate, tf.sqrt(accumulator))
    return _shrunk(w - rates * g, rates, optimizer.l1, optimizer.l2), (accumulator,)


def _adam(optimizer: o.Adam, w: tf.Tensor, slots: Slots, g: tf.Tensor, rate: tf.Tensor
          ) -> Updated:
    m = _decayed(slots[0], g, optimizer.beta1)
    v = _decayed(slots[1], tf.square(g), optimizer.beta2)
    if optimizer.use_sum_inside_sqrt:
        return w - rate * _over(m, tf.sqrt(v + optimizer.epsilon**2)), (m, v)
    return w - _over(rate * m, tf.sqrt(v) + optimizer.epsilon), (m, v)


def _ftrl(optimizer: o.Ftrl, w: tf.Tensor, slots: Slots, g: tf.Tensor, rate: tf.Tensor
          ) -> Updated:
    def power(accumulator: tf.Tensor) -> tf.Tensor:
        return (tf.sqrt(accumulator) if optimizer.lr_power == -0.5
                else tf.pow(accumulator, -optimizer.lr_power))

    accumulator = slots[0] + tf.square(g)
    change = power(accumulator) - power(slots[0])
    # A rate of 0 freezes the table: see below. Here it only must not be a divisor.
    scale = tf.where(rate > 0, rate, tf.ones_like(rate))
    if optimizer.multiply_linear_by_lr:
        linear = slots[1] + scale * g - change * w
        bound = scale * optimizer.l1
        denominator = power(accumulator) + optimizer.beta + 2 * scale * optimizer.l2
    else:
        linear = slots[1] + g - change * w / scale
        bound = tf.constant(optimizer.l1, tf.float32)
        denominator = (power(accumulator) + optimizer.beta) / scale + 2 * optimizer.l2
    new = _over(tf.clip_by_value(linear, -bound, bound) - linear, denominator)
    trains = rate > 0
    return tf.where(trains, new, w), tuple(
        tf.where(trains, value, old) for value, old in zip((accumulator, linear), slots))


def _momentum(optimizer: o.Momentum, w: tf.Tensor, slots: Slots, g: tf.Tensor, rate: tf.Tensor
              ) -> Updated:
    momenta = optimizer.momentum * slots[0] + g
    update = g + optimizer.momentum * momenta if optimizer.use_nesterov else momenta
    return w - rate * update, (momenta,)


def _rms_prop(optimizer: o.RMSProp, w: tf.Tensor, slots: Slots, g: tf.Tensor, rate: tf.Tensor
              ) -> Updated:
    squares = _decayed(slots[0], tf.square(g), optimizer.rho)
    momenta = optimizer.momentum * slots[1] + rate * _over(
        g, tf.sqrt(squares + optimizer.epsilon))
    return w - momenta, (squares, momenta)


def _proximal_yogi(optimizer: o.ProximalYogi, w: tf.Tensor, slots: Slots, g: tf.Tensor,
                   rate: tf.Tensor) -> Updated:
    squared = tf.square(g)
    v = slots[0] + (1 - optimizer.beta2) * tf.sign(squared - slots[0]) * squared
    m = _decayed(slots[1], g, optimizer.beta1)
    rates = _over(rate, tf.sqrt(v) + optimizer.epsilon)
    return _shrunk(w - rates * m, rates, optimizer.l1, optimizer.l2), (v, m)


def _frequency_estimator(optimizer: o.FrequencyEstimator, w: tf.Tensor, slots: Slots,
                         g: tf.Tensor, rate: tf.Tensor) -> Updated:
    # The "learning rate" of this optimizer is the global step, and its gradient is 0.
    gap = rate - slots[0]
    capped = tf.minimum(gap, optimizer.max_delta)
    smoothed = w * (1 - optimizer.tau) + capped * optimizer.tau
    new = tf.where(gap >= optimizer.outlier_threshold * w, capped, smoothed)
    return new, (tf.zeros_like(slots[0]) + rate,)


def _adadelta(optimizer: o.Adadelta, w: tf.Tensor, slots: Slots, g: tf.Tensor, rate: tf.Tensor
              ) -> Updated:
    squares = _decayed(slots[0], tf.square(g), optimizer.rho)
    update = g * _over(tf.sqrt(slots[1] + optimizer.epsilon),
                       tf.sqrt(squares + optimizer.epsilon))
    return w - rate * update, (squares, _decayed(slots[1], tf.square(update), optimizer.rho))


def _centered_rms_prop(optimizer: o.CenteredRMSProp, w: tf.Tensor, slots: Slots, g: tf.Tensor,
                       rate: tf.Tensor) -> Updated:
    squares = _decayed(slots[0], tf.square(g), optimizer.rho)
    mean = _decayed(slots[2], g, optimizer.rho)
    variance = tf.maximum(squares - tf.square(mean), 0.0)
    momenta = optimizer.momentum * slots[1] + _over(
        rate * g, tf.sqrt(variance + optimizer.epsilon))
    return w - momenta, (squares, momenta, mean)


def _lion(optimizer: o.Lion, w: tf.Tensor, slots: Slots, g: tf.Tensor, rate: tf.Tensor
          ) -> Updated:
    direction = tf.sign(_decayed(slots[0], g, optimizer.beta1))
    return w - rate * direction, (_decayed(slots[0], g, optimizer.beta2),)


def _decayed(old: tf.Tensor, new: tf.Tensor, decay: float) -> tf.Tensor:
    return decay * old + (1 - decay) * new


def _over(values: tf.Tensor, divisor: tf.Tensor) -> tf.Tensor:
    """Returns a quotient that is 0 where the divisor is 0: see the top of this file."""
    return tf.math.divide_no_nan(values, divisor)


def _shrunk(values: tf.Tensor, rates: tf.Tensor, l1: float, l2: float) -> tf.Tensor:
    """Makes the proximal step for L1 and L2 regularization."""
    return tf.sign(values) * tf.maximum(tf.abs(values) - rates * l1, 0.0) / (1 + rates * l2)


RULES: dict[type[Optimizer], Rule] = {
    o.StochasticGradientDescent: _stochastic_gradient_descent,
    o.Adagrad: _adagrad,
    o.AdagradMomentum: _adagrad_momentum,
    o.ProximalAdagrad: _proximal_adagrad,
    o.Adam: _adam,
    o.Ftrl: _ftrl,
    o.Momentum: _momentum,
    o.RMSProp: _rms_prop,
    o.ProximalYogi: _proximal_yogi,
    o.FrequencyEstimator: _frequency_estimator,
    o.Adadelta: _adadelta,
    o.CenteredRMSProp: _centered_rms_prop,
    o.Lion: _lion,
}
