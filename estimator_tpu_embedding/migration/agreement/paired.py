"""Pairs the features, tables and slots of two sides of a check, or says why they cannot be paired.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import ConfigError, Problem, quoted
from .records import Facts, Key


@dataclasses.dataclass(frozen=True, slots=True)
class Names:
    """Pairs the features, tables and slots of both sides.

    Attributes:
      features, tables: name on side A -> name on side B.
      pairs: by table on side A (suffix, place on A, place on B) of the rows, whose suffix is `''`,
        and of the slots that both have.
      remarks: on slots without a partner, and on options that differ.
    """

    features: Mapping[str, str]
    tables: Mapping[str, str]
    pairs: Mapping[str, Sequence[tuple[str, int, int]]]
    remarks: Sequence[str]

    @classmethod
    def of(cls, a: Facts, b: Facts, renamed: Mapping[str, str]) -> Names:
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
        for yours, count in collections.Counter(tables.values()).items():
            if count > 1:
                problems.append(_problem(f'table "{yours}" on side B', 'one table of side A must '
                                         'stand for it', f'{count}'))
        for mine, yours in tables.items():
            problems += _other_table(mine, a.tables[mine], b.tables[yours])
        if problems:
            raise ConfigError(*problems)
        pairs: dict[str, Sequence[tuple[str, int, int]]] = {}
        remarks: list[str] = []
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
