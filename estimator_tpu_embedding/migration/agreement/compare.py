"""Compares the records of two sides, and finds the first number in which they differ."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import quoted
from .inputs import LABELS
from .paired import Names
from .reading import Records
from .records import AFTER, BEFORE, GRADIENT, IDS, INPUT, KINDS, Key


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A number that differs.

    Attributes:
      step: of the check, counted from 1.
      kind: of `records.KINDS`.
      name: of the feature, value of the input, or table, on side A.
      slot: its suffix; `''` for all other numbers.
      row: an id for rows and slots; otherwise a sample, counted over all cores.
      column: within the row, or the sample.
      a, b: the values on the two sides; for ids, texts.
    """

    step: int
    kind: str
    name: str
    slot: str
    row: int
    column: int
    a: Any
    b: Any

    def __str__(self) -> str:
        what = 'table' if self.kind.startswith('rows') else 'feature'
        values = f'A has {_text(self.a)}, B has {_text(self.b)}'
        if self.kind == IDS:
            return f'step {self.step}: ids of feature "{self.name}", sample {self.row}: {values}'
        row = f'{"sample" if what == "feature" else "id"} {self.row}, column {self.column}'
        if self.kind == INPUT:
            return f'step {self.step}: input "{self.name}", {row}: {values}'
        of = f'slot {self.slot} of ' if self.slot else ''
        return f'step {self.step}: {self.kind} of {of}{what} "{self.name}", {row}: {values}'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The result of a check.

    Attributes:
      difference: the first that is larger than the tolerance; `None` if there is none. What comes
        after it was not compared.
      largest: the largest difference of two numbers before that; `None` if all were equal.
      steps: how many steps were compared, the last perhaps in part.
      numbers: how many numbers were compared, by kind.
      remarks: on things that were not compared or are declared otherwise, and those of the sides.
    """

    difference: Difference | None
    largest: Difference | None
    steps: int
    numbers: Mapping[str, int]
    remarks: Sequence[str]


def compare(a: Records, b: Records, *, tolerance: float, features: Mapping[str, str],
            remarks: Sequence[str] = ()) -> Agreement:
    """Compares what two sides recorded, in the order in which values depend on each other.

    Args:
      a, b: the records of both sides, of the same number of steps.
      tolerance: the largest difference that counts as equal.
      features: name on side A -> name on side B, where they differ.
      remarks: of the sides.

    Raises:
      ConfigError: E683 with every reason why they cannot be compared.
    """
    names = Names.of(a.facts, b.facts, features)
    inputs = Inputs(a, b)
    comparison = _Comparison(tolerance)
    position = {name: number for number, name in enumerate(
        [*inputs.names, *names.features, *names.tables])}
    for key in sorted([*a.keys, *inputs.keys()], key=lambda key: (
            key.step, KINDS.index(key.kind), position[key.name], key.part)):
        comparison.step = key.step
        if key.kind == INPUT:
            inputs.compare(key, comparison)
            continue
        of_b = key._replace(name=names.of_b(key))
        if key.kind == IDS:
            comparison.compare_ids(key, a.read(key), b.read(of_b))
        else:
            comparison.compare_numbers(key, a.read(key), b.read(of_b), names.slots(key))
        if comparison.difference is not None:
            break
    weak = list(_weak(a, tolerance)) if comparison.difference is None else []
    return Agreement(
        difference=comparison.difference, largest=comparison.largest, steps=comparison.step,
        numbers=dict(comparison.numbers),
        remarks=[*remarks, *inputs.remarks, *names.remarks, *weak])


def _weak(records: Records, tolerance: float) -> Iterator[str]:
    """Yields remarks on what is equal because hardly anything happens to it."""
    largest: dict[tuple[str, str], float] = {}
    for key in records.keys:
        if key.kind == IDS:
            size = float(len(records.read(key)[1]))
        elif key.kind == GRADIENT:
            size = _largest(records.read(key)[0])
        elif key.kind == AFTER:
            before = records.read(key._replace(kind=BEFORE))
            size = _largest(records.read(key)[1].astype(np.float64) - before[1])
        else:
            continue
        largest[key.kind, key.name] = max(size, largest.get((key.kind, key.name), 0.))
    for kind, least, text in (
            (IDS, 0., 'features without any id in these steps, so that little is shown of them'),
            (GRADIENT, tolerance, 'features whose gradients are never larger than the tolerance'),
            (AFTER, tolerance, 'tables whose rows never move by more than the tolerance')):
        names = [name for (own, name), size in largest.items() if own == kind and size <= least
                 and (kind != GRADIENT or largest[IDS, name])]
        if names:
            yield f'{text}: {quoted(names)}'


def _largest(values: np.ndarray) -> float:
    """Returns the largest absolute value; infinity instead of NaN, and 0 of nothing."""
    return float(np.nan_to_num(np.abs(values), nan=np.inf, posinf=np.inf).max(initial=0.))


class Inputs:
    """The input beside ids that both sides have under one name.

    Attributes:
      names: of these values.
      remarks: on the others.
    """

    def __init__(self, a: Records, b: Records):
        """Pairs the input of two sides; the ids of features are compared as the engine gets them.
        """
        assert a.facts is not None and b.facts is not None
        seen = [set(one.inputs) - one.facts.features.keys() for one in (a, b) if one.facts]
        self.names = sorted(seen[0] & seen[1])
        self.remarks = [
            f'input seen on side {side} only, and not compared: {quoted(sorted(names))}'
            for side, names in (('A', seen[0] - seen[1]), ('B', seen[1] - seen[0])) if names]
        if LABELS not in seen[0] | seen[1]:
            self.remarks.append('labels were not seen, and not compared')
        self._sides = a, b
        self._uncompared: set[str] = set()

    def keys(self) -> Iterator[Key]:
        """Yields a key for each value and step."""
        for step in range(1, self._sides[0].steps + 1):
            for name in self.names:
                yield Key(step, INPUT, name)

    def compare(self, key: Key, comparison: _Comparison) -> None:
        """Compares a value of a step."""
        mine, yours = [side.read_input(key.name, key.step) for side in self._sides]
        if mine is not None and yours is not None and mine.shape == yours.shape:
            comparison.compare_numbers(key, [mine], [yours], [('', 0, 0)])
        elif key.name not in self._uncompared:
            self._uncompared.add(key.name)
            self.remarks.append(f'input "{key.name}" has other shapes on the sides, and was not '
                                f'compared{"" if key.step == 1 else f" in step {key.step}"}')


class _Comparison:
    """Compares record by record.

    Attributes:
      difference, largest, step, numbers: as in `Agreement`.
    """

    def __init__(self, tolerance: float):
        self.difference: Difference | None = None
        self.largest: Difference | None = None
        self.step = 0
        self.numbers: collections.Counter[str] = collections.Counter()
        self._tolerance = tolerance
        self._most = 0.

    def compare_ids(self, key: Key, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> None:
        """Compares samples, ids and weights, which are sorted."""
        common = min(len(a[0]), len(b[0]))
        other = (a[0][:common] != b[0][:common]) | (a[1][:common] != b[1][:common])
        other |= ~_near(a[2][:common], b[2][:common], self._tolerance)
        self.numbers[IDS] += common
        place = int(other.argmax()) if other.any() else common
        if place == max(len(a[0]), len(b[0])):
            return
        samples = [int(side[0][place]) for side in (a, b) if place < len(side[0])]
        self.difference = Difference(
            step=key.step, kind=IDS, name=key.name, slot='', row=min(samples), column=0,
            a=_id_at(a, place, min(samples)), b=_id_at(b, place, min(samples)))

    def compare_numbers(self, key: Key, a: Sequence[np.ndarray], b: Sequence[np.ndarray],
                        slots: Sequence[tuple[str, int, int]]) -> None:
        """Compares float32 arrays that are pairs by `slots`; the first axis has the rows."""
        for slot, place_a, place_b in slots:
            mine, yours = [one.reshape(len(one), -1) for one in (a[place_a], b[place_b])]
            self.numbers[key.kind] += mine.size
            far = ~_near(mine, yours, self._tolerance)
            if far.any():
                row, column = np.unravel_index(int(far.argmax()), far.shape)
                self.difference = _difference(key, slot, a, mine, yours, int(row), int(column))
                return
            apart = np.nan_to_num(np.abs(mine.astype(np.float64) - yours), nan=0.)
            if apart.size and apart.max() > self._most:
                self._most = float(apart.max())
                row, column = np.unravel_index(int(apart.argmax()), apart.shape)
                self.largest = _difference(key, slot, a, mine, yours, int(row), int(column))


def _difference(key: Key, slot: str, arrays: Sequence[np.ndarray], a: np.ndarray, b: np.ndarray,
                row: int, column: int) -> Difference:
    number = int(arrays[0][row]) if key.kind.startswith('rows') else row
    return Difference(step=key.step, kind=key.kind, name=key.name, slot=slot, row=number,
                      column=column, a=float(a[row, column]), b=float(b[row, column]))


def _near(a: np.ndarray, b: np.ndarray, tolerance: float) -> np.ndarray:
    """Returns where two arrays are equal up to `tolerance`; so are two infinities or NaNs."""
    with np.errstate(invalid='ignore'):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return same | (np.abs(a.astype(np.float64) - b) <= tolerance)


def _id_at(arrays: Sequence[np.ndarray], place: int, sample: int) -> str:
    samples, ids, weights = arrays
    if place >= len(ids) or samples[place] != sample:
        return 'no further id'
    return f'id {ids[place]} of weight {weights[place]:g}'


def _text(value: Any) -> str:
    return f'{value:.9g}' if isinstance(value, float) else str(value)
