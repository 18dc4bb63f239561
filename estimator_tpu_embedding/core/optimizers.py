"""What is known of each table optimizer: one frozen class, one row of facts.

The update rules themselves are in `ops/rules.py`. Every field of an algorithm's message in
`protos/optimization_parameters.proto` is an attribute of its class here with the same name; an
attribute more, such as `initial_accumulator`, is what the message does not hold.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ..errors import Problem

SMALLEST_NORMAL = 2.0**-126
"""An accumulator below this may flush to zero, and 0 / sqrt(0) is not a number."""


def is_number(value: object, lowest: float = -math.inf) -> bool:
    """Whether `value` is a finite number (no bool) that is not below `lowest`."""
    return (isinstance(value, numbers.Real) and not isinstance(value, bool)
            and math.isfinite(value) and float(value) >= lowest)


def number(default: Any = dataclasses.MISSING, **bounds: float) -> Any:
    """A field of a dataclass that holds a finite number.

    Args:
      default: none if left out.
      **bounds: of `at_least`, `at_most`, `above`, `below`; `Optimizer.problems` checks them.
    """
    return dataclasses.field(default=default, metadata={'bounds': bounds})


_BOUNDS: dict[str, tuple[str, Callable[[Any, float], bool]]] = {
    'at_least': ('>=', operator.ge), 'at_most': ('<=', operator.le), 'above': ('>', operator.gt),
    'below': ('<', operator.lt)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Element-wise bounds; `None` is no bound on that side."""

    lower: float | None = None
    upper: float | None = None

    def problems(self, where: str, what: str) -> Iterator[Problem]:
        """Yields what is wrong with these bounds on `what` of the object called `where`."""
        for value in (self.lower, self.upper):
            if value is not None and not is_number(value):
                yield Problem('E427', where, f'the bounds on {what} must be finite numbers',
                              repr(value))
                return
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            yield Problem('E427', where, f'the lower bound on {what} must not exceed the upper',
                          f'[{self.lower}, {self.upper}]')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlotSpec:
    """One table of optimizer state, shaped like the table it belongs to.

    Attributes:
      initial_value: what each element starts with.
      suffix: the checkpoint holds it under `<variable name>/<suffix>`.
    """

    initial_value: float
    suffix: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """What every table optimizer has.

    Attributes:
      learning_rate: finite, >= 0; a table's own rate takes precedence.
      accumulate: sum all gradients of a row over samples, features and cores, then update it
        once. The hardware's default.
      clip_weights: bounds on each element of a row after its update.
      clip_gradients: bounds on each element of the summed gradient before the update.
      decay: `w -= decay * w` on each touched row before the update; `None` is none.
      decay_times_rate: the factor is `decay * rate` instead.
    """

    field: ClassVar[str]

    learning_rate: float
    accumulate: bool = True
    clip_weights: Limits = Limits()
    clip_gradients: Limits = Limits()
    decay: float | None = None
    decay_times_rate: bool = False

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The tables of state this optimizer keeps, in the order of the load and retrieve ops."""
        return ()

    @property
    def updates_all_rows(self) -> bool:
        """Whether rows that were not looked up change too, with a gradient of 0."""
        return False

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields what is wrong with the hyper-parameters, for the table called `where`."""
        if not is_number(self.learning_rate, 0):
            yield Problem('E421', where, 'the learning rate must be a finite number >= 0',
                          repr(self.learning_rate),
                          'Give a function of the step to the column, as learning_rate_fn.'
                          if callable(self.learning_rate) else '')
        if self.decay is not None and not is_number(self.decay, 0):
            yield Problem('E426', where, 'the weight decay must be a finite number >= 0',
                          repr(self.decay))
        for field in dataclasses.fields(self):
            bounds = field.metadata.get('bounds')
            value = getattr(self, field.name)
            if bounds is not None and not (is_number(value) and all(
                    _BOUNDS[name][1](value, bound) for name, bound in bounds.items())):
                wanted = ' and '.join(f'{_BOUNDS[name][0]} {bound}'
                                      for name, bound in bounds.items())
                yield Problem('E425', where, f'{field.name} of {self.field} must be a finite '
                              f'number {wanted}'.rstrip(), repr(value))
        if not self.accumulate and self.clip_gradients != Limits():
            yield Problem('E429', where, 'clipping gradients needs gradient accumulation',
                          'use_gradient_accumulation=False', 'Leave it at True.')
        yield from self.clip_weights.problems(where, 'weights')
        yield from self.clip_gradients.problems(where, 'gradients')


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

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields what is wrong with the hyper-parameters, for the table called `where`."""
        yield from Optimizer.problems(self, where)
        if self.use_non_lazy_adam and not self.accumulate:
            yield Problem('E428', where, 'non-lazy Adam needs gradient accumulation',
                          'use_gradient_accumulation=False', 'Leave it at True.')


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


OPTIMIZERS: dict[str, type[Optimizer]] = {
    cls.field: cls for cls in (
        StochasticGradientDescent, Adagrad, AdagradMomentum, ProximalAdagrad, Adam, Ftrl,
        Momentum, RMSProp, ProximalYogi, FrequencyEstimator)
}
"""By the name of the field of the proto's `parameters` oneof."""
