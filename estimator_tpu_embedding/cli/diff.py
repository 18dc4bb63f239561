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

from ..errors import ConfigError, Problem, quoted
from ..proto.codec import Config
from . import inputs
from .config_differences import Difference, differences
from .config_view import view_of
from .inputs import Input
from .inspect import value_text
from .report import Grid, Line, Report, as_command

_SIGNS = {'changed': '~', 'added': '+', 'removed': '-', 'renamed': '>'}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Compares the meaning of two configs, or of two checkpoints. With a BREAKING difference '
        'a job of B cannot restore a checkpoint of A. The exit status is 1 if they differ.')
    as_command(parser, _report, 'A', 'B')
    parser.add_argument('--only', choices=['breaking'], help='leave out safe differences')


def _report(parsed: argparse.Namespace) -> Report:
    a, b = _pair(inputs.load(parsed.a), inputs.load(parsed.b))
    found = list(differences(view_of(a), view_of(b))) or _rest(a, b)
    shown = [one for one in found if one.breaking or parsed.only is None]
    breaking = sum(one.breaking for one in shown)
    rows = [(_SIGNS[one.kind], f'table {one.where}' if one.where else 'run', one.what, _change(one),
             'BREAKING' if one.breaking else 'safe', one.why) for one in shown]
    grid = Grid(('', 'where', 'what', 'change', 'restore', 'why'), rows,
                ['bad' if one.breaking else '' for one in shown])
    summary = f'{breaking} breaking, {len(shown) - breaking} safe' if shown else (
        'no differences' if parsed.only is None else 'no breaking differences')
    return Report(
        [*([grid] if rows else []), Line(summary, '' if shown else 'good')],
        {'a': a.where, 'b': b.where, 'differences': [dataclasses.asdict(one) for one in shown],
         'breaking': breaking, 'safe': len(shown) - breaking}, status=1 if shown else 0)


def _pair(a: Sequence[Input], b: Sequence[Input]) -> tuple[Input, Input]:
    """One input of each side, both of one kind. A config comes first where a model_dir has both
    kinds.
    """
    for kind in ('config', 'manifest'):
        of_a, of_b = ([one for one in side if getattr(one, kind) is not None] for side in (a, b))
        if len(of_a) == len(of_b) == 1:
            return of_a[0], of_b[0]
    raise ConfigError(Problem(
        'E478', 'diff', 'each side must hold one config, or each one checkpoint',
        f'{quoted(one.where for one in a[:5])} and {quoted(one.where for one in b[:5])}',
        'Name the files to compare. A config names tables and a checkpoint variables.'))


def _rest(a: Input, b: Input) -> list[Difference]:
    """Says that the bytes differ where nothing else does."""
    contents = [_renumbered(one.config).SerializeToString(deterministic=True)  # Equal for NaN.
                for one in (a, b) if one.config is not None]
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
