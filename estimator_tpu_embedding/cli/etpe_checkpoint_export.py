"""Writes the rows of tables into files of DIR, in the order of ids. DIR must be empty or missing,
and is there when all files are. Files of the checkpoint are verified first. --format names the
files; --report is the form of the output.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..checkpoint.file_names import label
from ..checkpoint.restore_plan import sign_of_mod, unknown_order
from ..errors import CorruptCheckpointError, IncompatibleCheckpointError, bytes_text
from . import checkpoint_argument
from .checkpoint_argument import Stored
from .report import Grid, Line, Report, as_command, as_data, as_lines

if TYPE_CHECKING:  # The command alone needs NumPy.
    from ..migration.rows_export import Chosen


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('path', metavar='CKPT', help='a checkpoint, or a model_dir')
    parser.add_argument('--table', metavar='T', action='append', default=[], help='a table, by '
                        'parts of its name that no other has; give it again for more tables. '
                        'Without it all are exported')
    parser.add_argument('--slots', action='store_true', help='the slots of the optimizer too')
    parser.add_argument('--format', choices=('npy', 'safetensors', 'parquet'), default='npy',
                        help='of the files; all but npy need the extra "rows"')
    parser.add_argument('--projector', dest='format', action='store_const', const='projector',
                        help='write what the embedding projector of TensorBoard opens: text')
    parser.add_argument('-o', '--output', metavar='DIR', required=True)
    checkpoint_argument.add_arguments(parser)
    as_command(parser, lambda parsed: checkpoint_argument.report_of(
        [parsed.path], lambda: _report(parsed)),
               flag='--report')  # Its --format is of the files.


def _report(parsed: argparse.Namespace) -> Report:
    from ..migration import row_files, rows_export
    one = Stored(parsed.path, checkpoint_argument.options(parsed))
    if problems := one.problems():
        raise CorruptCheckpointError(*problems)
    tables = _tables(one, parsed.table, parsed.slots)
    row_files.require(parsed.format)
    if problems := one.damage():
        raise CorruptCheckpointError(*problems)
    written = rows_export.export(one.bundle, tables, parsed.format, parsed.output)
    data = {'where': one.where, 'directory': parsed.output, 'format': parsed.format,
            'notes': one.notes, 'skipped': as_data(one.skipped), 'tables': [
                {'name': table.name, 'rows': those[0].tensor.rows,
                 'width': those[0].tensor.shape[1], 'tensors': [
                     {'name': each.tensor.name, 'slot': each.slot, 'dtype': each.tensor.kind,
                      'file': each.file} for each in those],
                 'bytes': sum(each.tensor.size for each in those)}
                for table, those in zip(tables, written)]}
    return Report([*as_lines([*one.notes, *one.skipped], 'warn'),
                   _grid(data['tables']), Line(f'written to {parsed.output}', 'good')], data)


def _tables(one: Stored, names: list[str], with_slots: bool) -> list[Chosen]:
    from ..migration import rows_export
    found = rows_export.candidates(one.bundle, one.tables, one.manifest)
    if not found and one.manifest is None and one.assumed is None:
        raise IncompatibleCheckpointError(unknown_order(
            'E608', label(one.prefix), 'its tables', sign_of_mod(one.prefix)))
    return rows_export.chosen(names, found, with_slots)


def _grid(tables: list[dict[str, Any]]) -> Grid:
    return Grid(('table', '>rows', '>width', 'slots', 'type', 'file', '>bytes'), [
        (one['name'], f'{one["rows"]:,}', str(one['width']),
         ', '.join(tensor['slot'] for tensor in one['tensors'] if tensor['slot']) or 'none',
         one['tensors'][0]['dtype'], one['tensors'][0]['file'], bytes_text(one['bytes']))
        for one in tables])
