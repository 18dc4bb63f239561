"""`etpe migrate check`: trains two jobs from the same rows, and compares what they have saved.

The report in JSON has these fields:

- `a`, `b`, `steps`, `tolerance`: as given.
- `checkpoint`, `checkpoint_b`: the prefixes from which the sides trained; of a checkpoint that the
  command migrated, the second is its name alone.
- `equal`: whether all differences are within the tolerance.
- `differences`: the tensors with others, after the first step after which there are any.
- `largest`: the one of the rest with the largest difference; `null` if they are equal bit for bit.
- `compared`: how many numbers, by kind, and `steps`, after how many steps.
- `remarks`: texts about what was not compared, and about rows that hardly move.

A difference has `step`, `kind`, `name`, `rows`, `most`, `row`, `column`, and the values `a` and
`b`. Numbers that are not finite are texts.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from ..errors import CallError, ConfigError, Problem, counted
from . import checkpoint_argument
from . import etpe_migrate_checkpoint as migration
from .report import Grid, Line, Report, as_command, json_number

if TYPE_CHECKING:  # It needs NumPy.
    from ..migration.check_jobs import Agreement, Difference

_SIDE = 'py:module:object of the {} job: a side of estimator_tpu_embedding.migration, or a ' \
        'function that returns one'


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Trains two jobs for some steps from the rows of one checkpoint, each in a process of its '
        'own. Compares their tables, slots and other variables. If any differ, both train again '
        'for fewer steps, and the first step is named after which they do.')
    parser.add_argument('a', metavar='A', help=_SIDE.format('old'))
    parser.add_argument('b', metavar='B', help=_SIDE.format('new'))
    parser.add_argument('--checkpoint', required=True, metavar='CKPT', help='of A: a model_dir, '
                        'or a checkpoint such as dir/model.ckpt-7')
    parser.add_argument('--checkpoint-b', metavar='CKPT', help='of B, if it is migrated already; '
                        '--to migrates that of A instead; with neither, B begins with that of A')
    parser.add_argument('--steps', type=int, default=20, metavar='N', help='how many; 20')
    parser.add_argument('--tolerance', type=float, default=1e-5, metavar='T', help='the largest '
                        'difference that counts as equal; 1e-5')
    parser.add_argument('--hosts', type=int, metavar='H', help='emulated hosts of both')
    parser.add_argument('--cores', type=int, metavar='C', help='cores per host of both')
    parser.add_argument('--deadline', type=float, default=3600., metavar='SECONDS',
                        help='for each training; 3600')
    migration.add_choices(parser, needs_target=False)
    checkpoint_argument.add_arguments(parser)
    as_command(parser, _checked)


def _checked(parsed: argparse.Namespace) -> Report:
    from ..migration.check_jobs import check
    given = checkpoint_argument.options(parsed)
    if parsed.to is not None and parsed.checkpoint_b is not None:
        raise ConfigError(Problem(
            'E681', '--to', 'there must be nothing to migrate where --checkpoint-b is given',
            parsed.to, 'Leave one of the two out.'))
    prefix = checkpoint_argument.chosen(parsed.checkpoint, given).prefix
    with tempfile.TemporaryDirectory(prefix='etpe-migrated-') as folder:
        of_b = parsed.checkpoint_b
        paths = migration.paths(
            argparse.Namespace(**{**vars(parsed), 'source_path': None}))
        if parsed.to is not None:
            from ..migration import from_tf2, migrate_checkpoint, moves
            made = moves.plan(*migration.read(parsed, prefix, given))
            of_b = migrate_checkpoint.carry_out(made, folder).prefix
            paths = from_tf2.Paths(made.target.object_path, made.target.optimizer_path)
        elif of_b is not None:
            of_b = checkpoint_argument.chosen(of_b, given).prefix
        try:
            found = check(
                parsed.a, parsed.b, checkpoint=prefix, checkpoint_b=of_b, steps=parsed.steps,
                tolerance=parsed.tolerance, map=migration.read_map(parsed), paths_b=paths,
                paths=migration.paths(parsed), hosts=parsed.hosts, cores=parsed.cores,
                assume=parsed.assume, deadline=parsed.deadline)
        except CallError as error:  # Its notes are what a side printed.
            if sys.stderr is not None:
                sys.stderr.write('\n'.join(getattr(error, '__notes__', ())))
            raise
    shown_b = of_b or prefix if parsed.to is None else os.path.basename(of_b)
    return _report(parsed, prefix, shown_b, found)


def _report(parsed: argparse.Namespace, checkpoint: str, checkpoint_b: str, found: Agreement
            ) -> Report:
    data = {
        'a': parsed.a, 'b': parsed.b, 'steps': parsed.steps, 'tolerance': parsed.tolerance,
        'checkpoint': checkpoint, 'checkpoint_b': checkpoint_b, 'equal': not found.differences,
        'differences': list(map(_as_data, found.differences)),
        'largest': found.largest and _as_data(found.largest),
        'compared': {**found.numbers, 'steps': found.steps}, 'remarks': list(found.remarks)}
    blocks: list[Line | Grid] = [Line(remark, 'warn') for remark in found.remarks]
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
