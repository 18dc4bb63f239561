"""What is known of each table optimizer: one frozen class, one row of facts.

The update rules themselves are in `ops/rules.py`.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterator
from typing import ClassVar

from ..errors import Problem

SMALLEST_NORMAL = 2.0**-126
"""An accumulator below this may flush to zero, and 0 / sqrt(0) is not a number."""


def is_number(value: object, lowest: float = -math.inf) -> bool:
    """Whether `value` is a finite number (no bool) that is not below `lowest`."""
    return (isinstance(value, numbers.Real) and not isinstance(value, bool)
            and math.isfinite(value) and float(value) >= lowest)


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

    initial_accumulator: float = 0.1

    @property
    def slots(self) -> tuple[SlotSpec, ...]:
        """The sum of squared gradients."""
        return (SlotSpec(initial_value=self.initial_accumulator, suffix='Adagrad'),)

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields what is wrong with the hyper-parameters, for the table called `where`."""
        yield from Optimizer.problems(self, where)
        if not is_number(self.initial_accumulator, SMALLEST_NORMAL):
            yield Problem('E423', where, 'Adagrad initial_accumulator must be greater than zero '
                          '(at least 2**-126) and finite', repr(self.initial_accumulator))


OPTIMIZERS: dict[str, type[Optimizer]] = {
    cls.field: cls for cls in (StochasticGradientDescent, Adagrad)
}
"""By the name of the field of the proto's `parameters` oneof."""
