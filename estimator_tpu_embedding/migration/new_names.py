"""Finds the new name of each variable, by the map or by the job, and checks all of them: E654.

By these names the tensors of two checkpoints are paired that mean the same.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..checkpoint.file_names import label
from ..checkpoint.object_graph import Place, joined
from ..core.names import name_problems
from ..core.partition import Partition
from ..errors import ConfigError, Problem, quoted, shown
from .checkpoint_contents import TF1, TF2, VARIABLES, Contents, Target, Variable
from .map_file import Map, Rule

NOTHING = 'nothing names it'
"""Why a variable stays behind that no line of the map is about."""
_ATTRIBUTES = '/.ATTRIBUTES/'


class Named(NamedTuple):
    """The new names of a variable and of its slots.

    Attributes:
      new: its name, or the name of the table; the line that drops it, or `None` if nothing names it
        and the user has to say what becomes of it.
      alone: the slots that have lines of their own: the new name, or the line that drops it.
    """

    variable: Variable
    new: str | Rule | None
    alone: Mapping[str, str | Rule]

    @property
    def tensors(self) -> tuple[str, ...]:
        """The variable and its slots."""
        return self.variable.tensor, *self.variable.slots


class Names(NamedTuple):
    """The new names of variables, and of the tensors that are none and that the map names."""

    variables: Sequence[Named]
    others: Mapping[str, str | Rule]  # The new name, or the line that drops it.

    @property
    def tables(self) -> list[tuple[Variable, str]]:
        """Pairs of a table and its new name."""
        return [(named.variable, named.new) for named in self.variables
                if named.variable.is_table and isinstance(named.new, str)]


def names(contents: Contents, map: Map, stays_in_api: bool) -> Names:
    """Finds the new names; within one API they stay as they are, unless the map says otherwise."""
    if stays_in_api:
        defaults = {one.tensor: one.name for one in contents.variables}
    elif contents.is_tf2:
        defaults = {one.tensor: one.name for one in contents.tables}
    else:
        defaults = dict(contents.names_in_config)
    return Names(
        [_named(contents, map, one, defaults.get(one.tensor) if one.is_table or stays_in_api
                else None) for one in contents.variables],
        {tensor: _new(rule, text) for tensor in contents.others
         if (rule := map.rule_for(text := contents.text_of(tensor))) is not None})


def _named(contents: Contents, map: Map, one: Variable, default: str | None) -> Named:
    rule = map.rule_for(one.name)
    texts = {slot: contents.text_of(slot) for slot in one.slots}
    alone = {slot: _new(own, text) for slot, text in texts.items()
             if (own := map.rule_for_slot(text, one.name)) is not None}
    return Named(one, default if rule is None else _new(rule, one.name), alone)


def _new(rule: Rule, name: str) -> str | Rule:
    """Returns the new name by a line, or the line if it drops the name."""
    new = rule.renamed(name)
    return rule if new is None else new


def why(rule: Rule | None) -> str:
    """Returns the reason that something stays behind: a line, or that there is none."""
    return NOTHING if rule is None else f'dropped by {rule.where}'


def known(contents: Contents) -> set[str]:
    """Returns all names that a line of a map can be about."""
    return {one.name for one in contents.variables} | {
        contents.text_of(tensor) for tensor in (
            *contents.others, *(slot for one in contents.variables for slot in one.slots))}


def problems_of_map(contents: Contents, target: Target, map: Map) -> Iterator[Problem]:
    """Yields a problem for each line that is about nothing here: it may be another job's map."""
    where = label(contents.bundle.prefix)
    for rule in map.idle(known(contents)):
        yield Problem(
            'E654', rule.where, f'a line must be about a variable of {where}',
            f'"{shown(rule.old, 200)}"', 'Is it the map of another job, or of the way back?')
    tables = {one.name for one in contents.tables}
    for one in contents.variables:
        found = map.rule_for(one.name)
        if found is not None and found.is_table and one.name not in tables:
            yield Problem(
                'E654', found.where, 'a line with "table" must be about an embedding table of '
                f'{where}', f'"{shown(one.name, 200)}"', f'Its tables: {some(sorted(tables))}.')
    if map.powers and target.kind != TF1:
        yield Problem('E654', where, 'only --to tf1 has powers of Adam',
                      f'"power" for {some(name for name, _ in map.powers)}', 'Leave it out.')


def problems_of_names(contents: Contents, target: Target, names: Names, map: Map
                      ) -> Iterator[Problem]:
    """Yields a problem for each new name that no variable or table can have."""
    where = label(contents.bundle.prefix)
    variables: list[object] = list(names.others.values())
    for named in names.variables:
        one, new = named.variable, named.new
        variables += named.alone.values()
        if not isinstance(new, str):
            continue
        if one.may_be_table:
            # As another variable its rows would stay in `mod`, and a new manifest vouch for them.
            rule = map.rule_for(one.name)
            yield Problem(
                'E654', where if rule is None else rule.where, f'"{shown(one.name, 200)}" must be '
                'called a table, or none: it is in slices, and its rows may be in the order of mod',
                'no "table" before its name', f'If it is one: table {shown(one.name, 200)} -> '
                f'{shown(new, 200)}, and --assume. If none is: --assume div.')
        if one.is_table:
            yield from _of_name('table', new)
            tensor = contents.tensor(one.tensor)
            if len(tensor.shape) != 2 or not tensor.is_float or not tensor.rows:
                yield Problem('E654', where, f'table "{shown(one.name, 200)}" must be a matrix of '
                              'floats', f'{tensor.kind} {list(tensor.shape)}')
        elif map.rule_for(one.name) is not None:
            variables.append(new)
    for name in variables:
        if isinstance(name, str):
            yield from _of_name('variable', name)
            if target.kind != TF1 and _ATTRIBUTES in name:
                yield Problem('E654', f'variable "{shown(name, 200)}"', 'its name must be its '
                              f'path, without {_ATTRIBUTES}VARIABLE_VALUE')


def _of_name(kind: str, name: str) -> Iterator[Problem]:
    return (dataclasses.replace(problem, code='E654') for problem in name_problems(kind, name))


def problems_of_targets(contents: Contents, target: Target,
                        sources: Sequence[tuple[str, str, Place | None]]) -> Iterator[Problem]:
    """Yields a problem for each name with two sources, and each variable inside of another one.

    `sources` has for each new tensor its name, the name of its source, and its place.
    """
    where = label(contents.bundle.prefix)
    by_name = collections.defaultdict(list)
    for name, source, _ in sources:
        by_name[name].append(source)
    for name, those in sorted(by_name.items()):
        if len(those) > 1:
            yield Problem('E654', where, f'"{shown(name, 200)}" must have one source',
                          some(sorted(those)), 'Rename one in the map.')
    # Nor is there any inside of what leads to the tables.
    paths = {place.path for _, _, place in sources if place is not None} | {
        joined(target.tables_path, VARIABLES)}
    for path in sorted(paths):
        parts = path.split('/')
        above = ('/'.join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
        parent = next((each for each in above if each in paths), None)
        if parent is not None:
            yield Problem('E654', where, f'a variable at "{shown(parent, 200)}" can have none '
                          'inside', f'"{shown(path, 200)}"', 'Rename one in the map.')


def problems_of_nameless(contents: Contents, names: Names) -> Iterator[Problem]:
    """Yields a problem if variables have no new name."""
    those = [named.variable for named in names.variables if named.new is None]
    if those:
        texts = sorted(f'{"table " if one.is_table or one.may_be_table else ""}{one.name}'
                       for one in those)
        slots = sum(len(one.slots) for one in those)
        yield Problem(
            'E654', label(contents.bundle.prefix), 'each variable must have a new name',
            f'{len(texts):,} without, which have {slots:,} slots: {some(texts)}',
            'Name them in the map, whose lines --dry-run prints, or leave all of them out: '
            '--drop-rest.')


def some(names: Iterable[str], most: int = 20) -> str:
    """Returns the first of some names, for a message."""
    given = list(names)
    more = f', and {len(given) - most:,} more' if len(given) > most else ''
    return quoted(shown(name, 200) for name in given[:most]) + more


class Pairs(NamedTuple):
    """What to compare."""

    tensors: list[tuple[str, str]]  # One of each checkpoint; `''` if one of them has none.
    ignored: list[str]  # They mean something in one of the APIs only.
    dropped: list[str]  # By the map.


def pairs(a: Contents, b: Contents, map: Map) -> Pairs:
    """Pairs the tensors of two checkpoints by the names that a migration gives; `map` is of `a`.

    Raises:
      ConfigError: E654 if the map is about another checkpoint.
    """
    problems = list(problems_of_map(a, Target(kind=TF2 if b.is_tf2 else TF1), map))
    if problems:
        raise ConfigError(*problems)
    given = names(a, map, stays_in_api=a.is_tf2 == b.is_tf2)
    texts = {b.text_of(tensor): tensor for tensor in b.bundle.tensors}
    by_name = _by_name(b)
    found: list[tuple[str, str]] = []
    dropped = [tensor for tensor, new in given.others.items() if isinstance(new, Rule)]
    for named in given.variables:
        dropped += [slot for slot, new in named.alone.items() if isinstance(new, Rule)]
        if isinstance(named.new, Rule):
            dropped += [tensor for tensor in named.tensors if tensor not in named.alone]
            continue
        found += _of_variable(named, by_name.get(named.new or ''), texts)
    found += [(tensor, texts.get(new, '')) for tensor, new in given.others.items()
              if isinstance(new, str)]
    if a.step is not None and a.step not in given.others:
        found.append((a.step, b.step or ''))
    found += [(tensor, texts.get(tensor, '')) for tensor in a.aside if tensor not in given.others]
    known = {tensor for _, tensor in found}
    found += [('', tensor) for tensor in b.bundle.tensors
              if tensor not in known and tensor not in b.own]
    ignored = [*(tensor for tensor in a.own if tensor not in given.others),
               *(tensor for tensor in b.own if tensor not in known)]
    return Pairs(found, ignored, dropped)


def orders(contents: Contents) -> Mapping[str, Partition]:
    """Returns how the rows of tables, slots and moving averages are ordered, by tensor."""
    return {tensor: one.order or Partition.by_id(contents.tensor(one.tensor).rows)
            for one in contents.variables if one.is_table or one.order is not None
            for tensor in (one.tensor, *one.slots)}


def _by_name(contents: Contents) -> dict[str, Variable]:
    """Returns the variables by their names, and tables of TF1 by those of the config too."""
    found = {one.name: one for one in contents.variables}
    for one in contents.tables:
        found.setdefault(contents.names_in_config.get(one.name, one.name), one)
    return found


def _of_variable(named: Named, other: Variable | None, texts: Mapping[str, str]
                 ) -> Iterator[tuple[str, str]]:
    mine, yours = named.variable, other or Variable(name='', tensor='')
    yield mine.tensor, yours.tensor
    # Keras has one Adam, TF1 has two.
    is_same = mine.family is yours.family or mine.family and yours.family and (
        mine.family.keras and mine.family.keras == yours.family.keras)
    for slot, its in zip(mine.slots, yours.slots if is_same else [''] * len(mine.slots)):
        new = named.alone.get(slot)
        if not isinstance(new, Rule):
            yield slot, its if new is None else texts.get(new, '')
