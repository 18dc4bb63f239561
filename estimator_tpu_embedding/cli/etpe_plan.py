"""Shows the rows and bytes of each host. What is not given is that of the config; the global batch
stays. Tables of a config with fewer rows than hosts get a row for each, as in the config that
TensorFlow writes for that many hosts. The exit status is 1 if the batch cannot be split.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..checkpoint import profile_files
from ..core.partition import STRATEGIES, Partition
from ..core.plan import BYTES_PER_ELEMENT
from ..core.specs import Topology
from ..core.table_profile import TableProfile
from ..errors import ConfigError, Problem, bytes_text
from . import input_argument as inputs
from .config_view import TableView, View, view_of
from .etpe_size import unknown_slots
from .report import Grid, Line, Report, as_command, names_text

_ALL_UP_TO, _AT_EACH_END = 8, 3

_MIN_GAIN = 0.1
"""A strategy is recommended if the fullest host has so much less than under the other."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('--hosts', type=int, metavar='H', help='number of hosts')
    parser.add_argument('--cores', type=int, metavar='C', help='cores per host')
    parser.add_argument('--strategy', choices=STRATEGIES, help='how rows are spread over hosts')
    parser.add_argument('--stats', metavar='DIR', help='the profile_data_directory of a job: how '
                        'its look-ups would be shared by these hosts, under div and under mod; '
                        'repeated ids count, "~" marks estimates')
    as_command(parser, _report, 'INPUT')


def _report(parsed: argparse.Namespace) -> Report:
    views = [view_of(source) for source in inputs.load(parsed.input)]
    profiles = None if parsed.stats is None else list(profile_files.read_all(parsed.stats))
    plans = [_planned(view, parsed, profiles) for view in views]
    return Report([block for _, blocks in plans for block in blocks],
                  {'plans': [data for data, _ in plans]},
                  status=int(any(data['findings'] for data, _ in plans)))


def _planned(view: View, parsed: argparse.Namespace, profiles: Sequence[TableProfile] | None
             ) -> tuple[dict[str, Any], list[Line | Grid]]:
    """Returns the reports about one config, for programs and for people."""
    topology = _topology(view, parsed)
    hosts = topology.num_hosts
    stats = None if profiles is None else measured(view, hosts, parsed.stats, profiles)
    tables = [_raised(table, hosts) for table in view.tables]
    strategy = parsed.strategy or view.strategy
    size = view.batch_size_per_core * view.cores if view.batch_size_per_core else 0
    problem = topology.batch_problem('batch size', size) if size else None
    rows, raw, padded = (per_host(tables, hosts, weigh) for weigh in (
        lambda table: 1, lambda table: table.bytes_per_row,
        lambda table: table.padded_bytes_per_row))
    what = topology.batch_arithmetic(size) if size and not problem else str(topology)
    blocks = [
        Line(f'{view.where}: {what}, {strategy}', 'head'),
        Grid(('table', '>rows', '>rows per host', '>padded per host'),
             [_cells(table, hosts) for table in tables]),
        Grid(('host', '>rows', '>bytes', '>padded'), list(_host_rows(rows, raw, padded))),
        Line(f'rows per host {_extent(rows, str)}; padded bytes {_extent(padded, bytes_text)}'),
        *unknown_slots(view), *(_blocks_of_stats(stats) if stats else ()),
        *([Line(str(problem), 'bad')] if problem else [])]
    return {
        'where': view.where, 'hosts': hosts, 'cores_per_host': topology.cores_per_host,
        'strategy': strategy, 'batch_size': size or None,
        'tables': [{'name': table.name, 'rows': table.rows,
                    'rows_per_host': rows_per_host(table, hosts)} for table in tables],
        'rows_of_host': rows, 'bytes_of_host': raw, 'padded_bytes_of_host': padded,
        'slots_unknown': view.slots_unknown, 'stats': stats,
        'findings': [str(problem)] if problem else []}, blocks


def _topology(view: View, parsed: argparse.Namespace) -> Topology:
    """Returns the topology of the arguments; what is not given is that of the config."""
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
    """TensorFlow raises a vocabulary in the config to the number of hosts: each then has a row."""
    return dataclasses.replace(table, rows=hosts) if 0 < table.rows < hosts else table


def _cells(table: TableView, hosts: int) -> tuple[str, ...]:
    least, most = rows_per_host(table, hosts).values()
    return (table.name, f'{table.rows:,}', f'{most:,}' if least == most else
            f'{least:,} to {most:,}', bytes_text(most * table.padded_bytes_per_row))


def imbalance(load: Sequence[float]) -> float:
    """Returns most over mean; 1 is even."""
    total = sum(load)
    return max(load) * len(load) / total if total else 1.0


def _extent(of_host: Sequence[int], show: Callable[[int], str]) -> str:
    return (f'{show(min(of_host))} to {show(max(of_host))}, max/mean '
            f'{imbalance(of_host):.2f}')


def rows_per_host(table: TableView, hosts: int) -> dict[str, int]:
    """Returns the fewest and the most rows of one table on a host: the same by `div` and `mod`."""
    partition = _partition(table, hosts)
    return {'min': partition.rows_on(hosts - 1), 'max': partition.rows_on(0)}


def _partition(table: TableView, hosts: int) -> Partition:
    return Partition(strategy=STRATEGIES[0], num_hosts=hosts, vocabulary_size=max(table.rows, 0))


def per_host(tables: Iterable[TableView], hosts: int, weigh: Callable[[TableView], int]
             ) -> list[int]:
    """Returns the weights of the rows of all tables on each host: the same by `div` and `mod`."""
    least, steps = 0, [0] * hosts
    for table in tables:
        partition, weight = _partition(table, hosts), weigh(table)
        least += partition.rows_on(hosts - 1) * weight
        steps[0] += weight  # The first `fuller_hosts` hosts hold a row more.
        steps[partition.fuller_hosts] -= weight
    return [least + more for more in itertools.accumulate(steps)]


def _host_rows(rows: list[int], raw: list[int], padded: list[int]) -> Iterator[tuple[str, ...]]:
    """One row of text per host; only the first and last ones if there are many hosts."""
    for host in range(len(rows)):
        if len(rows) > _ALL_UP_TO and _AT_EACH_END <= host < len(rows) - _AT_EACH_END:
            if host == _AT_EACH_END:
                yield ('...',) * 4
            continue
        yield str(host), f'{rows[host]:,}', bytes_text(raw[host]), bytes_text(padded[host])


def measured(view: View, hosts: int, directory: str, found: Sequence[TableProfile]
             ) -> dict[str, Any]:
    """Returns the measured look-ups of the tables of a config, for so many hosts.

    Of several profiles one of the planned number of hosts is taken, then that of the most steps.
    """
    best: dict[str, TableProfile] = {}
    by_name = {table.name: table for table in view.tables}
    for profile in sorted(found, key=lambda one: (one.subject.hosts == hosts, one.sampled_steps)):
        table = by_name.get(profile.subject.table)
        if table is not None and _is_of(profile, table, view.hosts):
            best[table.name] = profile
    tables, of_host = [], {strategy: [0.0] * hosts for strategy in STRATEGIES}
    for name, profile in sorted(best.items()):
        loads = {strategy: profile.load(strategy, hosts) for strategy in STRATEGIES}
        tables.append(_table(profile, loads))
        weight = BYTES_PER_ELEMENT * by_name[name].padded_dimension / max(profile.examples, 1)
        for strategy, (load, _) in loads.items():
            of_host[strategy] = [so_far + ids * weight
                                 for so_far, ids in zip(of_host[strategy], load)]
    uneven = {strategy: imbalance(load) for strategy, load in of_host.items()}
    better = min(uneven, key=uneven.__getitem__)
    return {
        'directory': directory, 'tables': tables,
        'without_profile': [table.name for table in view.tables if table.name not in best],
        'bytes_per_example_of_host': {
            strategy: [round(one, 6) for one in load] for strategy, load in of_host.items()},
        'imbalance': {strategy: round(value, 6) for strategy, value in uneven.items()},
        'recommended': better if uneven[better] < max(uneven.values()) * (1 - _MIN_GAIN) else None}


def _is_of(profile: TableProfile, table: TableView, hosts: int) -> bool:
    """Whether a profile belongs to a table. A config raises the rows to its number of hosts."""
    rows = profile.subject.vocabulary_size
    return table.rows in (rows, max(rows, hosts)) and table.dimension == profile.subject.dimension


def _table(profile: TableProfile, loads: dict[str, tuple[list[float], int]]) -> dict[str, Any]:
    subject, ids, examples = profile.subject, profile.ids or 1, profile.examples or 1
    return {
        'name': subject.table, 'first_step': profile.first_step, 'last_step': profile.last_step,
        'steps': profile.steps, 'sampled_steps': profile.sampled_steps,
        'run': {'hosts': subject.hosts, 'cores_per_host': subject.cores_per_host,
                'batch_size': subject.batch_size, 'strategy': subject.strategy},
        'ids_per_example': round(profile.ids / examples, 6),
        'features': [{'name': name, 'ids_per_example': round(count / examples, 6)}
                     for (name, _), count in zip(subject.features, profile.features)],
        'load': {strategy: {'imbalance': round(imbalance(load), 6),
                            'uncertain': round(uncertain / ids, 6)}
                 for strategy, (load, uncertain) in loads.items()}}


def _blocks_of_stats(stats: dict[str, Any]) -> Iterator[Line | Grid]:
    """Returns the report for people, from that for programs."""
    yield Line(f'look-ups measured, from {stats["directory"]}:')
    if stats['tables']:
        head = 'table', '>steps', '>ids per example', *(f'>max/mean, {one}' for one in STRATEGIES)
        yield Grid(head, list(map(_cells_of_stats, stats['tables'])))
        advice = stats['recommended']
        yield Line('bytes of looked-up rows by host, max/mean: ' + ', '.join(
            f'{strategy} {value:.2f}' for strategy, value in stats['imbalance'].items()) + (
            f'; {advice} balances better' if advice else ''))
    if stats['without_profile']:
        yield Line(f'without a profile: {names_text(stats["without_profile"])}')


def _cells_of_stats(one: dict[str, Any]) -> tuple[str, ...]:
    return (one['name'], f'{one["sampled_steps"]:,} of {one["steps"]:,}',
            f'{one["ids_per_example"]:.2f}',
            *(f'{"~" if load["uncertain"] else ""}{load["imbalance"]:.2f}'
              for load in one['load'].values()))
