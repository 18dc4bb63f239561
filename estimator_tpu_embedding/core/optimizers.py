"""What is known of each table optimizer: one frozen class, one row of facts.

The update rules themselves are in `ops/rules.py`. Every field of an algorithm's message in
`protos/optimization_parameters.proto` is an attribute of its class here with the same name; an
attribute more, such as `initial_accumulator`, is what the message does not hold.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from .optimizer_base import SMALLEST_NORMAL, Optimizer, SlotSpec, number


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StochasticGradientDescent(Optimizer):
    """`w -= rate * g`."""

    field: ClassVar[str] = 'stochastic_gradient_descent'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Adagrad(Optimizer):
    """`A += g**2; w -= rate * g / sqrt(A)`.

    Attributes:
      initial_accumulator: what each element of `A` starts with, > 0.
    """

    field: ClassVar[str] = 'adagrad'

    initial_accumulator: float = number(0.1, at_least=SMALLEST_NORMAL)

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The sum of squared gradients."""
        return (SlotSpec(initial_value=self.initial_accumulator, suffix='Adagrad'),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdagradMomentum(Optimizer):
    """Adagrad whose preconditioned gradient passes through momentum.

    Attributes:
      momentum: decay of the momentum.
      use_nesterov: look ahead by one momentum step.
      exponent: the gradient is divided by the accumulator to the power `1 / exponent`, > 0.
      beta2: decay of the accumulator; 1 is a plain sum.
      epsilon: added to the accumulator, > 0.
    """

    field: ClassVar[str] = 'adagrad_momentum'

    momentum: float = number()
    use_nesterov: bool = False
    exponent: float = number(2.0, above=0)
    beta2: float = number(1.0)
    epsilon: float = number(1e-10, above=0)

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The accumulator and the momenta."""
        return (SlotSpec(initial_value=0.0, suffix='AdagradMomentum/Accumulator'),
                SlotSpec(initial_value=0.0, suffix='AdagradMomentum/Momentum'))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProximalAdagrad(Optimizer):
    """Adagrad with a proximal step for L1 and L2 regularization.

    Attributes:
      l1: strength, >= 0.
      l2: strength, >= 0.
      initial_accumulator: what each element of the accumulator starts with, > 0.
    """

    field: ClassVar[str] = 'proximal_adagrad'

    l1: float = number(0.0, at_least=0)
    l2: float = number(0.0, at_least=0)
    initial_accumulator: float = number(0.1, at_least=SMALLEST_NORMAL)

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The sum of squared gradients."""
        return (SlotSpec(initial_value=self.initial_accumulator, suffix='ProximalAdagrad'),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Adam(Optimizer):
    """Adam on the touched rows, or on all of them.

    Attributes:
      beta1: decay of the first moment, in [0, 1).
      beta2: decay of the second moment, in [0, 1).
      epsilon: > 0.
      use_non_lazy_adam: rows that were not looked up move too.
      use_sum_inside_sqrt: divide by `sqrt(v + epsilon**2)`, else by `sqrt(v) + epsilon`.
    """

    field: ClassVar[str] = 'adam'

    beta1: float = number(0.9, at_least=0, below=1)
    beta2: float = number(0.999, at_least=0, below=1)
    epsilon: float = number(1e-8, above=0)
    use_non_lazy_adam: bool = False
    use_sum_inside_sqrt: bool = True

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """Both moments."""
        return (SlotSpec(initial_value=0.0, suffix='Adam/m'),
                SlotSpec(initial_value=0.0, suffix='Adam/v'))

    @property
    def updates_all_rows(self) -> bool:
        """What `use_non_lazy_adam` says."""
        return self.use_non_lazy_adam


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ftrl(Optimizer):
    """Follow the regularized leader.

    Attributes:
      l1: strength, >= 0.
      l2: strength, >= 0.
      lr_power: power of the accumulator, <= 0.
      multiply_linear_by_lr: keep the linear term times the learning rate.
      beta: added to the root of the accumulator.
      allow_zero_accumulator: an accumulator of 0 is meant.
      initial_accumulator: what each element of the accumulator starts with, >= 0.
      initial_linear: what each element of the linear term starts with.
    """

    field: ClassVar[str] = 'ftrl'

    l1: float = number(0.0, at_least=0)
    l2: float = number(0.0, at_least=0)
    lr_power: float = number(-0.5, at_most=0)
    multiply_linear_by_lr: bool = False
    beta: float = number(0.0)
    allow_zero_accumulator: bool = False
    initial_accumulator: float = number(0.1, at_least=0)
    initial_linear: float = number(0.0)

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The accumulator and the linear term."""
        return (SlotSpec(initial_value=self.initial_accumulator, suffix='Ftrl'),
                SlotSpec(initial_value=self.initial_linear, suffix='Ftrl_1'))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Momentum(Optimizer):
    """`M = momentum * M + g; w -= rate * M`.

    Attributes:
      momentum: decay of the momentum.
      use_nesterov: look ahead by one momentum step.
    """

    field: ClassVar[str] = 'momentum'

    momentum: float = number()
    use_nesterov: bool = False

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The momenta."""
        return (SlotSpec(initial_value=0.0, suffix='Momentum'),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RMSProp(Optimizer):
    """The gradient divided by the root of its running mean square, through momentum.

    Attributes:
      rho: decay of the mean square.
      momentum: decay of the momentum.
      epsilon: added to the mean square.
    """

    field: ClassVar[str] = 'rms_prop'

    rho: float = number()
    momentum: float = number()
    epsilon: float = number()

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The mean square, which starts at 0 here and at 1 in `tf.train`, and the momenta."""
        return (SlotSpec(initial_value=0.0, suffix='RMSProp/ms'),
                SlotSpec(initial_value=0.0, suffix='RMSProp/mom'))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProximalYogi(Optimizer):
    """Yogi with a proximal step for L1 and L2 regularization.

    Attributes:
      l1: strength, >= 0.
      l2: strength, >= 0.
      beta1: decay of the first moment, in [0, 1).
      beta2: decay of the second moment, in [0, 1).
      epsilon: > 0.
      initial_accumulator: what each element of the second moment starts with, >= 0.
    """

    field: ClassVar[str] = 'proximal_yogi'

    l1: float = number(0.0, at_least=0)
    l2: float = number(0.0, at_least=0)
    beta1: float = number(0.9, at_least=0, below=1)
    beta2: float = number(0.999, at_least=0, below=1)
    epsilon: float = number(1e-3, above=0)
    initial_accumulator: float = number(1e-6, at_least=0)

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The second moment, then the first, in the order of the load op."""
        return (SlotSpec(initial_value=self.initial_accumulator, suffix='ProximalYogi'),
                SlotSpec(initial_value=0.0, suffix='ProximalYogi_1'))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyEstimator(Optimizer):
    """Estimates how often a row is looked up; trains nothing.

    Attributes:
      tau: learning rate of the estimate.
      max_delta: largest gap between two look-ups that counts.
      outlier_threshold: gaps beyond it, relative to the estimate, are outliers.
      weight_exponent: of the weight.
    """

    field: ClassVar[str] = 'frequency_estimator'

    tau: float = number()
    max_delta: float = number()
    outlier_threshold: float = number()
    weight_exponent: float = number()

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The step of the last look-up."""
        return (SlotSpec(initial_value=0.0, suffix='FrequencyEstimator'),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Adadelta(Optimizer):
    """Steps in the ratio of the running root mean squares of updates and gradients.

    Attributes:
      rho: decay of both.
      epsilon: added to both mean squares, > 0.
    """

    field: ClassVar[str] = 'adadelta'

    rho: float = number(0.95)
    epsilon: float = number(1e-8, above=0)

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The mean squares of the gradients, and of the updates."""
        return (SlotSpec(initial_value=0.0, suffix='Adadelta'),
                SlotSpec(initial_value=0.0, suffix='Adadelta_1'))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CenteredRMSProp(Optimizer):
    """RMSProp with the running variance of the gradient instead of its mean square.

    Attributes:
      rho: decay of mean and mean square.
      momentum: decay of the momentum.
      epsilon: added to the variance, > 0 since rounding may take it below 0.
    """

    field: ClassVar[str] = 'centered_rms_prop'

    rho: float = number()
    momentum: float = number()
    epsilon: float = number(above=0)

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The mean square, the momenta and the mean, in the order of the load op."""
        return (SlotSpec(initial_value=0.0, suffix='CenteredRMSProp/ms'),
                SlotSpec(initial_value=0.0, suffix='CenteredRMSProp/mom'),
                SlotSpec(initial_value=0.0, suffix='CenteredRMSProp/mg'))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lion(Optimizer):
    """Steps of equal size, in the direction of a momentum's sign.

    Attributes:
      beta1: weight of the old momentum in the direction, in [0, 1).
      beta2: decay of the momentum, in [0, 1).
      use_non_lazy_lion: rows that were not looked up move too.
    """

    field: ClassVar[str] = 'lion'

    beta1: float = number(0.9, at_least=0, below=1)
    beta2: float = number(0.99, at_least=0, below=1)
    use_non_lazy_lion: bool = False

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The momenta."""
        return (SlotSpec(initial_value=0.0, suffix='Lion'),)

    @property
    def updates_all_rows(self) -> bool:
        """What `use_non_lazy_lion` says."""
        return self.use_non_lazy_lion


OPTIMIZERS: dict[str, type[Optimizer]] = {
    cls.field: cls for cls in (
        StochasticGradientDescent, Adagrad, AdagradMomentum, ProximalAdagrad, Adam, Ftrl,
        Momentum, RMSProp, ProximalYogi, FrequencyEstimator, Adadelta, CenteredRMSProp, Lion)
}
"""By the name of the field of the proto's `parameters` oneof."""

UNDOCUMENTED = frozenset({
    'bounded_adagrad', 'frequency_aware_adagrad', 'mdl_adagrad_light', 'online_yogi'})
"""Fields of that oneof whose formulas nobody has published: a rule for them would be a guess."""
