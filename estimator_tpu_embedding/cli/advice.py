"""Finds choices in a view of a config that are legal, but that the user may not mean (W4xx)."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.names import directory_doubts
from ..core.partition import Partition
from ..errors import Problem, quoted, shown
from .config_view import TableView, View

MAX_PADDING = 0.25
MIN_TAGS = 3
LARGE_TABLE = 1_000_000
NEWEST_SHARE = 100
"""The newest ids, for the question of who holds them, are 1 in this many."""


def advise(view: View) -> list[Problem]:
    """Returns all warnings about a config or a checkpoint, sorted by where they are."""
    found = [*_about_run(view), *(
        problem for table in view.tables for problem in _about_table(table, view.hosts))]
    return sorted(found, key=lambda problem: (problem.where, problem.code))


def newest_spread(table: TableView, strategy: str, hosts: int) -> int:
    """Returns how many hosts share the newest 1 % of the ids of a table."""
    if table.rows < 1:
        return 0
    partition = Partition(strategy=strategy, vocabulary_size=table.rows, num_hosts=hosts)
    return partition.hosts_of_newest(-(-table.rows // NEWEST_SHARE))


def _about_run(view: View) -> Iterator[Problem]:
    of_tag = [table.tag for table in view.tables if table.tag is not None]
    tags = set(of_tag)
    if len(tags) >= MIN_TAGS and len(of_tag) < 2 * len(tags):
        yield Problem('W422', 'learning rates', 'tables with different tags cannot be fused, and '
                      'nearly every table has its own',
                      f'{len(tags)} tags for {len(of_tag)} tables')
    if tags and tags != set(range(len(tags))):
        yield Problem('W423', 'learning rates', f'{len(tags)} tags must be 0 to {len(tags) - 1}',
                      f'the highest is {max(tags)}, the lowest {min(tags)}')
    yield from _about_profiles(str(view.settings.get('profile_data_directory', '')))
    alike: dict[str, list[str]] = {}
    for table in view.tables:
        alike.setdefault(table.name.casefold(), []).append(table.name)
    for names in alike.values():
        if len(set(names)) > 1:
            yield Problem('W412', f'table "{names[0]}"', 'names should differ in more than case',
                          quoted(names))
    large = [table for table in view.tables if table.rows >= LARGE_TABLE]
    if large and view.hosts > 1:
        largest = max(large, key=lambda table: table.rows)
        spread = newest_spread(largest, view.strategy, view.hosts)
        if spread <= view.hosts // 2:
            yield Problem('W440', 'sharding_strategy', f'ids that are near each other are on one '
                          f'host under {view.strategy}, so the newest may all be on a few',
                          f'the newest 1 % of table "{largest.name}" on {spread} of '
                          f'{view.hosts} hosts')


def _about_profiles(directory: str) -> Iterator[Problem]:
    doubts = ', '.join(directory_doubts(directory))
    if doubts:
        yield Problem('W441', 'profile_data_directory', 'it should be the plain path of a '
                      'directory', f'{doubts} in "{shown(directory)}"')


def _about_table(table: TableView, hosts: int) -> Iterator[Problem]:
    where = f'table "{table.name}"'
    waste = 1 - table.dimension / table.padded_dimension if table.padded_dimension else 0
    if waste > MAX_PADDING:
        yield Problem('W410', where, f'dimension {table.dimension} is padded to '
                      f'{table.padded_dimension}', f'{waste:.0%} of its memory as padding')
    if hosts > 1 and 1 <= table.rows <= hosts:
        yield Problem('W411', where, 'it should have more rows than there are hosts',
                      f'{table.rows} on {hosts} hosts')
    yield from _about_training(table, where)


def _about_training(table: TableView, where: str) -> Iterator[Problem]:
    settings = table.settings
    if table.learning_rate == 0 and table.optimizer is not None:
        yield Problem('W420', where, 'a learning rate of 0 freezes its rows')
    if settings.get('accumulate') is False:
        yield Problem('W425', where, 'without gradient accumulation a row is updated once for '
                      'each core that looks it up, so results depend on the number of cores')
    if settings.get('decay_times_rate') and not settings.get('decay'):
        yield Problem('W426', where, 'multiply_weight_decay_factor_by_learning_rate does nothing '
                      'without a weight_decay_factor')
    if settings.get('use_non_lazy_adam') and table.rows >= LARGE_TABLE:
        yield Problem('W427', where, 'non-lazy Adam reads and writes every row at every step',
                      f'{table.rows} rows')
    for name in ('clip_gradients', 'clip_weights'):
        limits = settings.get(name)
        if isinstance(limits, tuple) and _excludes_zero(*limits):
            yield Problem('W428', where, f'the bounds of {name} should have 0 between them',
                          str(list(limits)))
    if table.optimizer == 'ftrl' and table.dimension > 1:
        yield Problem('W429', where, 'the first update of FTRL erases initial embeddings that '
                      'are not zeros', f'dimension {table.dimension}')


def _excludes_zero(lower: object, upper: object) -> bool:
    return (isinstance(lower, float) and lower > 0) or (isinstance(upper, float) and upper < 0)
