"""`etpe size`: shows the bytes of tables and slots, and their share of the memory of a TPU.

JSON: `"sizes"`, a list of one object per config:

| member | content |
|---|---|
| `where`, `hosts` | place of the config, number of hosts |
| `tables` | one object per table, see below |
| `slots_unknown` | names of tables whose slots are not counted |
| `bytes`, `padded_bytes` | of all tables |
| `rows_per_host`, `padded_bytes_per_host` | `min`, `max`, `imbalance` |
| `tpu` | `null`, or `name`, `bytes`, `share` |
| `findings` | a list of messages |

A table has `name`, `rows`, `dimension`, `padded_dimension`, `slots`, `table_bytes`, `slot_bytes`,
`bytes` and `padded_bytes`. `table_bytes` and `slot_bytes` are padded, and for one slot; the last
two are for the table and all slots.

`rows_per_host` and `padded_bytes_per_host` are `null` if the number of hosts is not legal. Then
`share` is of all hosts together; otherwise of the fullest host.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.limits import MAX_HOSTS
from ..errors import Problem, bytes_text
from . import inputs
from .config_view import TableView, View, view_of
from .report import Grid, Line, Report, as_command
from .sizes_by_host import (
    Extent,
    Slice,
    extent,
    memory_problems,
    memory_text,
    per_host,
    share_text,
    slice_called,
    tpu_data,
    unknown_slots_text,
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Shows the bytes of each table and of its slots, padded to a width that is a multiple '
        'of 8 floats as the memory of the hardware holds them. With --tpu the exit status is 1 '
        'if they do not fit.')
    parser.add_argument('--tpu', metavar='TYPE', type=slice_called, help='such as v3-8')
    as_command(parser, _report, 'INPUT')


def _report(parsed: argparse.Namespace) -> Report:
    views = [view_of(source) for source in inputs.load(parsed.input)]
    blocks: list[Line | Grid] = []
    sizes: list[dict[str, Any]] = []
    for view in views:
        legal = 1 <= view.hosts <= MAX_HOSTS
        hosts = view.hosts if legal else 1  # All rows in one place say something too.
        rows = extent(per_host(view.tables, hosts, lambda table: 1))
        padded = extent(per_host(view.tables, hosts,
                                 lambda table: table.padded_bytes_per_row))
        problems = memory_problems(padded, parsed.tpu)
        blocks += _blocks(view, rows, padded, parsed.tpu, problems)
        sizes.append({
            'where': view.where, 'hosts': view.hosts,
            'tables': [_data(one) for one in view.tables], 'slots_unknown': view.slots_unknown,
            'bytes': view.raw_bytes, 'padded_bytes': view.padded_bytes,
            'rows_per_host': rows.data() if legal else None,
            'padded_bytes_per_host': padded.data() if legal else None,
            'tpu': tpu_data(padded, parsed.tpu), 'findings': list(map(str, problems))})
    return Report(blocks, {'sizes': sizes}, status=int(any(one['findings'] for one in sizes)))


def _blocks(view: View, rows: Extent, padded: Extent, tpu: Slice | None,
            problems: Sequence[Problem]) -> Iterator[Line | Grid]:
    whole = view.padded_bytes  # Once, not once per table: there may be many.
    yield Line(f'{view.where}: {len(view.tables)} tables, {bytes_text(view.raw_bytes)}, padded '
               f'{bytes_text(whole)}', 'head')
    yield Grid(('table', '>rows', '>dim', '>pad', '>table', 'slots', '>bytes', '>padded', '>share'),
               [_cells(table, whole) for table in view.tables])
    yield from map(Line, unknown_slots_text(view))
    if rows.hosts == view.hosts:
        yield Line(f'on {rows.hosts} host{"s" if rows.hosts != 1 else ""}, div or mod: rows '
                   f'per host {rows.text(str)}; padded bytes {padded.text(bytes_text)}')
    else:
        yield Line(f'num_hosts {view.hosts} is not legal, so nothing can be said of a host', 'warn')
    if tpu is not None:
        yield Line(memory_text(padded, tpu))
    yield from (Line(str(problem), 'bad') for problem in problems)


def _one_copy(table: TableView) -> int:
    return table.padded_bytes // table.copies


def _cells(table: TableView, whole: int) -> tuple[str, ...]:
    slots = '?' if table.slots is None else ', '.join(
        f'{name} {bytes_text(_one_copy(table))}' for name in table.slots)
    return (table.name, f'{table.rows:,}', str(table.dimension), str(table.padded_dimension),
            bytes_text(_one_copy(table)), slots, bytes_text(table.raw_bytes),
            bytes_text(table.padded_bytes), share_text(table.padded_bytes, whole or 1))


def _data(table: TableView) -> dict[str, Any]:
    return {'name': table.name, 'rows': table.rows, 'dimension': table.dimension,
            'padded_dimension': table.padded_dimension, 'slots': table.slots,
            'table_bytes': _one_copy(table), 'slot_bytes': _one_copy(table),
            'bytes': table.raw_bytes, 'padded_bytes': table.padded_bytes}
