"""Converts optimizers of `tf.tpu.experimental.embedding` to optimizers of the core.

The classes are TensorFlow's own, because users make and compare them. The checks of their
constructors are not repeated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..core import optimizers as core
from ..core.optimizers import Bounds, Optimizer
from ..core.rates import ConstantRate, DynamicRate, Rate

_api = tf.tpu.experimental.embedding


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """How one class of TF2 is converted.

    Attributes:
      core: its class in the core.
      slots: the names of its slots on disk, in the order of `core.slots`.
      numbers: returns the hyper-parameters that only this class has, by their names in the core.
    """

    core: type[Optimizer]
    slots: tuple[str, ...]
    numbers: Callable[[Any], dict[str, Any]]


_KINDS: dict[type, _Kind] = {
    _api.SGD: _Kind(core.StochasticGradientDescent, (), lambda one: {}),
    _api.Adagrad: _Kind(core.Adagrad, ('accumulators',), lambda one: {
        'initial_accumulator': one.initial_accumulator_value}),
    _api.AdagradMomentum: _Kind(core.AdagradMomentum, ('accumulators', 'momenta'), lambda one: {
        'momentum': one.momentum, 'use_nesterov': one.use_nesterov, 'exponent': one.exponent,
        'beta2': one.beta2, 'epsilon': one.epsilon}),
    _api.FTRL: _Kind(core.Ftrl, ('accumulators', 'linears'), lambda one: {
        'l1': one.l1_regularization_strength, 'l2': one.l2_regularization_strength,
        'lr_power': one.learning_rate_power, 'beta': one.beta,
        'multiply_linear_by_lr': one.multiply_linear_by_learning_rate,
        'allow_zero_accumulator': one.allow_zero_accumulator,
        'initial_accumulator': one.initial_accumulator_value}),
    _api.Adam: _Kind(core.Adam, ('momenta', 'velocities'), lambda one: {
        'beta1': one.beta_1, 'beta2': one.beta_2, 'epsilon': one.epsilon,
        'use_non_lazy_adam': not one.lazy_adam, 'use_sum_inside_sqrt': one.sum_inside_sqrt}),
}


@dataclasses.dataclass(frozen=True, slots=True)
class _IgnoringStep:
    """Makes a function of the step from one without arguments; equal if the functions are equal."""

    function: Callable[[], Any]

    def __call__(self, step: Any) -> Any:
        return self.function()


def is_supported(optimizer: object) -> bool:
    """Returns whether an object is one of the optimizers that can train a table."""
    return isinstance(optimizer, tuple(_KINDS))


def core_optimizer(optimizer: Any) -> Optimizer:
    """Returns the optimizer of the core with the same numbers, unchecked.

    Args:
      optimizer: one that `is_supported`.

    Returns:
      An optimizer whose learning rate is 0.0 if the rate of `optimizer` is callable; `rate_of`
      returns that rate. A decay of 0 means no decay, as in the proto.
    """
    kind = _kind_of(optimizer)
    rate = optimizer.learning_rate
    return kind.core(
        **kind.numbers(optimizer), learning_rate=0.0 if callable(rate) else rate,
        accumulate=bool(optimizer.use_gradient_accumulation),
        clip_weights=Bounds(lower=optimizer.clip_weight_min, upper=optimizer.clip_weight_max),
        clip_gradients=Bounds(lower=optimizer.clip_gradient_min,
                              upper=optimizer.clip_gradient_max),
        decay=optimizer.weight_decay_factor or None,
        decay_times_rate=bool(optimizer.weight_decay_factor
                              and optimizer.multiply_weight_decay_factor_by_learning_rate))


def rate_of(optimizer: Any) -> Rate:
    """Returns the learning rate; equal functions, such as bound methods, give equal rates."""
    rate = optimizer.learning_rate
    if callable(rate):
        return DynamicRate(function=_IgnoringStep(rate))
    return ConstantRate(value=rate)


def slot_names(optimizer: Any) -> tuple[str, ...]:
    """Returns the names of the slots on disk, in the order of `core_optimizer(optimizer).slots`."""
    return _kind_of(optimizer).slots


def _kind_of(optimizer: Any) -> _Kind:
    return next(kind for cls, kind in _KINDS.items() if isinstance(optimizer, cls))
