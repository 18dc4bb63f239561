"""Resolves the names of tables in a job's checkpoint options: which to grow, rename, reset or drop.

An option may give a part of a name. Options that an earlier start of the job has carried out
already are recognized, and are not carried out again.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ..errors import Problem, quoted, shown
from .manifest import Applied
from .options import CheckpointOptions


class Choices(NamedTuple):
    """The options with names in full.

    Attributes:
      grow: tables of the job that may have more rows than in the checkpoint.
      reset: tables of the job whose slots begin anew.
      were_reset: tables whose slots began anew before the checkpoint was saved.
      drop: tables of the checkpoint that nobody needs.
      renamed: the name of a table in the job -> its name in the checkpoint.
      done: options that the job of the checkpoint has carried out, for people.
      problems: names that mean no table, or several.
    """

    grow: frozenset[str]
    reset: frozenset[str]
    were_reset: frozenset[str]
    drop: frozenset[str]
    renamed: Mapping[str, str]
    done: tuple[str, ...]
    problems: tuple[Problem, ...]

    def source_of(self, table: str) -> str | None:
        """Returns the name of a table in the checkpoint; `None` if another one took that name."""
        if table in self.renamed:
            return self.renamed[table]
        return None if table in self.renamed.values() else table


def tables_meant(options: CheckpointOptions, stored: Collection[str], here: Collection[str],
                 applied: Applied = Applied()) -> Choices:
    """Finds the tables that options name.

    A job may be started again with the same options after it has carried them out. So a table
    that is renamed already is no problem, nor one that is dropped already. Names that were swapped
    are not swapped back.

    >>> found = tables_meant(CheckpointOptions(grow=['weights'], rename={'old': 'new'}),
    ...                      ['a/weights', 'old'], ['a/weights', 'new'])
    >>> sorted(found.grow), found.renamed
    (['a/weights'], {'new': 'old'})
    """
    problems: list[Problem] = []
    done: list[str] = []
    renamed, names_here = {}, {}
    for old, new in options.rename.items():
        source, target = _only(old, stored), _only(new, here)
        if applied.rename.get(old) == new and target in stored:
            names_here[old] = target
            done.append(f'rename {shown(old, 200)}={shown(new, 200)}')
        elif target is None:
            problems += _unknown('rename', new, here, 'this job')
        elif source is not None:
            renamed[target] = source
            names_here[source] = target
        elif target not in stored:
            problems += _unknown('rename', old, stored, 'the checkpoint')
    chosen: dict[str, dict[str, str]] = {'grow': {}, 'reset_slots': {}}
    for option, found in chosen.items():
        for name in getattr(options, option):
            table = _only(name, here) or names_here.get(_only(name, names_here) or '')
            if table is None:
                problems += _unknown(option, name, here, 'this job')
            else:
                found[name] = table
    before = {name: table for name, table in chosen['reset_slots'].items()
              if name in applied.reset_slots and table in stored}
    done += [f'reset_slots {shown(name, 200)}' for name in before]
    drop = {_only(name, stored) for name in options.drop}
    return Choices(
        grow=frozenset(chosen['grow'].values()),
        reset=frozenset(chosen['reset_slots'].values()) - frozenset(before.values()),
        were_reset=frozenset(before.values()), drop=frozenset(name for name in drop if name),
        renamed=renamed, done=tuple(done), problems=tuple(problems))


def unknown_drops(options: CheckpointOptions, left_over: Collection[str]) -> Iterator[Problem]:
    """Yields a problem for each table to drop that is not among the tables left over."""
    for name in options.drop:
        if _only(name, left_over) is None:
            yield from _unknown('drop', name, left_over, 'the checkpoint')


def may_mean(name: str, table: str) -> bool:
    """Whether a name is one or more whole parts of the name of a table, one after the other.

    >>> may_mean('user_embedding', 'input_layer/user_embedding/embedding_weights')
    True
    >>> may_mean('embedding', 'input_layer/user_embedding/embedding_weights')
    False
    """
    return f'/{name}/' in f'/{table}/'


def meant(name: str, tables: Collection[str]) -> list[str]:
    """Returns the table of that name; otherwise all that end so; otherwise all with these parts.

    >>> meant('b', ['a/b', 'a/c']), meant('a', ['a/b', 'a/c'])
    (['a/b'], ['a/b', 'a/c'])
    """
    if name in tables:
        return [name]
    return (sorted(table for table in tables if table.endswith(f'/{name}'))
            or sorted(table for table in tables if may_mean(name, table)))


def _only(name: str, tables: Collection[str]) -> str | None:
    """Returns the table that a name means; `None` if there is none, or more than one."""
    found = meant(name, tables)
    return found[0] if len(found) == 1 else None


def _unknown(option: str, name: str, tables: Collection[str], place: str) -> Iterator[Problem]:
    several = meant(name, tables)
    near = difflib.get_close_matches(name, tables, n=3, cutoff=0.4) or sorted(tables)[:3]
    yield Problem(
        'E630', f'CheckpointOptions.{option}', f'it must name one table of {place}, in full or by '
        'parts of its name that no other has',
        f'"{shown(name, 200)}"' + (f', which may be {quoted(several)}' if several else ''),
        '' if several or not near else f'Similar names there: {quoted(map(shown, near))}.')
