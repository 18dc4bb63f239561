"""Optimizers of `tf.tpu.experimental.embedding` -> those of the core.

The classes are TensorFlow's own, which users make and compare. What their constructors check is
not checked again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..core import optimizers as core
from ..core.optimizer_base import Limits, Optimizer
from ..core.rates import ConstantRate, DynamicRate, Rate

_api = tf.tpu.experimental.embedding


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """What is known of one class of TF2.

    Attributes:
      core: its class in the core.
      slots: the names of its slots on disk, in the order of `core.slots`.
      numbers: what it alone has, by the name in the core.
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
    """A function of nothing as a function of the step; equal where the functions are equal."""

    function: Callable[[], Any]

    def __call__(self, step: Any) -> Any:
        return self.function()


def is_supported(optimizer: object) -> bool:
    """Whether an object is one of the optimizers that train a table."""
    return isinstance(optimizer, tuple(_KINDS))


def core_optimizer(optimizer: Any) -> Optimizer:
    """The optimizer of the core with the same numbers, unchecked.

    Args:
      optimizer: one that `is_supported`.

    Returns:
      Its learning rate is 0.0 if that of `optimizer` is callable; `rate_of` has it then. A decay
      of 0 is none, as in the proto.
    """
    kind = _kind_of(optimizer)
    rate = optimizer.learning_rate
    return kind.core(
        **kind.numbers(optimizer), learning_rate=0.0 if callable(rate) else rate,
        accumulate=bool(optimizer.use_gradient_accumulation),
        clip_weights=Limits(lower=optimizer.clip_weight_min, upper=optimizer.clip_weight_max),
        clip_gradients=Limits(lower=optimizer.clip_gradient_min,
                              upper=optimizer.clip_gradient_max),
        decay=optimizer.weight_decay_factor or None,
        decay_times_rate=bool(optimizer.weight_decay_factor
                              and optimizer.multiply_weight_decay_factor_by_learning_rate))


def rate_of(optimizer: Any) -> Rate:
    """The learning rate; functions that are equal, as bound methods may be, give equal rates."""
    rate = optimizer.learning_rate
    if callable(rate):
        return DynamicRate(function=_IgnoringStep(rate))
    return ConstantRate(value=rate)


def slot_names(optimizer: Any) -> tuple[str, ...]:
    """The names of the slots on disk, in the order of `core_optimizer(optimizer).slots`."""
    return _kind_of(optimizer).slots


def _kind_of(optimizer: Any) -> _Kind:
    return next(kind for cls, kind in _KINDS.items() if isinstance(optimizer, cls))
