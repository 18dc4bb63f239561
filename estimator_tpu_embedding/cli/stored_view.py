"""`etpe checkpoint show`: the tables and variables of one checkpoint.

JSON: `"where"`, `"step"`, `"created"`, `"created_by"`, `"plan_digest"`, `"manifest_sha256"` (all
`null` without a manifest), `"notes"`; `"findings"` and `"skipped"` (what is wrong with newer ones
of a directory), each with `code` and `message`; `"tables"`, each with `name`, `rows`, `width`,
`strategy`, `hosts`, `slots`, `bytes` (with its slots) and with --rows `least`, `mean`, `most` (of
the norms of its rows), `zero`, `nonfinite` and `untouched_at_most` (how many rows can be such that
were never updated; `null` if that cannot be told); `"variables"`, each with `name`, `type`,
`shape`, `bytes`; `"vocabularies"`, each with `feature`, `sha256` (of its words), `size`,
`num_oov_buckets` and `default_value`; `"samples"`, with --sample, each with `table`, `id`, `row`
(as it is stored) and `values`; and `"absent"`, each with `table`, its `rows` and the `ids` that it
lacks. Numbers that JSON lacks are strings.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import math
from collections.abc import Iterator
from typing import Any

from ..checkpoint.index import Tensor
from ..core.vocabulary import Vocabulary
from ..errors import bytes_text
from . import stored_looks, stored_options
from .render import Grid, Line, Report
from .stored import Stored, tensors_of

_GROWING = ('Adagrad', 'ProximalAdagrad', 'Ftrl')
"""Slots that begin with the same number everywhere, and never get smaller."""
_MOST_VALUES = 8


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Shows tables as the manifest names them, and all other variables. SHA-256 is that of the '
        'manifest, which CheckpointOptions(expected_digest=...) takes. With --rows all tables are '
        'read. With --rows and --sample, and if PATH is a directory, files are verified first. '
        'The exit status is 1 if they are damaged, or the manifest names what is not there.')
    parser.add_argument('--rows', action='store_true', help='norms of rows, rows of zeros and, '
                        'for Adagrad, ProximalAdagrad and FTRL, the most rows that can be such '
                        'that were never updated')
    parser.add_argument('--sample', metavar='ID', nargs='+', type=_id, default=[],
                        help='show the rows of these ids in all tables')
    stored_options.configure(parser)


def _id(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'an id is a number >= 0, not {text!r}')
    return int(text)


def report(parsed: argparse.Namespace) -> Report:
    """What is in a checkpoint."""
    return stored_looks.at_what_stays([parsed.path], lambda: _report(parsed))


def _report(parsed: argparse.Namespace) -> Report:
    given = stored_options.options(parsed)
    one, notes, skipped = stored_options.opened(parsed.path, given)
    reads = parsed.rows or parsed.sample
    problems = tuple(one.problems())
    if reads and one.manifest is None and one.assumed is None:
        notes.append('no manifest: --rows and --sample need one, or --assume')
    elif reads and not problems:
        problems = stored_options.damage(one, given, notes)
    tables = [_table(one, name, parsed.rows and not problems) for name in sorted(one.tables)]
    known = {name for variable, table in one.tables.items()
             for name in tensors_of(variable, table)}
    others = [tensor for name, tensor in sorted(one.bundle.tensors.items()) if name not in known]
    samples = [] if problems else [sample for name in sorted(one.tables)
                                   for sample in _samples(one, name, parsed.sample)]
    absent = list(_absent(one, parsed.sample))
    data = {**_of_the_whole(one), 'notes': notes, 'findings': stored_options.as_data(problems),
            'skipped': stored_options.as_data(skipped), 'tables': tables, 'samples': samples,
            'absent': absent, 'variables': [
                {'name': tensor.name, 'type': tensor.kind, 'shape': list(tensor.shape),
                 'bytes': tensor.size} for tensor in others]}
    blocks = [Line(_headline(one), 'head'),
              *([Line(f'SHA-256 of its manifest: {one.digest}')] if one.digest else []),
              *(Line(note, 'warn') for note in notes), *stored_options.as_lines(skipped, 'warn'),
              *(_tables_blocks(tables, parsed.rows and not problems) if tables else []),
              *([_others_grid(others)] if others else []), *_words_blocks(one),
              *_sample_blocks(samples), *map(_absent_line, absent),
              *stored_options.as_lines(problems)]
    return Report(blocks, data, status=1 if problems else 0)


def _of_the_whole(one: Stored) -> dict[str, Any]:
    manifest = one.manifest
    return {'where': one.where, 'step': manifest and manifest.step,
            'created': (manifest.created or None) if manifest else None,
            'created_by': manifest and manifest.created_by,
            'plan_digest': manifest and manifest.plan_digest, 'manifest_sha256': one.digest,
            'vocabularies': [{'feature': feature, **dataclasses.asdict(words)}
                             for feature, words in _words(one)]}


def time_text(seconds: float) -> str:
    """A time for people, or nothing if there is none."""
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
            '%Y-%m-%d %H:%M:%S UTC') if seconds else ''
    except (OverflowError, ValueError, OSError):  # A manifest may say any number.
        return '?'


def json_number(value: float) -> float | str:
    """A number as JSON can hold it."""
    return value if math.isfinite(value) else str(value)


def _headline(one: Stored) -> str:
    manifest = one.manifest
    if manifest is None:
        return f'{one.where}: no manifest, ' + (
            'so nothing is known of tables' if one.assumed is None else
            'so tables and their order are as --assume says')
    parts = [f'step {manifest.step:,}', time_text(manifest.created),
             f'by {manifest.created_by}' if manifest.created_by else '',
             f'plan {manifest.plan_digest}' if manifest.plan_digest else '']
    return f'{one.where}: {", ".join(filter(None, parts))}'


def _table(one: Stored, name: str, read: bool) -> dict[str, Any]:
    """What is told of a table; its rows are looked at if `read`."""
    table, tensors = one.tables[name], one.bundle.tensors
    found: dict[str, Any] = {
        'name': name, 'rows': table.rows, 'width': table.width, 'strategy': table.strategy,
        'hosts': table.hosts, 'slots': list(table.slots), 'bytes': sum(
            tensors[each].size for each in tensors_of(name, table) if each in tensors)}
    if read:
        from ..checkpoint import rows
        norms = rows.norms(one.bundle, name)
        growing = next((f'{name}/{slot}' for slot in table.slots if slot in _GROWING), None)
        found |= {key: json_number(value) for key, value in norms._asdict().items()}
        found['untouched_at_most'] = None if growing is None else rows.rows_at_minimum(
            one.bundle, growing)
    return found


def _tables_blocks(tables: list[dict[str, Any]], read: bool) -> Iterator[Line | Grid]:
    head = ['table', '>rows', '>width', 'strategy', '>hosts', 'slots', '>bytes']
    cells = [[one['name'], f'{one["rows"]:,}', str(one['width']), one['strategy'],
              str(one['hosts']), ', '.join(one['slots']) or 'none', bytes_text(one['bytes'])]
             for one in tables]
    if read:
        head += ['>least', '>mean', '>most norm', '>zero', '>not finite', '>untouched']
        for one, row in zip(tables, cells):
            row += [_number_text(one.get(key)) for key in (
                'least', 'mean', 'most', 'zero', 'nonfinite')]
            most = one.get('untouched_at_most')
            row.append('?' if most is None else f'<= {most:,}')
    yield Grid(head, cells)
    if read and any(one['untouched_at_most'] is None for one in tables):
        yield Line('untouched ?: no slot tells it; those of Adagrad, ProximalAdagrad and FTRL do')


def _number_text(value: Any) -> str:
    return f'{value:.6g}' if isinstance(value, float) else (
        f'{value:,}' if isinstance(value, int) else str('?' if value is None else value))


def _others_grid(others: list[Tensor]) -> Grid:
    return Grid(('variable', 'type', 'shape', '>bytes'), [
        (tensor.name, tensor.kind, str(list(tensor.shape)), bytes_text(tensor.size))
        for tensor in others])


def _words_blocks(one: Stored) -> list[Grid]:
    """Which words have which ids, where that was recorded."""
    found = _words(one)
    return [Grid(('words of', '>words', '>OOV buckets', '>default', 'SHA-256'), [
        (feature, f'{words.size:,}', f'{words.num_oov_buckets:,}',
         str(words.default_value), words.short_digest) for feature, words in found])] if found else []


def _words(one: Stored) -> list[tuple[str, Vocabulary]]:
    return sorted(one.manifest.vocabularies.items()) if one.manifest is not None else []


def _samples(one: Stored, name: str, ids: list[int]) -> list[dict[str, Any]]:
    """The rows of some ids in a table, as far as it has them."""
    inside = [id for id in ids if id < one.tables[name].rows]
    if not inside:
        return []
    from ..checkpoint import rows
    ordered = rows.Ordered(one.bundle, name, one.partitions[name])
    return [{'table': name, 'id': id, 'row': ordered.row_of(id),
             'values': [json_number(value) for value in ordered.values(id)]} for id in inside]


def _absent(one: Stored, ids: list[int]) -> Iterator[dict[str, Any]]:
    """Which ids each table lacks."""
    for name, table in sorted(one.tables.items()):
        if missing := [id for id in ids if id >= table.rows]:
            yield {'table': name, 'ids': missing, 'rows': table.rows}


def _absent_line(one: dict[str, Any]) -> Line:
    ids = ', '.join(f'{id:,}' for id in one['ids'])
    return Line(f'{one["table"]} has ids up to {one["rows"] - 1:,}, and none of {ids}', 'warn')


def _sample_blocks(samples: list[dict[str, Any]]) -> list[Line | Grid]:
    if not samples:
        return []
    return [Grid(('table', '>id', '>stored row', 'values'), [
        (one['table'], f'{one["id"]:,}', f'{one["row"]:,}', _values_text(one['values']))
        for one in samples])]


def _values_text(values: list[float | str]) -> str:
    shown = [_number_text(value) for value in values[:_MOST_VALUES]]
    return ' '.join([*shown, '...'] if len(values) > _MOST_VALUES else shown)
