"""`etpe plan --stats DIR`: shows the load of each host, computed from measured look-ups.

JSON: `"stats"` of a plan:

| member | content |
|---|---|
| `directory` | place of the profiles |
| `tables` | one object per table with a profile, see below |
| `without_profile` | names of the other tables |
| `unused` | profiles of no table: `table`, `rows`, `dimension` |
| `bytes_per_example_of_host` | looked-up bytes, by strategy, a list by host |
| `imbalance` | most over mean of these, by strategy |
| `recommended` | a strategy, or `null` |

A table:

| member | content |
|---|---|
| `name` | of the table |
| `first_step`, `last_step`, `steps`, `sampled_steps` | the steps that were measured |
| `run` | the measured run: `hosts`, `cores_per_host`, `batch_size`, `strategy` |
| `ids_per_example` | mean |
| `features` | objects with `name`, `ids_per_example`, `most` and `histogram` |
| `unique_share` | distinct ids of a step over all of its ids |
| `distinct_ids` | over all steps |
| `undercount` | see below |
| `heaviest` | objects with `id`, `count` and `share` |
| `load` | by strategy, see below |

`histogram` counts the examples with 0, 1, 2 to 3, 4 to 7, ... ids. If `undercount` is 0,
`distinct_ids` and the counts of `heaviest` are exact. Otherwise `distinct_ids` is an estimate with
a standard error of 2.3 %, and counts may be too low by up to `undercount`.

A `load` has `imbalance`, which is most over mean of the ids per host, and `unique_imbalance`, the
same of distinct ids. `unique_imbalance` is `null` if another number of hosts was measured.
`uncertain` is the part of the ids whose host is estimated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..checkpoint import profile_files
from ..core.partition import STRATEGIES
from ..core.plan import BYTES_PER_ELEMENT
from ..core.table_profile import TableProfile
from ..errors import quoted
from .config_view import TableView, View
from .report import Grid, Line
from .sizes_by_host import share_text

MIN_GAIN = 0.1
"""A strategy is recommended if the fullest host has so much less than under the other."""

_MOST_NAMES, _HEAVIEST = 5, 10


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """The ids of one table on each host, under one strategy.

    Attributes:
      of_host: expected number of ids, by host.
      uncertain: number of ids whose host is estimated; no host is further off than that.
    """

    of_host: Sequence[float]
    uncertain: int

    @property
    def text(self) -> str:
        """Most over mean, marked if it is an estimate."""
        return f'{"~" if self.uncertain else ""}{imbalance(self.of_host):.2f}'


Entry = tuple[TableView, TableProfile, dict[str, Load]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The profiles of a directory that belong to the tables of one config.

    Attributes:
      directory: place of the profiles.
      tables: each with its profile and, by strategy, its load.
      bytes_of_host: bytes of the rows that an example looks up, by strategy and planned host;
        repeated ids count too.
      missing: names of tables without a profile.
      unused: profiles of no table of the config, and profiles that are not the best of their
        table.
    """

    directory: str
    tables: Sequence[Entry]
    bytes_of_host: dict[str, list[float]]
    missing: Sequence[str]
    unused: Sequence[TableProfile]

    def imbalances(self) -> dict[str, float]:
        """Returns most over mean of `bytes_of_host`, by strategy."""
        return {strategy: imbalance(load) for strategy, load in self.bytes_of_host.items()}

    def recommended(self) -> str | None:
        """Returns the strategy that balances better, or `None` if the difference is small."""
        found = self.imbalances()
        best, worst = min(found, key=found.__getitem__), max(found.values())
        return best if found[best] < worst * (1 - MIN_GAIN) else None


def imbalance(load: Sequence[float]) -> float:
    """Returns most over mean; 1 is even.

    >>> imbalance([3, 1])
    1.5
    """
    total = sum(load)
    return max(load) * len(load) / total if total else 1.0


def read(directory: str, views: Iterable[View]) -> list[TableProfile]:
    """Returns the profiles in a directory. Profiles of tables that no view has keep only their
    subject.

    Raises:
      UnreadableConfigError: if one of them cannot be read.
    """
    names = {table.name for view in views for table in view.tables}
    return [profile if profile.subject.table in names else dataclasses.replace(
        profile, heavy={}, ranges=(), remainders=(), loads={}, features=())
        for profile in profile_files.read_all(directory)]


def stats_of(view: View, hosts: int, directory: str, found: Sequence[TableProfile]) -> Stats:
    """Returns the measured look-ups of the tables of a config, for so many hosts.

    A table may have several profiles. A profile of the planned number of hosts comes first, then
    the one with the most steps.
    """
    best: dict[str, TableProfile] = {}
    by_name = {table.name: table for table in view.tables}
    for profile in sorted(found, key=lambda one: (one.subject.topology.num_hosts == hosts,
                                                  one.sampled_steps)):
        table = by_name.get(profile.subject.table)
        if table is not None and _is_of(profile, table, view.hosts):
            best[table.name] = profile
    used = {id(profile) for profile in best.values()}
    tables = [(table, best[table.name], {
        strategy: Load(*best[table.name].load(strategy, hosts)) for strategy in STRATEGIES})
        for table in view.tables if table.name in best]
    return Stats(
        directory=directory, tables=tables,
        bytes_of_host={strategy: _bytes_of_host(tables, strategy, hosts)
                       for strategy in STRATEGIES},
        missing=[table.name for table in view.tables if table.name not in best],
        unused=[profile for profile in found if id(profile) not in used])


def _bytes_of_host(tables: Sequence[Entry], strategy: str, hosts: int) -> list[float]:
    total = [0.0] * hosts
    for table, profile, loads in tables:
        weight = BYTES_PER_ELEMENT * table.padded_dimension / max(profile.examples, 1)
        for host, ids in enumerate(loads[strategy].of_host):
            total[host] += ids * weight
    return total


def _is_of(profile: TableProfile, table: TableView, hosts: int) -> bool:
    """Whether a profile belongs to a table. A config raises the rows to its number of hosts."""
    rows = profile.subject.vocabulary_size
    return table.rows in (rows, max(rows, hosts)) and table.dimension == profile.subject.dimension


def blocks(stats: Stats) -> Iterator[Line | Grid]:
    """Returns the report for people."""
    yield Line(f'look-ups measured, from {stats.directory}:')
    if stats.tables:
        yield Grid(('table', '>steps', '>ids per example', '>at most', '>distinct in a step',
                    '>rows seen', '>heaviest row', *(f'>max/mean, {strategy}'
                                                     for strategy in STRATEGIES)),
                   [_cells(*entry) for entry in stats.tables])
        of_all = ', '.join(f'{strategy} {value:.2f}'
                           for strategy, value in stats.imbalances().items())
        advice = stats.recommended()
        yield Line(f'bytes of looked-up rows by host, max/mean: {of_all}' + (
            f'; {advice} balances better' if advice else ''))
    if stats.missing:
        yield Line(f'without a profile: {_names(stats.missing)}')
    if stats.unused:
        yield Line('profiles not used: ' + _names(
            f'{one.subject.table}, {one.subject.vocabulary_size:,} x {one.subject.dimension}'
            for one in stats.unused))


def _names(names: Iterable[str]) -> str:
    every = list(names)
    more = f' and {len(every) - _MOST_NAMES} more' if len(every) > _MOST_NAMES else ''
    return quoted(every[:_MOST_NAMES]) + more


def _cells(table: TableView, profile: TableProfile, loads: dict[str, Load]) -> tuple[str, ...]:
    heaviest = profile.heaviest(1)
    mark = '~' if profile.undercount else ''
    return (table.name, f'{profile.sampled_steps:,} of {profile.steps:,}',
            f'{_per_example(profile, profile.ids):.2f}',
            f'{max((use.most for use in profile.features), default=0):,}',
            share_text(profile.unique_ids, profile.ids or 1),
            mark + share_text(profile.distinct(), table.rows or 1),
            f'{heaviest[0][0]}: {share_text(heaviest[0][1], profile.ids)}' if heaviest else 'none',
            *(loads[strategy].text for strategy in STRATEGIES))


def _per_example(profile: TableProfile, ids: int) -> float:
    return ids / profile.examples if profile.examples else 0.0


def data(stats: Stats) -> dict[str, Any]:
    """Returns the report for programs."""
    return {
        'directory': stats.directory, 'tables': [_data(*entry) for entry in stats.tables],
        'without_profile': list(stats.missing),
        'unused': [{'table': one.subject.table, 'rows': one.subject.vocabulary_size,
                    'dimension': one.subject.dimension} for one in stats.unused],
        'bytes_per_example_of_host': {
            strategy: [round(one, 6) for one in load]
            for strategy, load in stats.bytes_of_host.items()},
        'imbalance': {strategy: round(value, 6) for strategy, value in stats.imbalances().items()},
        'recommended': stats.recommended()}


def _data(table: TableView, profile: TableProfile, loads: dict[str, Load]) -> dict[str, Any]:
    subject, ids = profile.subject, profile.ids
    return {
        'name': table.name, 'first_step': profile.first_step, 'last_step': profile.last_step,
        'steps': profile.steps, 'sampled_steps': profile.sampled_steps,
        'run': {'hosts': subject.topology.num_hosts,
                'cores_per_host': subject.topology.cores_per_host,
                'batch_size': subject.batch_size, 'strategy': subject.strategy},
        'ids_per_example': round(_per_example(profile, ids), 6),
        'features': [{'name': name, 'ids_per_example': round(_per_example(profile, use.ids), 6),
                      'most': use.most, 'histogram': use.histogram}
                     for (name, _), use in zip(subject.features, profile.features)],
        'unique_share': round(profile.unique_ids / (ids or 1), 6),
        'distinct_ids': profile.distinct(), 'undercount': profile.undercount,
        'heaviest': [{'id': id, 'count': count, 'share': round(count / ids, 6)}
                     for id, count in profile.heaviest(_HEAVIEST)],
        'load': {strategy: {
            'imbalance': round(imbalance(load.of_host), 6),
            'uncertain': round(load.uncertain / (ids or 1), 6),
            'unique_imbalance': round(imbalance(profile.loads[strategy].unique_ids), 6)
            if len(load.of_host) == subject.topology.num_hosts else None}
            for strategy, load in loads.items()}}
