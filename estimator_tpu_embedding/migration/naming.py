"""Finds the new name of each variable, by the map or by the job, and checks all of them: E654."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..checkpoint.file_names import label
from ..checkpoint.object_graph import Place, joined
from ..core.names import name_problems
from ..errors import Problem, quoted, shown
from . import from_tf1
from .contents import Contents, Variable
from .map_file import Map, Rule
from .target import TF1, VARIABLES, Target

NOTHING = 'nothing names it'
"""Why a variable stays behind that no line of the map is about."""
_MOST_NAMED = 20
_ATTRIBUTES = '/.ATTRIBUTES/'


class Named(NamedTuple):
    """The names of a variable and of its slots.

    Attributes:
      variable: the variable.
      new: its name, or the name of the table; `None` if it stays behind.
      why: the reason then, `NOTHING` if it has no name.
      alone: the slots that have lines of their own: the new name, or the line that drops it.
    """

    variable: Variable
    new: str | None
    why: str
    alone: Mapping[str, str | Rule]

    @property
    def tensors(self) -> tuple[str, ...]:
        """The variable and its slots."""
        return self.variable.tensor, *self.variable.slots

    @property
    def is_nameless(self) -> bool:
        """Whether the user has to say what becomes of it."""
        return self.why == NOTHING


class Names(NamedTuple):
    """The new names of everything.

    Attributes:
      variables: tables and others.
      others: tensors that are no variables with slots, which the map names: their new names, or
        the lines that drop them.
    """

    variables: Sequence[Named]
    others: Mapping[str, str | Rule]

    @property
    def tables(self) -> list[tuple[Variable, str]]:
        """Pairs of a table and its new name."""
        return [(named.variable, named.new) for named in self.variables
                if named.variable.is_table and named.new is not None]


def names(contents: Contents, map: Map, stays_in_api: bool) -> Names:
    """Finds the new names; within one API they stay as they are, unless the map says otherwise."""
    if stays_in_api:
        defaults = {one.tensor: one.name for one in contents.variables}
    elif contents.is_tf2:
        defaults = {one.tensor: one.name for one in contents.tables}
    else:
        defaults = from_tf1.table_names(contents.bundle, from_tf1.parsed(contents.config))
    return Names(
        [_named(contents, map, one, defaults.get(one.tensor) if one.is_table or stays_in_api
                else None) for one in contents.variables],
        {tensor: _new(rule, text) for tensor in contents.others
         if (rule := map.rule_for(text := contents.text_of(tensor))) is not None})


def _named(contents: Contents, map: Map, one: Variable, default: str | None) -> Named:
    rule = map.rule_for(one.name)
    new = default if rule is None else _new(rule, one.name)
    texts = {slot: contents.text_of(slot) for slot in one.slots}
    alone = {slot: _new(own, text) for slot, text in texts.items()
             if (own := map.rule_for_slot(text, one.name)) is not None}
    if isinstance(new, str):
        return Named(one, new, '', alone)
    return Named(one, None, NOTHING if new is None else why(new), alone)


def _new(rule: Rule, name: str) -> str | Rule:
    """Returns the new name by a line, or the line if it drops the name."""
    new = rule.renamed(name)
    return rule if new is None else new


def why(rule: Rule) -> str:
    """Returns the reason that a line drops something."""
    return f'dropped by {rule.where}'


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
                f'{where}', f'"{shown(one.name, 200)}"', f'Its tables: {_some(sorted(tables))}.')
    if map.powers and target.kind != TF1:
        yield Problem('E654', where, 'only --to tf1 has powers of Adam',
                      f'"power" for {_some(name for name, _ in map.powers)}', 'Leave it out.')


def problems_of_names(contents: Contents, target: Target, names: Names, map: Map
                      ) -> Iterator[Problem]:
    """Yields a problem for each new name that no variable or table can have."""
    where = label(contents.bundle.prefix)
    variables: list[object] = list(names.others.values())
    for named in names.variables:
        one = named.variable
        variables += named.alone.values()
        if named.new is not None and one.is_table:
            yield from _of_name('table', named.new)
            tensor = contents.tensor(one.tensor)
            if len(tensor.shape) != 2 or not tensor.is_float or not tensor.rows:
                yield Problem('E654', where, f'table "{shown(one.name, 200)}" must be a matrix of '
                              'floats', f'{tensor.kind} {list(tensor.shape)}')
        elif named.new is not None and map.rule_for(one.name) is not None:
            variables.append(named.new)
        elif named.new is not None and one.may_be_table and one.order is None:
            # The new manifest would vouch for an order that nobody knows.
            yield Problem('E654', where, f'"{shown(one.name, 200)}" must be called a table, or '
                          'none: it is in slices, and its rows may be in the order of mod',
                          'no line of the map', f'If it is one: table {shown(one.name, 200)} -> '
                          f'{shown(named.new, 200)}, and --assume. If none is: --assume div.')
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
                          _some(sorted(those)), 'Rename one in the map.')
    paths = {place.path: source for _, source, place in sources if place is not None}
    aliases = joined(target.tables_path, VARIABLES)
    for path in sorted(paths):
        parts = path.split('/')
        above = ('/'.join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
        parent = next((each for each in above if each in paths), None)
        if parent is not None:
            yield Problem('E654', where, f'a variable at "{shown(parent, 200)}" can have none '
                          'inside', f'"{shown(path, 200)}"', 'Rename one in the map.')
        elif f'{path}/'.startswith(f'{aliases}/'):
            yield Problem('E654', where, f'"{shown(aliases, 200)}" is for the tables alone',
                          f'"{shown(path, 200)}"', 'Rename it in the map.')


def problems_of_nameless(contents: Contents, names: Names) -> Iterator[Problem]:
    """Yields a problem if variables have no new name."""
    those = [named.variable for named in names.variables if named.is_nameless]
    if those:
        texts = sorted(f'{"table " if one.is_table or one.may_be_table else ""}{one.name}'
                       for one in those)
        slots = sum(len(one.slots) for one in those)
        yield Problem(
            'E654', label(contents.bundle.prefix), 'each variable must have a new name',
            f'{len(texts):,} without, which have {slots:,} slots: {_some(texts)}',
            'Name them in the map, which --template FILE begins for you, or leave all of them '
            'out: --drop-rest.')


def _some(names: Iterable[str]) -> str:
    """Returns the first of some names, for a message."""
    given = list(names)
    more = f', and {len(given) - _MOST_NAMED:,} more' if len(given) > _MOST_NAMED else ''
    return quoted(shown(name, 200) for name in given[:_MOST_NAMED]) + more
