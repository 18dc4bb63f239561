"""Compares the records of two sides, and finds the first number in which they differ."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ConfigError, Problem, quoted
from .agreement_records import IDS, KINDS, Facts, Key, Records


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A number that differs.

    Attributes:
      step: of the check, counted from 1.
      kind: of `agreement_records.KINDS`.
      name: of the feature or table on side A.
      slot: its suffix; `''` for rows, and for what is no table.
      row: an id for rows and slots, else a sample of all cores.
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
        what = 'feature' if self.kind in ('ids', 'activation', 'gradient') else 'table'
        values = f'A has {_text(self.a)}, B has {_text(self.b)}'
        if self.kind == IDS:
            return f'step {self.step}: ids of feature "{self.name}", sample {self.row}: {values}'
        of = f'slot {self.slot} of ' if self.slot else ''
        row = f'{"sample" if what == "feature" else "id"} {self.row}, column {self.column}'
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
      remarks: what was not compared, what is declared otherwise, and what the sides said.
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
    names = _Names.of(a.facts, b.facts, features)
    comparison = _Comparison(tolerance)
    position = {name: number for number, name in enumerate([*names.features, *names.tables])}
    for key in sorted(a.keys, key=lambda key: (
            key.step, KINDS.index(key.kind), position[key.name], key.part)):
        comparison.step = key.step
        of_b = key._replace(name=names.of_b(key))
        if key.kind == IDS:
            comparison.compare_ids(key, a.read(key), b.read(of_b))
        else:
            comparison.compare_numbers(key, a.read(key), b.read(of_b), names.slots(key))
        if comparison.difference is not None:
            break
    return Agreement(
        difference=comparison.difference, largest=comparison.largest, steps=comparison.step,
        numbers=dict(comparison.numbers), remarks=[*remarks, *names.remarks])


@dataclasses.dataclass(frozen=True, slots=True)
class _Names:
    """Pairs the features, tables and slots of both sides.

    Attributes:
      features, tables: name on side A -> name on side B.
      pairs: by table on side A (suffix, place on A, place on B) of the rows, whose suffix is `''`,
        and of the slots that both have.
      remarks: on what has no partner, and on what is declared otherwise.
    """

    features: Mapping[str, str]
    tables: Mapping[str, str]
    pairs: Mapping[str, Sequence[tuple[str, int, int]]]
    remarks: Sequence[str]

    @classmethod
    def of(cls, a: Facts, b: Facts, renamed: Mapping[str, str]) -> _Names:
        """Pairs what two sides declare.

        Raises:
          ConfigError: E683 with every reason why they cannot be paired.
        """
        features = {name: renamed.get(name, name) for name in a.features}
        problems = list(_unpaired(a, b, features, renamed))
        tables: dict[str, str] = {}
        for name, other in features.items() if not problems else ():
            problems += _other_shape(name, a.features[name], b.features[other])
            mine, yours = a.features[name]['table'], b.features[other]['table']
            if tables.setdefault(mine, yours) != yours:
                problems.append(_problem(
                    f'feature "{name}"', f'it must share its table with the same features, as '
                    f'those of table "{mine}" on side A do', f'table "{yours}" on side B'))
        for mine, yours in tables.items():
            problems += _other_table(mine, a.tables[mine], b.tables[yours])
        if problems:
            raise ConfigError(*problems)
        pairs, remarks = {}, []
        for mine, yours in tables.items():
            ours, theirs = a.tables[mine]['slots'], b.tables[yours]['slots']
            pairs[mine] = [('', 0, 0), *[(slot, 1 + ours.index(slot), 1 + theirs.index(slot))
                                         for slot in ours if slot in theirs]]
            remarks += _remarks(mine, a.tables[mine], b.tables[yours])
        return cls(features, tables, pairs, remarks)

    def of_b(self, key: Key) -> str:
        """Returns the name on side B of what a key of side A names."""
        return self.tables[key.name] if key.kind.startswith('rows') else self.features[key.name]

    def slots(self, key: Key) -> Sequence[tuple[str, int, int]]:
        """Returns the suffix, and the places in the records of A and B, of each array to compare.
        """
        if not key.kind.startswith('rows'):
            return [('', 0, 0)]
        return [(slot, 1 + mine, 1 + yours) for slot, mine, yours in self.pairs[key.name]]


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


def _unpaired(a: Facts, b: Facts, features: Mapping[str, str], renamed: Mapping[str, str]
              ) -> Iterator[Problem]:
    for name in renamed.keys() - a.features.keys():
        yield _problem(f'feature "{name}"', f'side A must have it; it has {quoted(a.features)}')
    for other in set(features.values()) - b.features.keys():
        yield _problem(f'feature "{other}"', f'side B must have it; it has {quoted(b.features)}',
                       remedy='If it has another name there, say so by --feature A=B.')
    for other in b.features.keys() - set(features.values()):
        yield _problem(f'feature "{other}"', f'side A must have it; it has {quoted(a.features)}',
                       remedy='If it has another name there, say so by --feature A=B.')
    for other, count in collections.Counter(features.values()).items():
        if count > 1:
            yield _problem(f'feature "{other}"', 'one feature of side A must stand for it',
                           f'{count}')


def _other_shape(name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Problem]:
    if a['shape'] != b['shape']:
        yield _problem(f'feature "{name}"', 'its activations on all cores must have the same '
                       'shape on both sides', f'{a["shape"]} on A, {b["shape"]} on B',
                       'Both sides need one global batch size.')


def _other_table(name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Problem]:
    if (a['rows'], a['width']) != (b['rows'], b['width']):
        yield _problem(f'table "{name}"', 'it must have the same shape on both sides',
                       f'[{a["rows"]}, {a["width"]}] on A, [{b["rows"]}, {b["width"]}] on B')


def _remarks(name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    for side, mine, yours in (('A', a, b), ('B', b, a)):
        for slot in mine['slots']:
            if slot not in yours['slots']:
                yield f'slot {slot} of table "{name}" is on side {side} only: not compared'
    flat = [{'combiner': one['combiner'], **one['optimizer']} for one in (a, b)]
    for option in dict.fromkeys([*flat[0], *flat[1]]):
        mine, yours = [one.get(option, 'nothing') for one in flat]
        if mine != yours:
            yield f'table "{name}" is declared otherwise: {option} is {mine} on A, {yours} on B'


def _problem(where: str, rule: str, got: str = '', remedy: str = '') -> Problem:
    return Problem('E683', where, rule, got, remedy)


def _text(value: Any) -> str:
    return f'{value:.9g}' if isinstance(value, float) else str(value)
