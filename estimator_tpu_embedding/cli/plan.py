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

from ..core.partition import STRATEGIES
from ..core.specs import Topology
from ..core.table_profile import TableProfile
from ..errors import ConfigError, Problem, bytes_text
from . import inputs
from . import stats as measured
from .advice import newest_spread
from .config_view import TableView, View, view_of
from .report import Grid, Line, Report, as_command
from .size import unknown_slots
from .sizes_by_host import extent, per_host, rows_extent

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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """One config on one topology."""

    view: View
    topology: Topology
    strategy: str
    strategies: tuple[str, ...]
    rows: list[int]
    raw: list[int]
    padded: list[int]
    stats: dict[str, Any] | None

    @property
    def batch_size(self) -> int | None:
        """Global batch size of the config."""
        size = self.view.batch_size_per_core
        return size * self.view.cores if size and self.view.cores else None

    def problems(self) -> list[Problem]:
        """The reasons why the topology is not possible."""
        batch = self.batch_size and self.topology.batch_problem('batch size', self.batch_size)
        return [batch] if batch else []


def _report(parsed: argparse.Namespace) -> Report:
    views = [view_of(source) for source in inputs.load(parsed.input)]
    profiles = None if parsed.stats is None else measured.read(parsed.stats, views)
    plans = [_plan(view, parsed, profiles) for view in views]
    return Report([block for plan in plans for block in _blocks(plan)],
                  {'plans': [_data(plan) for plan in plans]},
                  status=int(any(plan.problems() for plan in plans)))


def _plan(view: View, parsed: argparse.Namespace, profiles: Sequence[TableProfile] | None
          ) -> _Plan:
    hosts = view.hosts if parsed.hosts is None else parsed.hosts
    cores = parsed.cores
    if cores is None:
        cores = view.cores // max(view.hosts, 1)
    topology = Topology(num_hosts=hosts, cores_per_host=cores)
    problems = list(topology.problems())
    if parsed.cores is None and view.cores != cores * view.hosts:
        problems.append(Problem(
            'E410', view.where, 'num_tensor_cores must be a multiple of num_hosts',
            f'{view.cores} cores on {view.hosts} hosts', 'Give --cores, those of one host.'))
    if problems:
        raise ConfigError(*problems)
    stats = None if profiles is None else measured.data(view, hosts, parsed.stats, profiles)
    view = _raised(view, hosts)
    return _Plan(
        view=view, topology=topology, stats=stats,
        strategy=parsed.strategy or view.strategy,
        strategies=(parsed.strategy,) if parsed.strategy else STRATEGIES,
        rows=per_host(view.tables, hosts, lambda table: 1),
        raw=per_host(view.tables, hosts, lambda table: table.bytes_per_row),
        padded=per_host(view.tables, hosts, lambda table: table.padded_bytes_per_row))


def _raised(view: View, hosts: int) -> View:
    """The view with the rows that a config of the same job has for that many hosts.

    A job declares a vocabulary. TensorFlow raises it in the config to the number of hosts, so that
    each host has a row.
    """
    return dataclasses.replace(view, tables=tuple(
        dataclasses.replace(table, rows=hosts) if 0 < table.rows < hosts else table
        for table in view.tables))


def _blocks(plan: _Plan) -> Iterator[Line | Grid]:
    problems, size = plan.problems(), plan.batch_size
    what = str(plan.topology) if size is None or problems else plan.topology.batch_arithmetic(size)
    yield Line(f'{plan.view.where}: {what}, {plan.strategy}', 'head')
    yield Grid(('table', '>rows', '>rows per host', '>max/mean', '>padded per host',
                *(f'>newest, {strategy}' for strategy in plan.strategies)),
               [_table_cells(table, plan) for table in plan.view.tables])
    yield Grid(('host', '>rows', '>bytes', '>padded'), list(_host_rows(plan)))
    yield Line(f'rows per host {extent(plan.rows).text(str)}; padded bytes '
               f'{extent(plan.padded).text(bytes_text)}')
    yield from unknown_slots(plan.view)
    if plan.stats is not None:
        yield from measured.blocks(plan.stats, plan.view)
    yield from (Line(str(problem), 'bad') for problem in problems)


def _table_cells(table: TableView, plan: _Plan) -> tuple[str, ...]:
    hosts = plan.topology.num_hosts
    rows = rows_extent(table, hosts)
    return (table.name, f'{table.rows:,}', f'{rows.most:,}' if rows.least == rows.most else
            f'{rows.least:,} to {rows.most:,}', f'{rows.imbalance:.2f}',
            bytes_text(rows.most * table.padded_bytes_per_row),
            *(f'{count} of {hosts}' for count in _newest(table, plan).values()))


def _newest(table: TableView, plan: _Plan) -> dict[str, int]:
    """How many hosts share the newest ids, by strategy."""
    return {strategy: newest_spread(table, strategy, plan.topology.num_hosts)
            for strategy in plan.strategies}


def _host_rows(plan: _Plan) -> Iterator[tuple[str, ...]]:
    """One row of text per host; only the first and last ones if there are many hosts."""
    hosts = plan.topology.num_hosts
    for host in range(hosts):
        if hosts > _ALL_UP_TO and _AT_EACH_END <= host < hosts - _AT_EACH_END:
            if host == _AT_EACH_END:
                yield ('...',) * 4
            continue
        yield (str(host), f'{plan.rows[host]:,}', bytes_text(plan.raw[host]),
               bytes_text(plan.padded[host]))


def _data(plan: _Plan) -> dict[str, Any]:
    hosts = plan.topology.num_hosts
    return {
        'where': plan.view.where, 'hosts': hosts, 'cores_per_host': plan.topology.cores_per_host,
        'strategy': plan.strategy, 'batch_size': plan.batch_size,
        'tables': [{'name': table.name, 'rows': table.rows,
                    'rows_per_host': rows_extent(table, hosts).data(),
                    'hosts_of_newest': _newest(table, plan)} for table in plan.view.tables],
        'rows_of_host': plan.rows, 'bytes_of_host': plan.raw,
        'padded_bytes_of_host': plan.padded, 'slots_unknown': plan.view.slots_unknown,
        'stats': plan.stats, 'findings': list(map(str, plan.problems()))}
