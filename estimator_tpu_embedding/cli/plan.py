"""`etpe plan`: shows the rows and bytes of each host, for the topology of a config or another one.

JSON: `"plans"`, a list of one object per config:

| member | content |
|---|---|
| `where`, `hosts`, `cores_per_host`, `strategy` | the config and the topology |
| `batch_size` | global; `null` if unknown |
| `tables` | objects with `name`, `rows`, `rows_per_host` and `hosts_of_newest` |
| `rows_of_host`, `bytes_of_host`, `padded_bytes_of_host` | lists by host |
| `slots_unknown` | as in `size` |
| `findings` | a list of messages |
| `stats` | see `stats.py`; `null` without --stats |

`hosts_of_newest` says, by strategy, how many hosts share the newest 1 % of the ids. The rows of a
config are at least the number of hosts, as TensorFlow writes them.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from ..checkpoint import profile_files
from ..core.partition import STRATEGIES
from ..core.specs import Topology
from ..core.table_profile import TableProfile
from ..errors import ConfigError, Problem, bytes_text
from . import inputs
from . import stats as measured
from .advice import newest_spread
from .config_view import TableView, View, extent, extent_text, per_host, rows_extent, view_of
from .report import Grid, Line, Report, as_command
from .size import unknown_slots

_ALL_UP_TO, _AT_EACH_END = 8, 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Shows the rows and bytes of each host. What is not given is that of the config; the '
        'global batch stays. Tables of a config with fewer rows than hosts get a row for each, as '
        'in the config that TensorFlow writes for that many hosts. Ids are often given in order '
        'of arrival, and new ones looked up most: the columns "newest" say how many hosts share '
        'the highest 1 % of the ids. The exit status is 1 if the batch cannot be split.')
    parser.add_argument('--hosts', type=int, metavar='H', help='number of hosts')
    parser.add_argument('--cores', type=int, metavar='C', help='cores per host')
    parser.add_argument('--strategy', choices=STRATEGIES, help='how rows are spread over hosts')
    parser.add_argument('--stats', metavar='DIR', help='the profile_data_directory of a job: how '
                        'its look-ups would be shared by these hosts, under div and under mod; '
                        'repeated ids count, "~" marks estimates')
    as_command(parser, _report, 'INPUT')


def _report(parsed: argparse.Namespace) -> Report:
    views = [view_of(source) for source in inputs.load(parsed.input)]
    profiles = None if parsed.stats is None else list(
        profile_files.read_all(parsed.stats))
    plans = [_planned(view, parsed, profiles) for view in views]
    return Report([block for _, blocks in plans for block in blocks],
                  {'plans': [data for data, _ in plans]},
                  status=int(any(data['findings'] for data, _ in plans)))


def _planned(view: View, parsed: argparse.Namespace, profiles: Sequence[TableProfile] | None
             ) -> tuple[dict[str, Any], list[Line | Grid]]:
    """Returns the reports about one config, for programs and for people."""
    topology = _topology(view, parsed)
    hosts = topology.num_hosts
    stats = None if profiles is None else measured.data(view, hosts, parsed.stats, profiles)
    tables = [_raised(table, hosts) for table in view.tables]
    newest = [{strategy: newest_spread(table, strategy, hosts) for strategy in (
        (parsed.strategy,) if parsed.strategy else STRATEGIES)} for table in tables]
    strategy = parsed.strategy or view.strategy
    size = view.batch_size_per_core * view.cores if view.batch_size_per_core else 0
    problem = topology.batch_problem('batch size', size) if size else None
    rows, raw, padded = (per_host(tables, hosts, weigh) for weigh in (
        lambda table: 1, lambda table: table.bytes_per_row,
        lambda table: table.padded_bytes_per_row))
    what = topology.batch_arithmetic(size) if size and not problem else str(topology)
    blocks = [
        Line(f'{view.where}: {what}, {strategy}', 'head'),
        Grid(('table', '>rows', '>rows per host', '>max/mean', '>padded per host',
              *(f'>newest, {name}' for name in (newest[0] if newest else ()))),
             [_cells(table, hosts, shares) for table, shares in zip(tables, newest)]),
        Grid(('host', '>rows', '>bytes', '>padded'), list(_host_rows(rows, raw, padded))),
        Line(f'rows per host {extent_text(extent(rows), str)}; padded bytes '
             f'{extent_text(extent(padded), bytes_text)}'),
        *unknown_slots(view), *(measured.blocks(stats) if stats else ()),
        *([Line(str(problem), 'bad')] if problem else [])]
    return {
        'where': view.where, 'hosts': hosts, 'cores_per_host': topology.cores_per_host,
        'strategy': strategy, 'batch_size': size or None,
        'tables': [{'name': table.name, 'rows': table.rows,
                    'rows_per_host': rows_extent(table, hosts),
                    'hosts_of_newest': shares} for table, shares in zip(tables, newest)],
        'rows_of_host': rows, 'bytes_of_host': raw, 'padded_bytes_of_host': padded,
        'slots_unknown': view.slots_unknown, 'stats': stats,
        'findings': [str(problem)] if problem else []}, blocks


def _topology(view: View, parsed: argparse.Namespace) -> Topology:
    """Returns the topology of the arguments; what is not given is that of the config.

    Raises:
      ConfigError: E410 if it is illegal.
    """
    hosts = view.hosts if parsed.hosts is None else parsed.hosts
    cores = view.cores // max(view.hosts, 1) if parsed.cores is None else parsed.cores
    topology = Topology(num_hosts=hosts, cores_per_host=cores)
    problems = list(topology.problems())
    if parsed.cores is None and view.cores != cores * view.hosts:
        problems.append(Problem(
            'E410', view.where, 'num_tensor_cores must be a multiple of num_hosts',
            f'{view.cores} cores on {view.hosts} hosts', 'Give --cores, those of one host.'))
    if problems:
        raise ConfigError(*problems)
    return topology


def _raised(table: TableView, hosts: int) -> TableView:
    """The table with the rows that a config of the same job has for that many hosts.

    A job declares a vocabulary. TensorFlow raises it in the config to the number of hosts, so that
    each host has a row.
    """
    return dataclasses.replace(table, rows=hosts) if 0 < table.rows < hosts else table


def _cells(table: TableView, hosts: int, newest: dict[str, int]) -> tuple[str, ...]:
    rows = rows_extent(table, hosts)
    least, most = rows['min'], rows['max']
    return (table.name, f'{table.rows:,}', f'{most:,}' if least == most else
            f'{least:,} to {most:,}', f'{rows["imbalance"]:.2f}',
            bytes_text(most * table.padded_bytes_per_row),
            *(f'{count} of {hosts}' for count in newest.values()))


def _host_rows(rows: list[int], raw: list[int], padded: list[int]) -> Iterator[tuple[str, ...]]:
    """One row of text per host; only the first and last ones if there are many hosts."""
    for host in range(len(rows)):
        if len(rows) > _ALL_UP_TO and _AT_EACH_END <= host < len(rows) - _AT_EACH_END:
            if host == _AT_EACH_END:
                yield ('...',) * 4
            continue
        yield str(host), f'{rows[host]:,}', bytes_text(raw[host]), bytes_text(padded[host])
