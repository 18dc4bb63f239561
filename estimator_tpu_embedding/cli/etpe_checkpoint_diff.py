"""Compares tables and variables by their names, and rows by their ids. A checkpoint is equal to a
later one with the same values on another number of hosts, or with another strategy. If one is of
TF1 and the other of TF2, names are taken as etpe migrate checkpoint gives them. Files are verified
first. The exit status is 1 if checkpoints differ, or are damaged.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..checkpoint.options import CheckpointOptions, TablesMeant
from ..checkpoint.tensors import Tensor
from ..errors import ConfigError, CorruptCheckpointError, counted, shown
from ..migration import checkpoint_contents, moves, new_names
from ..migration.map_file import Map
from . import checkpoint_argument
from .checkpoint_argument import Stored
from .etpe_migrate_checkpoint import add_paths, paths, read_map
from .report import Grid, Line, Report, as_command, as_data, as_lines, json_number, number_text

if TYPE_CHECKING:
    from ..checkpoint import stored_rows

_MOST_IDS = 10
_SIGNS = {'added': '+', 'removed': '-'}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('a', metavar='A')
    parser.add_argument('b', metavar='B')
    parser.add_argument('--rename', action='append', default=[], metavar='OLD=NEW', help='B calls '
                        'a table NEW that A calls OLD')
    add_paths(parser)
    checkpoint_argument.add_arguments(parser)
    as_command(parser, lambda parsed: checkpoint_argument.report_of(
        [parsed.a, parsed.b], lambda: _report(parsed)))


def _report(parsed: argparse.Namespace) -> Report:
    given = checkpoint_argument.options(parsed)
    a, b = (Stored(path, given) for path in (parsed.a, parsed.b))
    if problems := [*a.problems(), *b.problems()]:
        raise CorruptCheckpointError(*problems)
    damaged = [problem for one in {one.prefix: one for one in (a, b)}.values()
               for problem in one.damage()]
    if _is_across(a, b, parsed):
        pairs, more = _pairs_across_apis(a, b, parsed, given)
    else:
        pairs, more = _pairs_of_one_api(a, b, given), _notes_on_order(a, b)
    notes = [*a.notes, *b.notes, *more, *_notes_on_words(a, b)]
    found = list(_differences(a, b, pairs))
    skipped = [*a.skipped, *b.skipped]
    data = {'a': a.where, 'b': b.where, 'notes': notes, 'differences': found,
            'findings': as_data(damaged), 'skipped': as_data(skipped)}
    blocks = [*as_lines([*notes, *skipped], 'warn'), *_blocks(found), *as_lines(damaged)]
    return Report(blocks, data, status=1 if found or damaged else 0)


def _notes_on_order(a: Stored, b: Stored) -> list[str]:
    """Says which of both is taken to be in the order of ids, since nothing says its order."""
    return [f'{one.where} has no manifest: its rows are taken to be in the order of ids'
            for one, other in ((a, b), (b, a))
            if one.manifest is None and one.assumed is None and other.tables]


def _notes_on_words(a: Stored, b: Stored) -> list[str]:
    """Says which words have other ids in `b`, if both tell; rows are compared by ids."""
    before, after = a.vocabularies, b.vocabularies
    return [f'the words of "{shown(feature, 255)}" differ: {before[feature]} -> {after[feature]}'
            for feature in sorted(before.keys() & after.keys())
            if before[feature] != after[feature]]


def _blocks(found: list[dict[str, Any]]) -> Iterator[Line | Grid]:
    if not found:
        yield Line('no differences', 'good')
        return
    yield Grid(('', 'name', 'what', '>rows', '>most'), [
        (_SIGNS.get(one['kind'], '~'), one['name'], _what_text(one),
         *(['', ''] if one['rows'] is None else [f'{one["rows"]:,}', number_text(one['most'])]))
        for one in found])
    for one in found:
        if one['ids']:
            more = '' if one['rows'] <= len(one['ids']) else ', ...'
            what = 'row' if one['rows'] == 1 else 'rows'
            yield Line(f'{one["name"]}: {what} {", ".join(str(id) for id, _ in one["ids"])}{more}')
    yield Line(counted(len(found), 'difference'))


def _pairs_of_one_api(a: Stored, b: Stored, given: CheckpointOptions) -> list[tuple[str, str]]:
    """Returns what to compare: sorted pairs of tensors of `a` and `b`, `''` if one has none."""
    stored, here = (one.tables or one.bundle.tensors for one in (a, b))
    choices = TablesMeant(given, stored, here)
    if choices.problems:
        raise ConfigError(*(dataclasses.replace(problem, where='--rename')
                            for problem in choices.problems))
    renamed = {name: new + name.removeprefix(old) for new, old in choices.renamed.items()
               for name in a.bundle.tensors if name == old or name.startswith(f'{old}/')}
    pairs = []
    for name in a.bundle.tensors:
        target = renamed.get(name, '' if name in renamed.values() else name)
        pairs.append((name, target if target in b.bundle.tensors else ''))
    compared = {target for _, target in pairs}
    pairs += [('', name) for name in b.bundle.tensors if name not in compared]
    return sorted(pairs, key=lambda pair: pair[0] or pair[1])


def _is_across(a: Stored, b: Stored, parsed: argparse.Namespace) -> bool:
    """Whether two checkpoints are of different APIs; arguments that do not fit end the command."""
    found = checkpoint_contents.is_tf2(a.bundle) != checkpoint_contents.is_tf2(b.bundle)
    for name in (('rename',) if found else ('map', 'object_path', 'optimizer_path')):
        if getattr(parsed, name) not in (None, []):
            parsed.refuse(f'argument --{name.replace("_", "-")}: ' + (
                'one of both is of TF2; --map names tables and variables' if found else
                'both checkpoints are of one API'))
    return found


def _pairs_across_apis(a: Stored, b: Stored, parsed: argparse.Namespace, given: CheckpointOptions
                       ) -> tuple[list[tuple[str, str]], list[str]]:
    """As `_pairs_of_one_api`, with notes. Lets both know how their rows are ordered."""
    map, places = read_map(parsed), paths(parsed.object_path, parsed.optimizer_path)
    of_a, of_b = (moves.read(one.prefix, places, names, given)
                  for one, names in ((a, map), (b, Map())))
    found = new_names.pairs(of_a, of_b, map)
    for one, its in ((a, of_a), (b, of_b)):
        one.partitions = dict(new_names.orders(its))
    notes = []
    if found.ignored:
        notes.append(f'not compared: {counted(len(found.ignored), "tensor")} that only one API '
                     'has, such as counters and rates of TF2')
    if found.dropped:
        notes.append(f'not compared: {counted(len(found.dropped), "tensor")} that the map drops')
    return sorted(found.tensors, key=lambda pair: pair[0] or pair[1]), notes


def _differences(a: Stored, b: Stored, pairs: Iterable[tuple[str, str]]
                 ) -> Iterator[dict[str, Any]]:
    for of_a, of_b in pairs:
        name = of_a or of_b
        before, after = a.bundle.tensors.get(of_a), b.bundle.tensors.get(of_b)
        if before is None or after is None:
            yield _difference('removed' if after is None else 'added', name, before, after)
        elif (before.dtype, before.shape) != (after.dtype, after.shape) and not (
                _is_resized(before, after) and (of_a in a.partitions or of_b in b.partitions)):
            yield _difference('changed', name, before, after)
        elif not (before.has_rows and after.has_rows):
            # Their checksums are compared; strings and columns are not taken apart here.
            if [piece[2:] for piece in before.pieces] != [piece[2:] for piece in after.pieces]:
                whole = len(before.pieces) == len(after.pieces) == 1
                yield _difference('content' if whole else 'unknown', name, before, after)
        else:
            result = _compared((a, of_a), (b, of_b))
            if result.rows or before.rows != after.rows:
                yield _difference('values' if before.rows == after.rows else 'resized',
                                  name, before, after, result)


def _compared(a: tuple[Stored, str], b: tuple[Stored, str]) -> stored_rows.Difference:
    """Compares the rows of the ids that both tensors have."""
    from ..checkpoint import stored_rows
    fewer, more = sorted((stored_rows.Ordered(one.bundle, name, one.partitions.get(name))
                          for one, name in (a, b)), key=lambda one: one.tensor.rows)
    return stored_rows.difference(fewer, more, _MOST_IDS)


def _is_resized(before: Tensor, after: Tensor) -> bool:
    """Whether tensors of rows differ only in the number of rows."""
    return (before.dtype == after.dtype and len(before.shape) == len(after.shape) == 2
            and before.shape[1:] == after.shape[1:] and before.has_rows and after.has_rows)


def _difference(kind: str, name: str, before: Tensor | None, after: Tensor | None,
                result: stored_rows.Difference | None = None) -> dict[str, Any]:
    return {'kind': kind, 'name': name, 'before': before and _form(before),
            'after': after and _form(after), 'rows': result and result.rows,
            'new': after.rows - before.rows if result and before and after else None,
            'most': result and json_number(result.most),
            'ids': [[id, json_number(apart)] for id, apart in result.ids] if result else []}


def _form(tensor: Tensor) -> str:
    return f'{tensor.kind} {list(tensor.shape)}'


def _what_text(one: dict[str, Any]) -> str:
    if one['kind'] == 'resized':
        more = 'more' if one['new'] > 0 else 'fewer'
        return f'{counted(abs(one["new"]), "row")} {more}'
    if one['kind'] == 'changed':
        return f'{one["before"]} -> {one["after"]}'
    return one['before'] or one['after'] if one['kind'] in _SIGNS else str(one['kind'])
