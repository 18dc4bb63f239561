"""`etpe checkpoint export`: writes the rows of tables into files, in the order of ids.

The report in JSON has these fields:

- `where`: the checkpoint. `directory`: of the files. `format`: of the files.
- `notes`, `skipped`: as in `show`.
- `tables`: each with `name`, `rows`, `width`, `tensors` (each with `name`, `slot` and `dtype`),
  `files` (their number) and `bytes` of rows.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from ..checkpoint import evidence
from ..checkpoint.file_names import label
from ..errors import CorruptCheckpointError, IncompatibleCheckpointError, bytes_text
from . import opened
from .opened import Stored
from .report import Grid, Line, Report, as_command, as_data, as_lines

if TYPE_CHECKING:  # The command alone needs NumPy.
    from ..migration.rows.outgoing import Chosen

_FORMATS = ('npy', 'safetensors', 'parquet')


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Writes the rows of tables into files of DIR, in the order of ids, and a file rows.json '
        'that says what they are. DIR must be empty or missing. etpe checkpoint import takes it. '
        'Files of the checkpoint are verified first. --format names the files; --report is the '
        'form of the output.')
    parser.add_argument('path', metavar='CKPT', help='a checkpoint, or a model_dir')
    parser.add_argument('--table', metavar='T', action='append', default=[], help='a table, by '
                        'parts of its name that no other has; give it again for more tables. '
                        'Without it all are exported')
    parser.add_argument('--slots', action='store_true', help='the slots of the optimizer too')
    parser.add_argument('--format', choices=_FORMATS, default='npy', help='of the files; '
                        'parquet needs the package pyarrow')
    parser.add_argument('-o', '--output', metavar='DIR', required=True)
    opened.add_arguments(parser)
    as_command(parser, lambda parsed: opened.report_of([parsed.path], lambda: _report(parsed)),
               flag='--report')  # Its --format is of the files.


def _report(parsed: argparse.Namespace) -> Report:
    from ..migration.rows import files, outgoing
    one = Stored(parsed.path, opened.options(parsed))
    if problems := one.problems():
        raise CorruptCheckpointError(*problems)
    tables = _tables(one, parsed.table, parsed.slots)
    files.require(parsed.format)
    if problems := one.damage():
        raise CorruptCheckpointError(*problems)
    written = outgoing.export(
        one.bundle, tables, parsed.format, parsed.output, name=os.path.basename(one.prefix),
        step=one.manifest.step if one.manifest is not None else None)
    data = {'where': one.where, 'directory': parsed.output, 'format': parsed.format,
            'notes': one.notes, 'skipped': as_data(one.skipped), 'tables': _data(one, written)}
    return Report([*(Line(note, 'warn') for note in one.notes), *as_lines(one.skipped, 'warn'),
                   _grid(data['tables']), Line(f'written to {parsed.output}', 'good')], data)


def _tables(one: Stored, names: list[str], with_slots: bool) -> list[Chosen]:
    from ..migration.rows import outgoing
    found = outgoing.candidates(one.bundle, one.tables, one.manifest)
    if not found and one.manifest is None and one.assumed is None:
        raise IncompatibleCheckpointError(evidence.problem(
            'E608', label(one.prefix), 'its tables', evidence.of_mod(one.prefix)))
    return outgoing.chosen(names, found, with_slots)


def _data(one: Stored, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{'name': table['name'], 'rows': (tensor := one.bundle.tensors[table['name']]).rows,
             'width': tensor.shape[1],
             'tensors': [{name: entry[name] for name in ('name', 'slot', 'dtype')}
                         for entry in table['tensors']],
             'files': len({entry['file'] for entry in table['tensors']}),
             'bytes': sum(one.bundle.tensors[entry['name']].size for entry in table['tensors'])}
            for table in written]


def _grid(tables: list[dict[str, Any]]) -> Grid:
    return Grid(('table', '>rows', '>width', 'slots', 'type', '>files', '>bytes'), [
        (one['name'], f'{one["rows"]:,}', str(one['width']),
         ', '.join(tensor['slot'] for tensor in one['tensors'] if tensor['slot']) or 'none',
         one['tensors'][0]['dtype'], f'{one["files"]:,}', bytes_text(one['bytes']))
        for one in tables])
