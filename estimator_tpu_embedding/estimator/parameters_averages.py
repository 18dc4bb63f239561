"""Declares the optimizers that divide by the root of a moving average of squared gradients.

Arguments, defaults, attributes and errors are the same as in TensorFlow 2.15. Its
`optimization_parameters.proto` has the formulas. In them `w` is a row, `g` is its summed gradient
and `rate` is the learning rate. They are computed element by element, in float32. Each example
makes one step on a row of one element: `update_rows` is the rule that trains tables.
"""

from __future__ import annotations

from typing import Any

from ..core import optimizers
from .parameters_base import (
    _OptimizationParameters,
    require,
    require_moments,
    require_strengths,
    with_tail,
)


@with_tail
class AdamParameters(_OptimizationParameters):
    """Adam without bias correction, as on the hardware.

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        w -= rate * m / sqrt(v + epsilon**2)

    Attributes:
      learning_rate: >= 0.
      beta1: the decay of `m`, in [0, 1).
      beta2: the decay of `v`, in [0, 1).
      epsilon: > 0.
      lazy_adam: whether only the rows that were looked up move; `False` moves all rows.
      sum_inside_sqrt: `False` divides by `sqrt(v) + epsilon` instead.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `m` becomes `0.5 * 2 = 1`, `v` becomes `0.25 * 4 = 1`, and `w` becomes `1 - 0.1 * 1`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = AdamParameters(learning_rate=0.1, beta1=0.5, beta2=0.75).to_optimizer()
    >>> w, (m, v) = update_rows(rule, 1.0, (0.0, 0.0), gradient=2.0, rate=0.1)
    >>> round(float(w), 6), float(m), float(v)
    (0.9, 1.0, 1.0)
    """

    core = optimizers.Adam

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-08
    lazy_adam: bool = True
    sum_inside_sqrt: bool = True

    def _check(self) -> None:
        require_moments(self)
        require(bool(self.use_gradient_accumulation or self.lazy_adam),
                'When disabling Lazy Adam, gradient accumulation must be used.')

    def _own(self) -> dict[str, Any]:
        own = super()._own()
        own['use_non_lazy_adam'] = not own.pop('lazy_adam')
        return own


@with_tail
class ProximalYogiParameters(_OptimizationParameters):
    """Yogi with a proximal step for L1 and L2 regularization, without bias correction.

        v += (1 - beta2) * sign(g**2 - v) * g**2
        m = beta1 * m + (1 - beta1) * g
        r = rate / (sqrt(v) + epsilon)
        w -= r * m
        w = sign(w) * max(abs(w) - r * l1, 0) / (1 + r * l2)

    The formula comes from Yogi in TensorFlow Addons.

    Attributes:
      learning_rate: >= 0.
      beta1: the decay of `m`, in [0, 1).
      beta2: the decay of `v`, in [0, 1).
      epsilon: > 0.
      l1_regularization_strength: >= 0.
      l2_regularization_strength: >= 0.
      initial_accumulator_value: the first value of each element of `v`, >= 0.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `v` becomes `0 + 0.25 * 4 = 1`, `m` becomes `0.5 * 2 = 1`, and `w` becomes `1 - 0.1`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = ProximalYogiParameters(
    ...     learning_rate=0.1, beta1=0.5, beta2=0.75, epsilon=1e-9).to_optimizer()
    >>> w, (v, m) = update_rows(rule, 1.0, (0.0, 0.0), gradient=2.0, rate=0.1)
    >>> round(float(w), 6), float(v), float(m)
    (0.9, 1.0, 1.0)
    """

    core = optimizers.ProximalYogi

    learning_rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-3
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0
    initial_accumulator_value: float = 1e-6

    def _check(self) -> None:
        require_moments(self)
        require_strengths(self)


@with_tail
class RMSPropParameters(_OptimizationParameters):
    """RMSProp: the gradient over the root of its running mean square, with momentum.

        s = rho * s + (1 - rho) * g**2
        M = momentum * M + rate * g / sqrt(s + epsilon)
        w -= M

    Attributes:
      learning_rate: >= 0.
      rho: the decay of `s`, which begins with 0.
      momentum: the decay of `M`.
      epsilon: added to `s`.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `s` becomes `0.5 * 14 + 0.5 * 4 = 9`, and `M` becomes `0.5 * 0.2 + 0.3 * 2 / 3`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = RMSPropParameters(
    ...     learning_rate=0.3, rho=0.5, momentum=0.5, epsilon=1e-9).to_optimizer()
    >>> w, (s, M) = update_rows(rule, 1.0, (14.0, 0.2), gradient=2.0, rate=0.3)
    >>> round(float(w), 6), float(s), round(float(M), 6)
    (0.7, 9.0, 0.3)
    """

    core = optimizers.RMSProp

    learning_rate: float
    rho: float
    momentum: float
    epsilon: float
