"""Constant and step-dependent learning rates."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from ..errors import Problem
from .optimizers import is_number


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConstantRate:
    """A learning rate that never changes; 0.0 freezes the table."""

    value: float

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields each problem of this rate of the object called `where`."""
        if not is_number(self.value, 0):
            yield Problem('E421', where, 'the learning rate must be a finite number >= 0',
                          repr(self.value))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DynamicRate:
    """A learning rate that is a function of the global step.

    Attributes:
      function: takes the global step (a scalar int64 tensor) and returns a scalar. Two rates
        are equal if they hold the same function object, as in the original.
    """

    function: Callable[[Any], Any]

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields each problem of this rate of the object called `where`."""
        if not callable(self.function) or not isinstance(self.function, Hashable):
            yield Problem('E422', where, 'learning_rate_fn must be callable, and hashable since '
                          'tables with the same function share its tag', repr(self.function))


Rate = ConstantRate | DynamicRate


def rate_tags(rates: Iterable[Rate]) -> dict[DynamicRate, int]:
    """Numbers the distinct dynamic rates 0, 1, ... in order of first appearance.

    The original numbered them by hash, so that tags differed between processes.

    >>> a, b = DynamicRate(function=abs), DynamicRate(function=round)
    >>> list(rate_tags([a, ConstantRate(value=.1), b, a]).values())
    [0, 1]
    """
    tags: dict[DynamicRate, int] = {}
    for rate in rates:
        if isinstance(rate, DynamicRate):
            tags.setdefault(rate, len(tags))
    return tags


def shared_code_warnings(rates: Iterable[Rate]) -> Iterator[Problem]:
    """Yields a warning for each piece of code that several rate functions share.

    A fresh `functools.partial` or lambda per table gives each rate a function and a tag of its
    own. The hardware then computes and sends each of them, and cannot fuse their tables.
    """
    of_code: dict[types.CodeType, int] = {}
    for rate in rate_tags(rates):
        function = rate.function
        while isinstance(function, functools.partial):
            function = function.func
        code = getattr(function, '__code__', None)
        if code is not None:
            of_code[code] = of_code.get(code, 0) + 1
    for code, count in of_code.items():
        if count > 1:
            yield Problem('W424', 'learning_rate_fn', 'tables with the same rate should share one '
                          'function object, since each gets a tag of its own',
                          f'{count} functions of the code of "{code.co_name}"',
                          'Make the function once, and give it to every table.')
