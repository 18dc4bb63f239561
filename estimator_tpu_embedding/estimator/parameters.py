"""Declares gradient descent, momentum and the frequency estimator; lists all optimizers.

Arguments, defaults, attributes and errors are the same as in TensorFlow 2.15. Its
`optimization_parameters.proto` has the formulas. In them `w` is a row, `g` is its summed gradient
and `rate` is the learning rate. They are computed element by element, in float32. Each example
makes one step on a row of one element: `update_rows` is the rule that trains tables.
"""

from __future__ import annotations

import dataclasses

from ..core import optimizers
from .parameters_averages import AdamParameters, ProximalYogiParameters, RMSPropParameters
from .parameters_base import TAIL, _OptimizationParameters, with_tail
from .parameters_sums import (
    AdagradMomentumParameters,
    AdagradParameters,
    FtrlParameters,
    ProximalAdagradParameters,
)


@with_tail
class StochasticGradientDescentParameters(_OptimizationParameters):
    """Plain gradient descent: `w -= rate * g`.

    Attributes:
      learning_rate: >= 0.

    All optimizers share the other arguments: see `AdagradParameters`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = StochasticGradientDescentParameters(learning_rate=0.5).to_optimizer()
    >>> w, slots = update_rows(rule, 3.0, (), gradient=2.0, rate=0.5)
    >>> float(w)
    2.0
    """

    core = optimizers.StochasticGradientDescent

    learning_rate: float


@with_tail
class MomentumParameters(_OptimizationParameters):
    """Momentum: `M = momentum * M + g; w -= rate * M`.

    Attributes:
      learning_rate: >= 0.
      momentum: the decay of `M`.
      use_nesterov: whether `w -= rate * (g + momentum * M)` instead.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `M` becomes `0.5 * 1 + 2`, and `w` becomes `1 - 0.1 * 2.5`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = MomentumParameters(learning_rate=0.1, momentum=0.5).to_optimizer()
    >>> w, (M,) = update_rows(rule, 1.0, (1.0,), gradient=2.0, rate=0.1)
    >>> round(float(w), 6), float(M)
    (0.75, 2.5)
    """

    core = optimizers.Momentum

    learning_rate: float
    momentum: float
    use_nesterov: bool = False


@dataclasses.dataclass(eq=False)
class FrequencyEstimatorParameters(_OptimizationParameters):
    """Estimates how many steps lie between two look-ups of a row; trains nothing.

    The gap is the number of steps since the last look-up. The rule takes the global step in the
    place of `rate`.

        d = min(gap, max_delta)
        w = d if gap >= outlier_threshold * w else (1 - tau) * w + tau * d

    Attributes:
      tau: the weight of a new gap, in [0, 1].
      max_delta: the largest gap that counts, in steps.
      outlier_threshold: the multiple of `w` from which a gap replaces the estimate.
      weight_exponent: an exponent that only the hardware uses.

    The arguments that the other optimizers share cannot be set.

    Here `gap` is `18 - 10`, so `w` becomes `0.75 * 4 + 0.25 * 8`.

    >>> from estimator_tpu_embedding.ops.rules import update_rows
    >>> rule = FrequencyEstimatorParameters(
    ...     tau=0.25, max_delta=100., outlier_threshold=3., weight_exponent=1.).to_optimizer()
    >>> w, (last_step,) = update_rows(rule, 4.0, (10.0,), gradient=0.0, rate=18.0)
    >>> float(w), float(last_step)
    (5.0, 18.0)
    """

    core = optimizers.FrequencyEstimator

    tau: float
    max_delta: float
    outlier_threshold: float
    weight_exponent: float

    def __post_init__(self) -> None:
        """Gives the arguments of all optimizers the values that change nothing."""
        vars(self).update(learning_rate=1.0, **TAIL)


ALL: dict[str, type[_OptimizationParameters]] = {cls.__name__: cls for cls in (
    AdagradParameters, AdagradMomentumParameters, AdamParameters, FrequencyEstimatorParameters,
    FtrlParameters, MomentumParameters, ProximalAdagradParameters, ProximalYogiParameters,
    RMSPropParameters, StochasticGradientDescentParameters)}
"""All classes by name."""
