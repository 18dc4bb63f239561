"""Shows the tables that the manifest names, and all other variables.
CheckpointOptions(expected_digest=...) takes the SHA-256 of the manifest. Files are verified first
with --sample, and if PATH is a directory. The exit status is 1 if they are damaged, or if the
manifest names something that is not there.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from typing import Any

from ..checkpoint import manifest
from ..checkpoint.options import CheckpointOptions
from ..errors import bytes_text
from . import checkpoint_argument
from .checkpoint_argument import Stored
from .report import (
    Grid,
    Line,
    Report,
    as_command,
    as_data,
    as_lines,
    json_number,
    number_text,
    time_text,
)

_MOST_VALUES, _DIGITS = 8, 12


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('path', metavar='PATH')
    parser.add_argument('--sample', metavar='ID', nargs='+', type=_id, default=[],
                        help='show the rows of these ids in all tables')
    checkpoint_argument.add_arguments(parser)
    as_command(parser, lambda parsed: checkpoint_argument.report_of(
        [parsed.path],
        lambda: report(parsed.path, checkpoint_argument.options(parsed), parsed.sample)))


def _id(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'an id is a number >= 0, not {text!r}')
    return int(text)


def report(path: str, options: CheckpointOptions, ids: list[int]) -> Report:
    """Returns the report about the checkpoint that a path means, with the rows of some ids."""
    one = Stored(path, options)
    problems = one.problems()
    if ids:
        if one.manifest is None and one.assumed is None:
            one.notes.append('no manifest: --sample needs one, or --assume')
        elif not problems:
            problems = one.damage()
    tables = sorted(one.tables)
    known = {name for table in tables for name in manifest.tensors_of(table, one.tables[table])}
    data = {
        **_of_the_whole(one), 'notes': one.notes, 'findings': as_data(problems),
        'skipped': as_data(one.skipped), 'tables': [_table(one, name) for name in tables],
        'variables': [{'name': name, 'type': tensor.kind, 'shape': list(tensor.shape),
                       'bytes': tensor.size} for name, tensor in sorted(one.bundle.tensors.items())
                      if name not in known],
        'samples': [] if problems else [
            sample for name in tables for sample in _samples(one, name, ids)],
        'absent': [{'table': name, 'ids': missing, 'rows': one.tables[name].rows}
                   for name in tables
                   if (missing := [id for id in ids if id >= one.tables[name].rows])]}
    blocks = [Line(_headline(one), 'head'), *as_lines(one.skipped, 'warn'), *_blocks(data),
              *as_lines(problems)]
    return Report(blocks, data, status=1 if problems else 0)


def _of_the_whole(one: Stored) -> dict[str, Any]:
    found = one.manifest
    return {'where': one.where, 'step': found and found.step,
            'created': (found.created or None) if found else None,
            'created_by': found and found.created_by,
            'plan_digest': found and found.plan_digest,
            'manifest_sha256': manifest.digest(one.prefix) if found else None,
            'vocabularies': [{'feature': feature, **dataclasses.asdict(words)}
                             for feature, words in sorted(one.vocabularies.items())]}


def _headline(one: Stored) -> str:
    found = one.manifest
    if found is None:
        return f'{one.where}: no manifest, ' + (
            'so nothing is known of tables' if one.assumed is None else
            'so tables and their order are as --assume says')
    parts = [f'step {found.step:,}', time_text(found.created),
             f'by {found.created_by}' if found.created_by else '',
             f'plan {found.plan_digest}' if found.plan_digest else '']
    return f'{one.where}: {", ".join(filter(None, parts))}'


def _table(one: Stored, name: str) -> dict[str, Any]:
    table, tensors = one.tables[name], one.bundle.tensors
    return {'name': name, 'rows': table.rows, 'width': table.width, 'strategy': table.strategy,
            'hosts': table.hosts, 'slots': list(table.slots), 'bytes': sum(
                tensors[each].size for each in manifest.tensors_of(name, table)
                if each in tensors)}


def _samples(one: Stored, name: str, ids: list[int]) -> list[dict[str, Any]]:
    """Returns the rows of those ids that a table has."""
    inside = [id for id in ids if id < one.tables[name].rows]
    if not inside:
        return []
    from ..checkpoint import stored_rows
    ordered = stored_rows.Ordered(one.bundle, name, one.partitions[name])
    return [{'table': name, 'id': id, 'row': ordered.row_of(id),
             'values': [json_number(value) for value in ordered.values(id)]} for id in inside]


def _blocks(data: dict[str, Any]) -> Iterator[Line | Grid]:
    """Returns the report for people, from that for programs."""
    if data['manifest_sha256']:
        yield Line(f'SHA-256 of its manifest: {data["manifest_sha256"]}')
    yield from as_lines(data['notes'], 'warn')
    grids = [
        (['table', '>rows', '>width', 'strategy', '>hosts', 'slots', '>bytes'],
         [[one['name'], f'{one["rows"]:,}', str(one['width']), one['strategy'], str(one['hosts']),
           ', '.join(one['slots']) or 'none', bytes_text(one['bytes'])]
          for one in data['tables']]),
        (['variable', 'type', 'shape', '>bytes'],
         [[one['name'], one['type'], str(one['shape']), bytes_text(one['bytes'])]
          for one in data['variables']]),
        (['words of', '>words', '>OOV buckets', '>default', 'SHA-256'],
         [[one['feature'], f'{one["size"]:,}', f'{one["num_oov_buckets"]:,}',
           str(one['default_value']), one['sha256'][:_DIGITS]] for one in data['vocabularies']]),
        (['table', '>id', '>stored row', 'values'],
         [[one['table'], f'{one["id"]:,}', f'{one["row"]:,}', _values_text(one['values'])]
          for one in data['samples']])]
    yield from (Grid(head, rows) for head, rows in grids if rows)
    for one in data['absent']:
        ids = ', '.join(f'{id:,}' for id in one['ids'])
        yield Line(f'{one["table"]} has ids up to {one["rows"] - 1:,}, and none of {ids}', 'warn')


def _values_text(values: list[float | str]) -> str:
    shown = [number_text(value) for value in values[:_MOST_VALUES]]
    return ' '.join([*shown, '...'] if len(values) > _MOST_VALUES else shown)
