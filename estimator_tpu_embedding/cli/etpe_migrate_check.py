"""Trains two jobs for some steps from the rows of one checkpoint, each in a process of its own.
Compares their tables, slots and other variables. If any differ, both train again for fewer steps,
and the first step is named after which they do.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from ..checkpoint.bundle import Bundle
from ..errors import CallError, counted
from ..migration import checkpoint_contents, to_tf2
from ..migration.checkpoint_contents import TF2
from ..migration.from_tf2 import Paths
from . import checkpoint_argument
from . import etpe_migrate_checkpoint as migration
from .report import Grid, Line, Report, as_command, as_lines, json_number

if TYPE_CHECKING:  # It needs NumPy.
    from ..migration.check_jobs import Agreement, Difference

_SIDE = 'py:module:object of the {} job: a side of estimator_tpu_embedding.migration, or a ' \
        'function that returns one'


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('a', metavar='A', help=_SIDE.format('old'))
    parser.add_argument('b', metavar='B', help=_SIDE.format('new'))
    parser.add_argument('--checkpoint', required=True, metavar='CKPT', help='of A: a model_dir, '
                        'or a checkpoint such as dir/model.ckpt-7')
    parser.add_argument('--checkpoint-b', metavar='CKPT', help='of B, which '
                        '"etpe migrate checkpoint" has made; B begins with that of A if left out')
    parser.add_argument('--steps', type=int, default=20, metavar='N', help='how many; 20')
    parser.add_argument('--tolerance', type=float, default=1e-5, metavar='T', help='the largest '
                        'difference that counts as equal; 1e-5')
    parser.add_argument('--hosts', type=int, metavar='H', help='emulated hosts of both')
    parser.add_argument('--cores', type=int, metavar='C', help='cores per host of both')
    parser.add_argument('--deadline', type=float, default=3600., metavar='SECONDS',
                        help='for each training; 3600')
    migration.add_paths(parser)
    migration.add_source_path(parser, 'A')
    checkpoint_argument.add_arguments(parser)
    as_command(parser, _checked)


def _checked(parsed: argparse.Namespace) -> Report:
    from ..migration.check_jobs import check
    given = checkpoint_argument.options(parsed)
    prefix, prefix_b = (checkpoint_argument.Stored(path, given).prefix for path in (
        parsed.checkpoint, parsed.checkpoint_b or parsed.checkpoint))
    path = parsed.object_path if parsed.source_path is None else parsed.source_path
    try:
        found = check(
            parsed.a, parsed.b, checkpoint=prefix, checkpoint_b=prefix_b, steps=parsed.steps,
            tolerance=parsed.tolerance, map=migration.read_map(parsed),
            paths=migration.paths(path, parsed.optimizer_path), paths_b=_paths_b(parsed, prefix_b),
            hosts=parsed.hosts, cores=parsed.cores, assume=parsed.assume, deadline=parsed.deadline)
    except CallError as error:  # Its notes are what a side printed.
        if sys.stderr is not None:
            sys.stderr.write('\n'.join(getattr(error, '__notes__', ())))
        raise
    return _report(parsed, prefix, prefix_b, found)


def _paths_b(parsed: argparse.Namespace, prefix: str) -> Paths:
    """Returns where B has its objects: as the user says, or as its checkpoint shows."""
    bundle = Bundle.open(prefix)
    shown = to_tf2.located(bundle, TF2) if checkpoint_contents.is_tf2(bundle) else {}
    path, optimizer_path = (
        shown.get(name) if getattr(parsed, name) is None else getattr(parsed, name)
        for name in ('object_path', 'optimizer_path'))
    return migration.paths(path, optimizer_path)


def _report(parsed: argparse.Namespace, checkpoint: str, checkpoint_b: str, found: Agreement
            ) -> Report:
    data = {
        'a': parsed.a, 'b': parsed.b, 'steps': parsed.steps, 'tolerance': parsed.tolerance,
        'checkpoint': checkpoint, 'checkpoint_b': checkpoint_b, 'equal': not found.differences,
        'differences': list(map(_as_data, found.differences)),
        'largest': found.largest and _as_data(found.largest),
        'compared': {**found.numbers, 'steps': found.steps}, 'remarks': list(found.remarks)}
    blocks: list[Line | Grid] = [*as_lines(found.remarks, 'warn')]
    blocks.append(Grid(('compared', '>numbers'), [
        (kind, f'{count:,}') for kind, count in found.numbers.items()]))
    if found.largest is not None:
        blocks.append(Line(f'largest difference within the tolerance: {found.largest}'))
    if found.differences:
        blocks += [Line(f'different: {one}', 'bad') for one in found.differences]
        return Report(blocks, data, status=1)
    exactly = 'bit for bit' if found.largest is None else f'up to {parsed.tolerance:g}'
    blocks.append(Line(f'the same job: {counted(found.steps, "step")} equal {exactly}', 'good'))
    return Report(blocks, data)


def _as_data(difference: Difference) -> dict[str, Any]:
    return {name: json_number(value) if isinstance(value, float) else value
            for name, value in dataclasses.asdict(difference).items()}
