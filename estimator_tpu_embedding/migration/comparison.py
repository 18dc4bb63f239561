"""Compares what two sides have saved after the same number of steps, tensor by tensor."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..checkpoint import stored_rows
from ..checkpoint.stored_rows import Ordered
from ..checkpoint.tensors import NO_ROW, Tensor
from ..errors import ConfigError, Problem, quoted, shown
from .contents import Contents
from .map_file import Map
from .naming import Pairs, known, orders, pairs

TABLE, SLOT, VARIABLE = KINDS = ('table', 'slot', 'variable')
"""What is compared, in the order in which differences are named."""
_MOST_NAMED = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A tensor that differs.

    Attributes:
      step: after so many steps; 0 is before the first.
      kind: of `KINDS`.
      name: of the tensor on side A.
      rows: how many of its rows differ.
      most: the largest difference; infinite if a number is not finite.
      row: the first row that differs; an id of a table or of its slots.
      column: of the number in it that differs most.
      a, b: that number on the two sides.
    """

    step: int
    kind: str
    name: str
    rows: int
    most: float
    row: int
    column: int
    a: float
    b: float

    def __str__(self) -> str:
        when = f'after step {self.step}' if self.step else 'before step 1'
        return (f'{when}: {self.kind} "{self.name}", row {self.row}, column {self.column}: A has '
                f'{self.a:.9g}, B has {self.b:.9g}; {self.rows:,} rows differ, by up to '
                f'{self.most:.3g}')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The result of a check.

    Attributes:
      differences: the tensors with a difference larger than the tolerance, after the first step
        after which there are any; none if the jobs are the same.
      largest: the tensor with the largest difference among the others; `None` if these are equal.
      steps: after how many steps they were compared.
      numbers: how many numbers were compared, by kind.
      remarks: on what was not compared, on rows that hardly move, and those of the sides.
    """

    differences: Sequence[Difference]
    largest: Difference | None
    steps: int
    numbers: Mapping[str, int]
    remarks: Sequence[str]


def compare(a: Contents, b: Contents, step: int, *, map: Map, tolerance: float) -> Agreement:
    """Compares two checkpoints, rows of tables by their ids.

    Args:
      a, b: what the sides have saved.
      step: after so many steps.
      map: new names for the variables of `a`.
      tolerance: the largest difference of two numbers that counts as equal.

    Raises:
      ConfigError: E683 with every reason why they cannot be compared.
    """
    idle = map.idle(known(a))  # A job need not save everything that its first checkpoint had.
    found = pairs(a, b, Map([rule for rule in map.rules if rule not in idle], map.powers))
    if problems := list(_unpaired(a, b, found)):
        raise ConfigError(*problems)
    orders_of = orders(a), orders(b)
    differences, numbers = [], collections.Counter[str]()
    largest: Difference | None = None
    for kind, mine, yours in sorted(
            ((_kind(a, mine), mine, yours) for mine, yours in _both(a, b, found)),
            key=lambda one: (KINDS.index(one[0]), one[1])):
        one, other = [Ordered(side.bundle, name, order.get(name)) for side, name, order in zip(
            (a, b), (mine, yours), orders_of)]
        numbers[kind] += math.prod(a.tensor(mine).shape)
        apart = stored_rows.difference(one, other, 1, tolerance)
        if apart.rows:
            differences.append(_difference(step, kind, one, other, apart))
        elif apart.most > (largest.most if largest is not None else 0):
            largest = _difference(step, kind, one, other, stored_rows.difference(
                one, other, 1, math.nextafter(apart.most, 0)))
    return Agreement(differences=differences, largest=largest, steps=step, numbers=dict(numbers),
                     remarks=list(_not_compared(a, b, found)))


def moved(before: Contents, after: Contents, tolerance: float = 0.) -> dict[str, int]:
    """Returns for each table how many of its rows have moved by more than a tolerance."""
    of_before, of_after = orders(before), orders(after)
    return {one.tensor: stored_rows.difference(
        Ordered(before.bundle, one.tensor, of_before.get(one.tensor)),
        Ordered(after.bundle, one.tensor, of_after.get(one.tensor)), 0, tolerance).rows
        for one in after.tables if one.tensor in before.bundle.tensors}


def _kind(a: Contents, tensor: str) -> str:
    for one in a.variables:
        if tensor == one.tensor:
            return TABLE if one.is_table else VARIABLE
        if tensor in one.slots:
            return SLOT
    return VARIABLE


def _both(a: Contents, b: Contents, found: Pairs) -> Iterator[tuple[str, str]]:
    """Yields the pairs of tensors of numbers that both have; not the step, which sides may lack."""
    for mine, yours in found.tensors:
        if mine and yours and mine != a.step and _has_rows(a.tensor(mine), b.tensor(yours)):
            yield mine, yours


def _has_rows(*tensors: Tensor) -> bool:
    return all(tensor.code and all(piece.first_row != NO_ROW for piece in tensor.pieces)
               for tensor in tensors)


def _unpaired(a: Contents, b: Contents, found: Pairs) -> Iterator[Problem]:
    """Yields why two checkpoints cannot be compared: a table without a partner, another shape."""
    tables = [{one.tensor: one.name for one in side.tables} for side in (a, b)]
    for mine, yours in found.tensors:
        for name, other, own, side, others in (
                (mine, yours, tables[0], 'A', tables[1]), (yours, mine, tables[1], 'B', tables[0])):
            if name in own and not other:
                yield Problem('E683', f'table "{shown(own[name], 200)}" of side {side}',
                              'the other side must have it too',
                              quoted(shown(one, 200) for one in list(others.values())[:10]),
                              'Give it the other name by --map, or drop it there.')
        if mine and yours:
            of_a, of_b = [f'{one.kind} {list(one.shape)}' for one in (
                a.tensor(mine), b.tensor(yours))]
            if of_a != of_b and mine != a.step:
                yield Problem('E683', f'tensor "{shown(mine, 200)}"', 'it must have the same type '
                              'and shape on both sides', f'{of_a} on A, {of_b} on B')


def _not_compared(a: Contents, b: Contents, found: Pairs) -> Iterator[str]:
    """Yields remarks on the tensors that were not compared, but for what one API alone needs."""
    aside = {a.step, b.step, *a.aside, *b.aside}
    pairs_of = [pair for pair in sorted(found.tensors) if aside.isdisjoint(pair)]
    for why, names in (
            ('on side A only', [mine for mine, yours in pairs_of if not yours]),
            ('on side B only', [yours for mine, yours in pairs_of if not mine]),
            ('dropped by the map', found.dropped),
            ('no numbers, or slices of columns', [
                mine for mine, yours in pairs_of if mine and yours and not _has_rows(
                    a.tensor(mine), b.tensor(yours))])):
        if names:
            more = f' and {len(names) - _MOST_NAMED:,} more' if len(names) > _MOST_NAMED else ''
            yield f'not compared, {why}: {quoted(names[:_MOST_NAMED])}{more}'


def _difference(step: int, kind: str, a: Ordered, b: Ordered, apart: stored_rows.Difference
                ) -> Difference:
    row = apart.ids[0][0]
    mine, yours = [np.ravel(one.read(np.array([row]))).astype(np.float64) for one in (a, b)]
    with np.errstate(invalid='ignore'):
        column = int(np.argmax(np.where(mine == yours, 0, np.nan_to_num(
            np.abs(mine - yours), nan=np.inf))))
    return Difference(step=step, kind=kind, name=a.name, rows=apart.rows, most=apart.most, row=row,
                      column=column, a=float(mine[column]), b=float(yours[column]))
