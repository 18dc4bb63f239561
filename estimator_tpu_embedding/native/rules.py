"""Encodes an optimizer for the native kernels: as the number of its rule, and 24 floats.

`src/rules.h` has one struct per rule. If a rule uses `1 - b`, that is passed beside `b`. It is
computed in double precision, as in TensorFlow's ops, because `1 - float32(0.999)` is off by 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core import optimizers as o
from ..core.optimizers import Bounds, Optimizer

OPTIONS = 24
"""How many floats each table has: kOptions in `src/options.h`."""


def _sgd(optimizer: o.StochasticGradientDescent) -> tuple[float, ...]:
    return ()


def _adagrad(optimizer: o.Adagrad) -> tuple[float, ...]:
    return ()


def _adagrad_momentum(optimizer: o.AdagradMomentum) -> tuple[float, ...]:
    decay = optimizer.beta2
    return (optimizer.momentum, optimizer.use_nesterov, 1 / optimizer.exponent,
            decay, 1 - decay, optimizer.epsilon)


def _proximal_adagrad(optimizer: o.ProximalAdagrad) -> tuple[float, ...]:
    return optimizer.l1, optimizer.l2


def _adam(optimizer: o.Adam) -> tuple[float, ...]:
    return (optimizer.beta1, 1 - optimizer.beta1, optimizer.beta2, 1 - optimizer.beta2,
            optimizer.epsilon, optimizer.epsilon**2, optimizer.use_sum_inside_sqrt)


def _ftrl(optimizer: o.Ftrl) -> tuple[float, ...]:
    return (optimizer.l1, optimizer.l2, -optimizer.lr_power, optimizer.beta,
            optimizer.multiply_linear_by_lr)


def _momentum(optimizer: o.Momentum) -> tuple[float, ...]:
    return optimizer.momentum, optimizer.use_nesterov


def _rms_prop(optimizer: o.RMSProp | o.CenteredRMSProp) -> tuple[float, ...]:
    return optimizer.rho, 1 - optimizer.rho, optimizer.momentum, optimizer.epsilon


def _proximal_yogi(optimizer: o.ProximalYogi) -> tuple[float, ...]:
    return (optimizer.l1, optimizer.l2, optimizer.beta1, 1 - optimizer.beta1,
            1 - optimizer.beta2, optimizer.epsilon)


def _frequency_estimator(optimizer: o.FrequencyEstimator) -> tuple[float, ...]:
    return (optimizer.tau, 1 - optimizer.tau, optimizer.max_delta, optimizer.outlier_threshold)


def _adadelta(optimizer: o.Adadelta) -> tuple[float, ...]:
    return optimizer.rho, 1 - optimizer.rho, optimizer.epsilon


def _lion(optimizer: o.Lion) -> tuple[float, ...]:
    return optimizer.beta1, 1 - optimizer.beta1, optimizer.beta2, 1 - optimizer.beta2


RULES: dict[type[Optimizer], tuple[int, Callable[[Any], tuple[float, ...]]]] = {
    o.StochasticGradientDescent: (0, _sgd),
    o.Adagrad: (1, _adagrad),
    o.AdagradMomentum: (2, _adagrad_momentum),
    o.ProximalAdagrad: (3, _proximal_adagrad),
    o.Adam: (4, _adam),
    o.Ftrl: (5, _ftrl),
    o.Momentum: (6, _momentum),
    o.RMSProp: (7, _rms_prop),
    o.ProximalYogi: (8, _proximal_yogi),
    o.FrequencyEstimator: (9, _frequency_estimator),
    o.Adadelta: (10, _adadelta),
    o.CenteredRMSProp: (11, _rms_prop),
    o.Lion: (12, _lion),
}
"""The number of each rule, and a function that returns the rule's own options, as its struct's
`o[i]` has them."""


def encoded(optimizer: Optimizer) -> tuple[int, tuple[float, ...]]:
    """Returns the number of an optimizer's rule, and its options."""
    return RULES[type(optimizer)][0], options_of(optimizer)


def options_of(optimizer: Optimizer) -> tuple[float, ...]:
    """Returns the options of a table that this optimizer trains, in the order of `src/options.h`.

    Args:
      optimizer: has no `problems`.

    Returns:
      `OPTIONS` floats. First come flags, 0 or 1: whether gradients are accumulated, whether all
      rows are updated, whether weights decay. Then the decay, and whether it is multiplied by the
      rate. Then the bounds on weights and on gradients, infinite for none. Then the rule's own
      options, and zeros.
    """
    options = (
        optimizer.accumulate, optimizer.updates_all_rows,
        optimizer.decay is not None, optimizer.decay or 0.0, optimizer.decay_times_rate,
        *_bounds(optimizer.clip_weights), *_bounds(optimizer.clip_gradients),
        *RULES[type(optimizer)][1](optimizer))
    return tuple(map(float, options)) + (0.0,) * (OPTIONS - len(options))


def _bounds(bounds: Bounds) -> tuple[float, float]:
    return (-math.inf if bounds.lower is None else bounds.lower,
            math.inf if bounds.upper is None else bounds.upper)
