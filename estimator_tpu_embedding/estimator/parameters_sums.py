"""Declares the optimizers that divide by the root of a sum of squared gradients.

Arguments, defaults, attributes and errors are the same as in TensorFlow 2.15. Its
`optimization_parameters.proto` has the formulas. In them `w` is a row, `g` is its summed gradient
and `rate` is the learning rate. They are computed element by element, in float32. Each example
makes one step on a row of one element: `update_rows` is the rule that trains tables.
"""

from __future__ import annotations

from typing import Any

from ..core import optimizers
from .parameters_base import _OptimizationParameters, require, require_strengths, with_tail


@with_tail
class AdagradParameters(_OptimizationParameters):
    """Adagrad: `A += g**2; w -= rate * g / sqrt(A)`.

    Attributes:
      learning_rate: >= 0; the rate of a table takes precedence.
      initial_accumulator: the first value of each element of `A`, > 0.
      use_gradient_accumulation: `True` sums the gradients of a row over all cores and updates the
        row once; `False` updates it once for each core that has it.
      clip_weight_min: the lower bound of each element after its update, or `None`.
      clip_weight_max: the upper bound, or `None`.
      weight_decay_factor: the share of each touched row that is subtracted, or `None`.
      multiply_weight_decay_factor_by_learning_rate: whether that share is times the rate.
      clip_gradient_min: the lower bound of each element of the summed gradient, or `None`.
      clip_gradient_max: the upper bound, or `None`.

    Raises:
      ValueError: as the original does, for values out of range.

    Here `A` becomes `5 + 2**2 = 9`, and `w` becomes `1 - 0.3 * 2 / 3`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = AdagradParameters(learning_rate=0.3, initial_accumulator=5.).to_optimizer()
    >>> w, (A,) = update_rows(rule, 1.0, (5.0,), gradient=2.0, rate=0.3)
    >>> round(float(w), 6), float(A)
    (0.8, 9.0)
    """

    core = optimizers.Adagrad

    learning_rate: float
    initial_accumulator: float = 0.1

    def _check(self) -> None:
        require(not self.initial_accumulator <= 0, 'Adagrad initial_accumulator must be greater '
                f'than zero. Received: {self.initial_accumulator}.')


@with_tail
class AdagradMomentumParameters(_OptimizationParameters):
    """Adagrad whose scaled gradient passes through momentum.

        A += g**2
        step = g / (A + epsilon)**(1 / exponent)
        M = momentum * M + step
        w -= rate * M

    Attributes:
      learning_rate: >= 0.
      momentum: the decay of `M`.
      use_nesterov: whether `w -= rate * (momentum * M + step)` instead.
      exponent: > 0; 2 is the square root.
      beta2: the decay of `A`; 1 is the plain sum, otherwise
        `A = beta2 * A + (1 - beta2) * g**2`.
      epsilon: > 0.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `A` becomes 9, `M` becomes `0.5 * 2 + 2 / 3`, and `w` becomes `1 - 0.3 * M`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = AdagradMomentumParameters(learning_rate=0.3, momentum=0.5).to_optimizer()
    >>> w, (A, M) = update_rows(rule, 1.0, (5.0, 2.0), gradient=2.0, rate=0.3)
    >>> round(float(w), 6), float(A), round(float(M), 6)
    (0.5, 9.0, 1.666667)
    """

    core = optimizers.AdagradMomentum

    learning_rate: float
    momentum: float
    use_nesterov: bool = False
    exponent: float = 2
    beta2: float = 1
    epsilon: float = 1e-10

    def _check(self) -> None:
        require(not self.epsilon <= 0, 'Adagrad momentum: epsilon must be positive')
        require(not self.exponent <= 0, 'Adagrad momentum: Precondition exponent must >0')


@with_tail
class ProximalAdagradParameters(_OptimizationParameters):
    """Adagrad with a proximal step for L1 and L2 regularization.

        A += g**2
        r = rate / sqrt(A)
        w -= r * g
        w = sign(w) * max(abs(w) - r * l1, 0) / (1 + r * l2)

    Attributes:
      learning_rate: >= 0.
      initial_accumulator: the first value of each element of `A`, > 0.
      l1_regularization_strength: >= 0.
      l2_regularization_strength: >= 0.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `A` becomes 9 and `r` is 0.1, so `w` becomes `1 - 0.1 * 2`, and then `0.8 - 0.1 * 1`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = ProximalAdagradParameters(
    ...     learning_rate=0.3, l1_regularization_strength=1.0).to_optimizer()
    >>> w, (A,) = update_rows(rule, 1.0, (5.0,), gradient=2.0, rate=0.3)
    >>> round(float(w), 6), float(A)
    (0.7, 9.0)
    """

    core = optimizers.ProximalAdagrad

    learning_rate: float
    initial_accumulator: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0

    def _check(self) -> None:
        require(not self.initial_accumulator <= 0, 'Adagrad initial_accumulator must be '
                f'positive. Received: {self.initial_accumulator}.')
        require_strengths(self)


@with_tail
class FtrlParameters(_OptimizationParameters):
    """Follow the regularized leader, for sparse models.

    The function `root(x)` is `x**-learning_rate_power`; `z` is the linear term.

        B = A + g**2
        z += g - (root(B) - root(A)) * w / rate
        A = B
        w = (clip(z, -l1, l1) - z) / ((root(A) + beta) / rate + 2 * l2)

    Attributes:
      learning_rate: >= 0; 0 leaves the table as it is.
      learning_rate_power: <= 0; -0.5 makes `root` the square root.
      initial_accumulator_value: the first value of each element of `A`, >= 0.
      l1_regularization_strength: >= 0.
      l2_regularization_strength: >= 0.
      multiply_linear_by_learning_rate: whether `z` is kept times the rate.
      beta: added to the root.
      allow_zero_accumulator: whether `A` may be 0.
      initial_linear_value: the first value of each element of `z`, 0; no argument.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `A` becomes `9 + 4**2`, `z` becomes `4 - (5 - 3) * 1`, and `w` becomes `-2 / 5`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = FtrlParameters(learning_rate=1.0, initial_accumulator_value=9.0).to_optimizer()
    >>> w, (A, z) = update_rows(rule, 1.0, (9.0, 0.0), gradient=4.0, rate=1.0)
    >>> round(float(w), 6), float(A), float(z)
    (-0.4, 25.0, 2.0)
    """

    core = optimizers.Ftrl

    learning_rate: float
    learning_rate_power: float = -0.5
    initial_accumulator_value: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0
    use_gradient_accumulation: Any = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    multiply_linear_by_learning_rate: bool = False
    beta: float = 0
    allow_zero_accumulator: bool = False

    def _check(self) -> None:
        require(not self.learning_rate_power > 0, 'learning_rate_power must be less than or '
                f'equal to 0. got {self.learning_rate_power}.')
        require(not self.initial_accumulator_value < 0, 'initial_accumulator_value must be '
                f'greater than or equal to 0. got {self.initial_accumulator_value}.')
        require_strengths(self)
        self.initial_linear_value = 0.0

    def _own(self) -> dict[str, Any]:
        return {**super()._own(), 'initial_linear': self.initial_linear_value}
