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
| `features` | objects with `name` and `ids_per_example` |
| `load` | by strategy, see below |

A `load` has `imbalance`, which is most over mean of the ids per host. `uncertain` is the part of
the ids whose host is estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..core.partition import STRATEGIES
from ..core.plan import BYTES_PER_ELEMENT
from ..core.table_profile import TableProfile
from .config_view import TableView, View, imbalance
from .report import Grid, Line, names_text

MIN_GAIN = 0.1
"""A strategy is recommended if the fullest host has so much less than under the other."""

Loads = dict[str, tuple[list[float], int]]
"""By strategy what `TableProfile.load` gives."""


def data(view: View, hosts: int, directory: str, found: Sequence[TableProfile]) -> dict[str, Any]:
    """Returns the measured look-ups of the tables of a config, for so many hosts.

    A table may have several profiles. A profile of the planned number of hosts comes first, then
    the one with the most steps.
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
    used = {id(profile) for profile in best.values()}
    return {
        'directory': directory, 'tables': tables,
        'without_profile': [table.name for table in view.tables if table.name not in best],
        'unused': [{'table': one.subject.table, 'rows': one.subject.vocabulary_size,
                    'dimension': one.subject.dimension} for one in found if id(one) not in used],
        'bytes_per_example_of_host': {
            strategy: [round(one, 6) for one in load] for strategy, load in of_host.items()},
        'imbalance': {strategy: round(value, 6) for strategy, value in uneven.items()},
        'recommended': better if uneven[better] < max(uneven.values()) * (1 - MIN_GAIN) else None}


def _is_of(profile: TableProfile, table: TableView, hosts: int) -> bool:
    """Whether a profile belongs to a table. A config raises the rows to its number of hosts."""
    rows = profile.subject.vocabulary_size
    return table.rows in (rows, max(rows, hosts)) and table.dimension == profile.subject.dimension


def _table(profile: TableProfile, loads: Loads) -> dict[str, Any]:
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


def blocks(stats: dict[str, Any]) -> Iterator[Line | Grid]:
    """Returns the report for people, from that for programs."""
    yield Line(f'look-ups measured, from {stats["directory"]}:')
    if stats['tables']:
        head = 'table', '>steps', '>ids per example', *(f'>max/mean, {one}' for one in STRATEGIES)
        yield Grid(head, list(map(_cells, stats['tables'])))
        advice = stats['recommended']
        yield Line('bytes of looked-up rows by host, max/mean: ' + ', '.join(
            f'{strategy} {value:.2f}' for strategy, value in stats['imbalance'].items()) + (
            f'; {advice} balances better' if advice else ''))
    if stats['without_profile']:
        yield Line(f'without a profile: {names_text(stats["without_profile"])}')
    if stats['unused']:
        yield Line('profiles not used: ' + names_text(
            f'{one["table"]}, {one["rows"]:,} x {one["dimension"]}' for one in stats['unused']))


def _cells(one: dict[str, Any]) -> tuple[str, ...]:
    return (one['name'], f'{one["sampled_steps"]:,} of {one["steps"]:,}',
            f'{one["ids_per_example"]:.2f}',
            *(f'{"~" if load["uncertain"] else ""}{load["imbalance"]:.2f}'
              for load in one['load'].values()))
