"""The optimizers of tables: one frozen class each, with its hyper-parameters and slots.

The update rules are in `ops/update_rules.py`. Each field of an algorithm's message in
`protos/tpu_embedding_configuration.proto` is an attribute of its class, under the same name. A
class may have further attributes, such as `initial_accumulator`, for which the message has no
field. Slots are in the order in which the hardware's operations load and retrieve them.
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

Slots = tuple[tuple[str, float | str], ...]
"""Suffix and first value of each slot; a string names the attribute that holds the value."""


def is_number(value: object, lowest: float = -math.inf) -> bool:
    """Whether `value` is a finite number (no bool) that is not below `lowest`."""
    return (isinstance(value, numbers.Real) and not isinstance(value, bool)
            and math.isfinite(value) and float(value) >= lowest)


def number(default: Any = dataclasses.MISSING, **bounds: float) -> Any:
    """Declares a field of a dataclass that holds a finite number.

    `bounds` are any of `at_least`, `at_most`, `above`, `below`; `Optimizer.problems` checks them.
    """
    return dataclasses.field(default=default, metadata={'bounds': bounds})


_BOUNDS: dict[str, tuple[str, Callable[[Any, float], bool]]] = {
    'at_least': ('>=', operator.ge), 'at_most': ('<=', operator.le), 'above': ('>', operator.gt),
    'below': ('<', operator.lt)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Element-wise bounds; `None` is no bound on that side."""

    lower: float | None = None
    upper: float | None = None

    def problems(self, where: str, what: str) -> Iterator[Problem]:
        """Yields each problem of these bounds on `what` of the object called `where`."""
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
    """One slot: optimizer state with the shape of its table.

    Attributes:
      initial_value: first value of each element.
      suffix: a checkpoint holds the slot under `<variable name>/<suffix>`.
    """

    initial_value: float
    suffix: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """How a table is trained; each algorithm is a derived class.

    Attributes:
      field: name of the algorithm in the proto's `parameters` oneof.
      initial_slots: the slots of the algorithm.
      learning_rate: finite, >= 0; a table's own rate takes precedence.
      accumulate: whether a row is updated once, with the sum of its gradients over samples,
        features and cores. This is the hardware's default. Otherwise gradients are summed within
        each core, and the row is updated once for each core that has it. Core `id % num_cores`
        comes first, the others follow in ascending order, with core 0 after the last. Every such
        update decays and bounds the weights.
      clip_weights: bounds on each element of a row after its update.
      clip_gradients: bounds on each element of the summed gradient before the update.
      decay: `w -= decay * w` on each touched row before the update; `None` is no decay.
      decay_times_rate: whether the factor is `decay * rate` instead.
    """

    field: ClassVar[str]
    initial_slots: ClassVar[Slots] = ()

    learning_rate: float
    accumulate: bool = True
    clip_weights: Bounds = Bounds()
    clip_gradients: Bounds = Bounds()
    decay: float | None = None
    decay_times_rate: bool = False

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The slots, in the order in which the hardware's operations load and retrieve them."""
        return tuple(SlotSpec(suffix=suffix, initial_value=(
            getattr(self, initial) if isinstance(initial, str) else initial))
            for suffix, initial in self.initial_slots)

    @property
    def updates_all_rows(self) -> bool:
        """Whether rows that were not looked up change too, with a gradient of 0."""
        return False

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields each problem of the hyper-parameters, for the table called `where`."""
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
        if self.updates_all_rows and not self.accumulate:
            yield Problem('E428', where, f'non-lazy {self.field} needs gradient accumulation',
                          'use_gradient_accumulation=False', 'Leave it at True.')
        if not self.accumulate and self.clip_gradients != Bounds():
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
    """`A += g**2; w -= rate * g / sqrt(A)`. The slot is `A`."""

    field: ClassVar[str] = 'adagrad'
    initial_slots: ClassVar[Slots] = (('Adagrad', 'initial_accumulator'),)

    initial_accumulator: float = number(0.1, at_least=SMALLEST_NORMAL)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdagradMomentum(Optimizer):
    """Adagrad whose preconditioned gradient passes through momentum.

    The slots are the accumulator and the momenta. The gradient is divided by the accumulator, to
    which `epsilon` is added, to the power `1 / exponent`. A `beta2` of 1 makes a plain sum of it.
    """

    field: ClassVar[str] = 'adagrad_momentum'
    initial_slots: ClassVar[Slots] = (
        ('AdagradMomentum/Accumulator', 0.0), ('AdagradMomentum/Momentum', 0.0))

    momentum: float = number()
    use_nesterov: bool = False
    exponent: float = number(2.0, above=0)
    beta2: float = number(1.0)
    epsilon: float = number(1e-10, above=0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProximalAdagrad(Optimizer):
    """Adagrad with a proximal step for L1 and L2 regularization. The slot is the accumulator."""

    field: ClassVar[str] = 'proximal_adagrad'
    initial_slots: ClassVar[Slots] = (('ProximalAdagrad', 'initial_accumulator'),)

    l1: float = number(0.0, at_least=0)
    l2: float = number(0.0, at_least=0)
    initial_accumulator: float = number(0.1, at_least=SMALLEST_NORMAL)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Adam(Optimizer):
    """Adam on the touched rows, or on all rows. The slots are both moments.

    Attributes:
      use_non_lazy_adam: whether rows that were not looked up move too.
      use_sum_inside_sqrt: whether to divide by `sqrt(v + epsilon**2)`, and not by
        `sqrt(v) + epsilon`.
    """

    field: ClassVar[str] = 'adam'
    initial_slots: ClassVar[Slots] = (('Adam/m', 0.0), ('Adam/v', 0.0))

    beta1: float = number(0.9, at_least=0, below=1)
    beta2: float = number(0.999, at_least=0, below=1)
    epsilon: float = number(1e-8, above=0)
    use_non_lazy_adam: bool = False
    use_sum_inside_sqrt: bool = True

    @property
    def updates_all_rows(self) -> bool:
        """The same as `use_non_lazy_adam`."""
        return self.use_non_lazy_adam


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ftrl(Optimizer):
    """Follow the regularized leader. The slots are the accumulator and the linear term.

    Attributes:
      lr_power: power of the accumulator.
      multiply_linear_by_lr: whether the linear term is kept times the learning rate.
      beta: added to the root of the accumulator.
      allow_zero_accumulator: whether an accumulator of 0 is intended.
    """

    field: ClassVar[str] = 'ftrl'
    initial_slots: ClassVar[Slots] = (('Ftrl', 'initial_accumulator'), ('Ftrl_1', 'initial_linear'))

    l1: float = number(0.0, at_least=0)
    l2: float = number(0.0, at_least=0)
    lr_power: float = number(-0.5, at_most=0)
    multiply_linear_by_lr: bool = False
    beta: float = number(0.0)
    allow_zero_accumulator: bool = False
    initial_accumulator: float = number(0.1, at_least=0)
    initial_linear: float = number(0.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Momentum(Optimizer):
    """`M = momentum * M + g; w -= rate * M`. The slot is `M`."""

    field: ClassVar[str] = 'momentum'
    initial_slots: ClassVar[Slots] = (('Momentum', 0.0),)

    momentum: float = number()
    use_nesterov: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RMSProp(Optimizer):
    """The gradient divided by the root of its running mean square, through momentum.

    The slots are the mean square, to which `epsilon` is added, and the momenta. The mean square
    starts at 0, while `tf.train` starts it at 1.
    """

    field: ClassVar[str] = 'rms_prop'
    initial_slots: ClassVar[Slots] = (('RMSProp/ms', 0.0), ('RMSProp/mom', 0.0))

    rho: float = number()
    momentum: float = number()
    epsilon: float = number()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProximalYogi(Optimizer):
    """Yogi with a proximal step for L1 and L2 regularization.

    The slots are the second moment, which starts at `initial_accumulator`, then the first.
    """

    field: ClassVar[str] = 'proximal_yogi'
    initial_slots: ClassVar[Slots] = (
        ('ProximalYogi', 'initial_accumulator'), ('ProximalYogi_1', 0.0))

    l1: float = number(0.0, at_least=0)
    l2: float = number(0.0, at_least=0)
    beta1: float = number(0.9, at_least=0, below=1)
    beta2: float = number(0.999, at_least=0, below=1)
    epsilon: float = number(1e-3, above=0)
    initial_accumulator: float = number(1e-6, at_least=0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyEstimator(Optimizer):
    """Estimates how often a row is looked up; trains nothing.

    The slot is the step of the last look-up.

    Attributes:
      tau: learning rate of the estimate.
      max_delta: largest gap between two look-ups that counts.
      outlier_threshold: gaps beyond it, relative to the estimate, are outliers.
    """

    field: ClassVar[str] = 'frequency_estimator'
    initial_slots: ClassVar[Slots] = (('FrequencyEstimator', 0.0),)

    tau: float = number()
    max_delta: float = number()
    outlier_threshold: float = number()
    weight_exponent: float = number()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Adadelta(Optimizer):
    """Steps in the ratio of the running root mean squares of updates and gradients.

    The slots are the mean squares of the gradients, then of the updates.
    """

    field: ClassVar[str] = 'adadelta'
    initial_slots: ClassVar[Slots] = (('Adadelta', 0.0), ('Adadelta_1', 0.0))

    rho: float = number(0.95)
    epsilon: float = number(1e-8, above=0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CenteredRMSProp(Optimizer):
    """RMSProp with the running variance of the gradient instead of its mean square.

    The slots are the mean square, the momenta and the mean. `epsilon` is added to the variance,
    which rounding may take below 0.
    """

    field: ClassVar[str] = 'centered_rms_prop'
    initial_slots: ClassVar[Slots] = (
        ('CenteredRMSProp/ms', 0.0), ('CenteredRMSProp/mom', 0.0), ('CenteredRMSProp/mg', 0.0))

    rho: float = number()
    momentum: float = number()
    epsilon: float = number(above=0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lion(Optimizer):
    """Steps of equal size, in the direction of a momentum's sign. The slot is the momentum.

    Attributes:
      beta1: weight of the old momentum in the direction.
      beta2: decay of the momentum.
      use_non_lazy_lion: whether rows that were not looked up move too.
    """

    field: ClassVar[str] = 'lion'
    initial_slots: ClassVar[Slots] = (('Lion', 0.0),)

    beta1: float = number(0.9, at_least=0, below=1)
    beta2: float = number(0.99, at_least=0, below=1)
    use_non_lazy_lion: bool = False

    @property
    def updates_all_rows(self) -> bool:
        """The same as `use_non_lazy_lion`."""
        return self.use_non_lazy_lion


OPTIMIZERS: dict[str, type[Optimizer]] = {
    cls.field: cls for cls in (
        StochasticGradientDescent, Adagrad, AdagradMomentum, ProximalAdagrad, Adam, Ftrl,
        Momentum, RMSProp, ProximalYogi, FrequencyEstimator, Adadelta, CenteredRMSProp, Lion)
}
"""The class of each algorithm, by its field in the proto's `parameters` oneof."""

UNDOCUMENTED = frozenset({
    'bounded_adagrad', 'frequency_aware_adagrad', 'mdl_adagrad_light', 'online_yogi'})
"""Fields of that oneof whose formulas are not published: a rule for them would be a guess."""
