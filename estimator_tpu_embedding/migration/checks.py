"""Checks the names of a migration: all problems E654, each with a remedy."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from ..checkpoint.file_names import label
from ..checkpoint.object_graph import Place, joined
from ..core.limits import MAX_HOSTS
from ..core.names import name_problems
from ..core.partition import STRATEGIES
from ..core.specs import is_count
from ..errors import Problem, quoted, shown
from .contents import Contents
from .map_file import Map
from .naming import Named, Names, known
from .target import KERAS, KINDS, MIDLEVEL, TF1, VARIABLES, Target

_MOST_NAMED = 20
_ATTRIBUTES = '/.ATTRIBUTES/'


def of_target(target: Target) -> Iterator[Problem]:
    """Yields a problem for each value that a target cannot have."""
    for name, allowed in (('kind', KINDS), ('slots', (KERAS, MIDLEVEL)), ('strategy', STRATEGIES)):
        if getattr(target, name) not in allowed:
            yield Problem('E654', f'Target.{name}', f'it must be one of {quoted(allowed)}',
                          shown(repr(getattr(target, name)), 200))
    if not is_count(target.hosts, 1, MAX_HOSTS):
        yield Problem('E654', 'Target.hosts', f'it must be an int from 1 to {MAX_HOSTS}',
                      shown(repr(target.hosts), 200))


def of_map(contents: Contents, target: Target, map: Map) -> Iterator[Problem]:
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


def of_names(contents: Contents, target: Target, names: Names, map: Map) -> Iterator[Problem]:
    """Yields a problem for each new name that no variable or table can have."""
    where = label(contents.bundle.prefix)
    for named in names.variables:
        one = named.variable
        if named.new is not None and one.is_table:
            yield from _of_name('table', named.new)
            tensor = contents.tensor(one.tensor)
            if len(tensor.shape) != 2 or not tensor.is_float or not tensor.rows:
                yield Problem('E654', where, f'table "{shown(one.name, 200)}" must be a matrix of '
                              'floats', f'{tensor.kind} {list(tensor.shape)}')
        elif named.new is not None and map.rule_for(one.name) is not None:
            yield from _of_variable(target, named.new)
        elif named.new is not None and one.may_be_table and one.order is None:
            # The new manifest would vouch for an order that nobody knows.
            yield Problem('E654', where, f'"{shown(one.name, 200)}" must be called a table, or '
                          'none: it is in slices, and its rows may be in the order of mod',
                          'no line of the map', f'If it is one: table {shown(one.name, 200)} -> '
                          f'{shown(named.new, 200)}, and --assume. If none is: --assume div.')
        yield from _of_variables(target, named.alone.values())
    yield from _of_variables(target, names.others.values())


def _of_variables(target: Target, given: Iterable[object]) -> Iterator[Problem]:
    for name in given:
        if isinstance(name, str):
            yield from _of_variable(target, name)


def _of_variable(target: Target, name: str) -> Iterator[Problem]:
    yield from _of_name('variable', name)
    if target.kind != TF1 and _ATTRIBUTES in name:
        yield Problem('E654', f'variable "{shown(name, 200)}"', 'its name must be its path, '
                      f'without {_ATTRIBUTES}VARIABLE_VALUE')


def _of_name(kind: str, name: str) -> Iterator[Problem]:
    return (dataclasses.replace(problem, code='E654') for problem in name_problems(kind, name))


def of_targets(contents: Contents, target: Target, sources: Sequence[tuple[str, str, Place | None]]
               ) -> Iterator[Problem]:
    """Yields a problem for each name with two sources, and each variable inside of another one.

    Args:
      contents: of the checkpoint.
      target: what the other one is for.
      sources: of each new tensor its name, the name of its source, and its place.
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
        parent = next((above for above in _above(path) if above in paths), None)
        if parent is not None:
            yield Problem('E654', where, f'a variable at "{shown(parent, 200)}" can have none '
                          'inside', f'"{shown(path, 200)}"', 'Rename one in the map.')
        elif f'{path}/'.startswith(f'{aliases}/'):
            yield Problem('E654', where, f'"{shown(aliases, 200)}" is for the tables alone',
                          f'"{shown(path, 200)}"', 'Rename it in the map.')


def _above(path: str) -> Iterator[str]:
    while '/' in path:
        path = path.rpartition('/')[0]
        yield path


def of_nameless(contents: Contents, nameless: Sequence[Named]) -> Iterator[Problem]:
    """Yields a problem if variables have no new name."""
    if nameless:
        variables = [named.variable for named in nameless]
        names = sorted(f'{"table " if one.is_table or one.may_be_table else ""}{one.name}'
                       for one in variables)
        slots = sum(len(one.slots) for one in variables)
        yield Problem(
            'E654', label(contents.bundle.prefix), 'each variable must have a new name',
            f'{len(names):,} without, which have {slots:,} slots: {_some(names)}',
            'Name them in the map, which --template FILE begins for you, or leave all of them '
            'out: --drop-rest.')


def _some(names: Iterable[str]) -> str:
    """Returns the first of some names, for a message."""
    given = list(names)
    more = f', and {len(given) - _MOST_NAMED:,} more' if len(given) > _MOST_NAMED else ''
    return quoted(shown(name, 200) for name in given[:_MOST_NAMED]) + more
