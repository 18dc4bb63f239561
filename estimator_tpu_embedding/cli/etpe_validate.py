"""Finds errors in a config, and warns of choices that are legal but doubtful. A config holds less
than a job, so training may refuse a config that passes. The exit status is 1 if there are errors;
warnings count with --strict only.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ..core.names import directory_doubts
from ..core.partition import Partition
from ..errors import ConfigError, Problem, UnsupportedError, counted, quoted, shown
from ..proto.codec import config_to_plan
from ..proto.reading import Source
from . import codes
from . import input_argument as inputs
from .config_view import TableView, View, view_of
from .report import Line, Report, as_command, printable

_MOST_OBJECT, _MOST_GOT = 100, 160

_MAX_PADDING = 0.25
_MIN_TAGS = 3
_LARGE_TABLE = 1_000_000
_NEWEST_SHARE = 100
"""The newest ids, for the question of who holds them, are 1 in this many."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('--strict', action='store_true', help='warnings count for the exit '
                        'status')
    codes.add_selection(parser)
    as_command(parser, _report, 'INPUT')


def _report(parsed: argparse.Namespace) -> Report:
    sources = inputs.load(parsed.input)
    found = [(source.where, problem) for source in sources for problem in _problems_of(source)
             if problem.code.startswith(parsed.select)
             and not problem.code.startswith(parsed.ignore)]
    errors = sum(problem.code[0] == 'E' for _, problem in found)
    warnings = len(found) - errors
    lines = [Line(_line(where, problem), 'bad' if problem.code[0] == 'E' else 'warn')
             for where, problem in found]
    lines.append(Line(f'{errors} errors, {warnings} warnings in {counted(len(sources), "config")}',
                      '' if found else 'good'))
    return Report(
        lines, {'findings': [
            {'where': where, 'code': problem.code, 'severity': codes.SEVERITIES[problem.code[0]],
             'object': problem.where, 'rule': problem.rule, 'got': problem.got,
             'remedy': problem.remedy} for where, problem in found],
            'errors': errors, 'warnings': warnings},
        status=1 if errors or (parsed.strict and warnings) else 0)


def _problems_of(source: Source) -> list[Problem]:
    """The errors of an input, then its warnings."""
    try:
        config_to_plan(source.config)
        errors: tuple[Problem, ...] = ()
    except (ConfigError, UnsupportedError) as error:
        errors = error.problems
    return [*errors, *advise(view_of(source))]


def _line(where: str, problem: Problem) -> str:
    shown = Problem(problem.code, printable(problem.where, _MOST_OBJECT), problem.rule,
                    printable(problem.got, _MOST_GOT), problem.remedy)
    return f'{where}: {shown}  (etpe explain {problem.code})'


def advise(view: View) -> list[Problem]:
    """Returns all warnings (W4xx) about a config or a checkpoint, sorted by where they are."""
    found = [*_about_run(view), *(
        problem for table in view.tables for problem in _about_table(table, view.hosts))]
    return sorted(found, key=lambda problem: (problem.where, problem.code))


def _about_run(view: View) -> Iterator[Problem]:
    of_tag = [table.tag for table in view.tables if table.tag is not None]
    tags = set(of_tag)
    if len(tags) >= _MIN_TAGS and len(of_tag) < 2 * len(tags):
        yield Problem('W422', 'learning rates', 'tables with different tags cannot be fused, and '
                      'nearly every table has its own',
                      f'{len(tags)} tags for {len(of_tag)} tables')
    if tags and tags != set(range(len(tags))):
        yield Problem('W423', 'learning rates', f'{len(tags)} tags must be 0 to {len(tags) - 1}',
                      f'the highest is {max(tags)}, the lowest {min(tags)}')
    directory = str(view.settings.get('profile_data_directory', ''))
    if doubts := ', '.join(directory_doubts(directory)):
        yield Problem('W441', 'profile_data_directory', 'it should be the plain path of a '
                      'directory', f'{doubts} in "{shown(directory)}"')
    alike: dict[str, list[str]] = {}
    for table in view.tables:
        alike.setdefault(table.name.casefold(), []).append(table.name)
    for names in alike.values():
        if len(set(names)) > 1:
            yield Problem('W412', f'table "{names[0]}"', 'names should differ in more than case',
                          quoted(names))
    large = [table for table in view.tables if table.rows >= _LARGE_TABLE]
    if large and view.hosts > 1:
        largest = max(large, key=lambda table: table.rows)
        spread = Partition(
            strategy=view.strategy, vocabulary_size=largest.rows, num_hosts=view.hosts
            ).hosts_of_newest(-(-largest.rows // _NEWEST_SHARE))
        if spread <= view.hosts // 2:
            yield Problem('W440', 'sharding_strategy', f'ids that are near each other are on one '
                          f'host under {view.strategy}, so the newest may all be on a few',
                          f'the newest 1 % of table "{largest.name}" on {spread} of '
                          f'{view.hosts} hosts')


def _about_table(table: TableView, hosts: int) -> Iterator[Problem]:
    where = f'table "{table.name}"'
    waste = 1 - table.dimension / table.padded_dimension if table.padded_dimension else 0
    if waste > _MAX_PADDING:
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
    if settings.get('use_non_lazy_adam') and table.rows >= _LARGE_TABLE:
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
