"""Shows the bytes of each table and of its slots, padded to a width that is a multiple of 8 floats
as the memory of the hardware holds them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ..errors import bytes_text
from . import input_argument as inputs
from .config_view import TableView, View, view_of
from .report import Grid, Line, Report, as_command, names_text


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    as_command(parser, _report, 'INPUT')


def _report(parsed: argparse.Namespace) -> Report:
    views = list(map(view_of, inputs.load(parsed.input)))
    return Report([block for view in views for block in _blocks(view)],
                  {'sizes': list(map(_data, views))})


def _data(view: View) -> dict[str, Any]:
    return {
        'where': view.where, 'tables': [{
            'name': table.name, 'rows': table.rows, 'dimension': table.dimension,
            'padded_dimension': table.padded_dimension, 'slots': table.slots,
            'table_bytes': _one_copy(table), 'slot_bytes': _one_copy(table),
            'bytes': table.raw_bytes, 'padded_bytes': table.padded_bytes}
            for table in view.tables],
        'slots_unknown': view.slots_unknown, 'bytes': view.raw_bytes,
        'padded_bytes': view.padded_bytes}


def _blocks(view: View) -> Iterator[Line | Grid]:
    whole = view.padded_bytes  # Once, not once per table: there may be many.
    yield Line(f'{view.where}: {len(view.tables)} tables, {bytes_text(view.raw_bytes)}, padded '
               f'{bytes_text(whole)}', 'head')
    yield Grid(('table', '>rows', '>dim', '>pad', '>table', 'slots', '>bytes', '>padded', '>share'),
               [_cells(table, whole) for table in view.tables])
    yield from unknown_slots(view)


def unknown_slots(view: View) -> list[Line]:
    """Returns a line on the slots that are not counted, or no line."""
    if not view.slots_unknown:
        return []
    return [Line(f'not counted: the slots of {names_text(view.slots_unknown)}, which are not '
                 'known')]


def _one_copy(table: TableView) -> int:
    return table.padded_bytes // table.copies


def _cells(table: TableView, whole: int) -> tuple[str, ...]:
    slots = '?' if table.slots is None else ', '.join(
        f'{name} {bytes_text(_one_copy(table))}' for name in table.slots)
    return (table.name, f'{table.rows:,}', str(table.dimension), str(table.padded_dimension),
            bytes_text(_one_copy(table)), slots, bytes_text(table.raw_bytes),
            bytes_text(table.padded_bytes), f'{100 * table.padded_bytes / (whole or 1):.1f} %')
