"""`etpe diff`: prints how two configs differ, and whether a checkpoint of the first fits the
second.

JSON:

| member | content |
|---|---|
| `a`, `b` | where the configs are |
| `differences` | a list of objects, see below |
| `breaking`, `safe` | numbers of differences |

A difference has `kind` (`changed`, `added`, `removed` or `renamed`), `where` (a table, or `""` for
the run), `what`, `before`, `after`, `breaking` and `why`.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import Any

from ..errors import ConfigError, Problem, UnreadableConfigError, quoted
from ..proto.codec import Config
from ..proto.reading import Source
from . import inputs
from .config_differences import Difference, differences
from .config_view import view_of
from .inspect import value_text
from .report import Grid, Line, Report, as_command

_SIGNS = {'changed': '~', 'added': '+', 'removed': '-', 'renamed': '>'}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Compares the meaning of two configs; of two checkpoints without one, their rows, as etpe '
        'checkpoint diff does. With a BREAKING difference a job of B cannot restore a checkpoint '
        'of A. The exit status is 1 if they differ.')
    as_command(parser, _report, 'A', 'B')


def _report(parsed: argparse.Namespace) -> Report:
    try:
        a, b = (_one(inputs.load(path)) for path in (parsed.a, parsed.b))
    except UnreadableConfigError as error:
        if error.code != inputs.NO_CONFIG or not all(
                map(inputs.may_be_checkpoint, (parsed.a, parsed.b))):
            raise
        from .stored import diff
        return diff.of_two(parsed.a, parsed.b)
    found = differences(view_of(a), view_of(b)) or _rest(a, b)
    breaking = sum(one.breaking for one in found)
    rows = [(_SIGNS[one.kind], f'table {one.where}' if one.where else 'run', one.what, _change(one),
             'BREAKING' if one.breaking else 'safe', one.why) for one in found]
    grid = Grid(('', 'where', 'what', 'change', 'restore', 'why'), rows,
                ['bad' if one.breaking else '' for one in found])
    summary = f'{breaking} breaking, {len(found) - breaking} safe' if found else 'no differences'
    return Report(
        [*([grid] if rows else []), Line(summary, '' if found else 'good')],
        {'a': a.where, 'b': b.where, 'differences': [dataclasses.asdict(one) for one in found],
         'breaking': breaking, 'safe': len(found) - breaking}, status=1 if found else 0)


def _one(found: Sequence[Source]) -> Source:
    if len(found) > 1:
        raise ConfigError(Problem(
            'E478', 'diff', 'each side must hold one config',
            quoted(one.where for one in found[:5]), 'Name the files to compare.'))
    return found[0]


def _rest(a: Source, b: Source) -> list[Difference]:
    """Says that the bytes differ where nothing else does."""
    contents = [_renumbered(one.config).SerializeToString(deterministic=True)  # Equal for NaN.
                for one in (a, b)]
    if len(set(contents)) < 2:
        return []
    return [Difference(kind='changed', where='', what='other', why='an order, or fields that this '
                       'tool does not know')]


def _renumbered(config: Config) -> Config:
    """Returns a copy whose tags are 0, 1, ... in the order in which its tables first name them."""
    copy = Config()
    copy.CopyFrom(config)
    tags: dict[int, int] = {}
    for table in copy.table_descriptor:
        rate = table.optimization_parameters.learning_rate
        if rate.HasField('dynamic'):
            rate.dynamic.tag = tags.setdefault(rate.dynamic.tag, len(tags))
    return copy


def _change(one: Difference) -> str:
    if one.before is one.after is None:
        return ''
    if one.kind == 'added':
        return _side(one.after)
    return _side(one.before) if one.kind == 'removed' else (
        f'{_side(one.before)} -> {_side(one.after)}')


def _side(value: Any) -> str:
    if value is None:
        return 'unset'
    if isinstance(value, tuple) and all(isinstance(one, str) for one in value):
        return ', '.join(value) or 'none'
    return f'{value:,}' if type(value) is int else value_text(value)
