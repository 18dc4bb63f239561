"""The base class of table optimizers: a rate, options, slots, and checks of its numbers."""

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

    Args:
      default: of the field; without it the field has none.
      **bounds: any of `at_least`, `at_most`, `above`, `below`; `Optimizer.problems` checks them.
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
