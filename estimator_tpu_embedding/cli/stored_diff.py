"""`etpe checkpoint diff`: what differs between two checkpoints, for every id its own row.

JSON: `"a"`, `"b"` (where they are), `"notes"` and `"differences"`, each with `name`, `kind`,
`before` and `after` (type and shape, or `null`), `rows` (how many differ), `most` (the largest
absolute difference, or `"inf"`) and `ids`: of those that differ, pairs of id and its largest
difference, 10 of them unless --all is given. Kinds are `added`, `removed`, `changed` (another type
or shape), `values`, which alone has rows; `content` of strings; and `unknown` of what was saved in
slices that cannot be compared here, with other checksums.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..checkpoint.index import NO_ROW, Tensor
from ..errors import CorruptCheckpointError
from .render import Grid, Line, Report
from .stored import Stored, newest
from .stored_view import json_number

if TYPE_CHECKING:
    from ..checkpoint import rows as stored_rows

_SOME, _ALL = 10, 1_000_000
_SIGNS = {'added': '+', 'removed': '-'}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Compares tables and variables by their names, and rows by their ids: a checkpoint is '
        'equal to itself restored with another number of hosts or another strategy. The exit '
        'status is 1 if they differ.')
    parser.add_argument('--all', action='store_true', help=f'name all ids that differ, up to '
                        f'{_ALL:,} in each table, not only the first {_SOME}')


def report(parsed: argparse.Namespace) -> Report:
    """What differs between two checkpoints."""
    a, b = Stored(newest(parsed.a)), Stored(newest(parsed.b))
    for one in (a, b):
        if problems := one.problems():
            raise CorruptCheckpointError(*problems)
    found = list(_differences(a, b, _ALL if parsed.all else _SOME))
    notes = [f'{one.where} has no manifest: its rows are taken to be in the order of ids'
             for one, other in ((a, b), (b, a)) if one.manifest is None and other.tables]
    rows = [(_SIGNS.get(one['kind'], '~'), one['name'], _what(one), *_amounts(one))
            for one in found]
    blocks: list[Line | Grid] = [Line(note, 'warn') for note in notes]
    if rows:
        blocks.append(Grid(('', 'name', 'what', '>rows', '>most'), rows))
        blocks += _ids_blocks(found, parsed.all)
    blocks.append(Line(f'{len(found)} differences' if found else 'no differences',
                       '' if found else 'good'))
    return Report(blocks, {'a': a.where, 'b': b.where, 'notes': notes, 'differences': found},
                  status=1 if found else 0)


def _differences(a: Stored, b: Stored, most_ids: int) -> Iterator[dict[str, Any]]:
    for name in sorted({*a.bundle.tensors, *b.bundle.tensors}):
        before, after = a.bundle.tensors.get(name), b.bundle.tensors.get(name)
        if before is None or after is None:
            yield _difference('removed' if after is None else 'added', name, before, after)
        elif (before.dtype, before.shape) != (after.dtype, after.shape):
            yield _difference('changed', name, before, after)
        elif not before.code or any(piece.first_row == NO_ROW
                                    for piece in (*before.pieces, *after.pieces)):
            # Their checksums are compared; strings and columns are not taken apart here.
            if [piece[2:] for piece in before.pieces] != [piece[2:] for piece in after.pieces]:
                whole = len(before.pieces) == len(after.pieces) == 1
                yield _difference('content' if whole else 'unknown', name, before, after)
        else:
            from ..checkpoint import rows
            result = rows.difference(_ordered(a, name), _ordered(b, name), most_ids)
            if result.rows:
                yield _difference('values', name, before, after, result)


def _ordered(one: Stored, name: str) -> stored_rows.Ordered:
    from ..checkpoint import rows
    return rows.Ordered(one.bundle, name, one.partitions.get(name))


def _difference(kind: str, name: str, before: Tensor | None, after: Tensor | None,
                result: stored_rows.Difference | None = None) -> dict[str, Any]:
    return {'kind': kind, 'name': name, 'before': before and _form(before),
            'after': after and _form(after), 'rows': result and result.rows,
            'most': result and json_number(result.most),
            'ids': [[id, json_number(apart)] for id, apart in result.ids] if result else []}


def _form(tensor: Tensor) -> str:
    return f'{tensor.kind} {list(tensor.shape)}'


def _what(one: dict[str, Any]) -> str:
    if one['kind'] == 'changed':
        return f'{one["before"]} -> {one["after"]}'
    return one['before'] or one['after'] if one['kind'] in _SIGNS else str(one['kind'])


def _amounts(one: dict[str, Any]) -> tuple[str, str]:
    if one['rows'] is None:
        return '', ''
    return f'{one["rows"]:,}', _apart(one['most'])


def _apart(value: float | str) -> str:
    return value if isinstance(value, str) else f'{value:.6g}'


def _ids_blocks(found: list[dict[str, Any]], all: bool) -> Iterator[Line | Grid]:
    """Which ids differ: of each tensor the first in a line, or all in a table."""
    if all:
        yield Grid(('name', '>id', '>difference'), [
            (one['name'], str(id), _apart(apart)) for one in found for id, apart in one['ids']])
        return
    for one in found:
        if one['ids']:
            more = '' if one['rows'] <= len(one['ids']) else ', ...'
            yield Line(f'{one["name"]}: rows {", ".join(str(id) for id, _ in one["ids"])}{more}')
