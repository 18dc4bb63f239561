"""`etpe migrate checkpoint`: takes a checkpoint to the other API.

The report in JSON has these fields:

- `source`, `destination`: paths; the destination is the prefix of the new checkpoint.
- `to`: as given.
- `step`: of the new checkpoint.
- `moves`: objects with `from`, `to`, `kind` (a type), `shape` and `reordered`.
- `made`: names of variables that were computed, such as powers of Adam.
- `left_out`: objects with `name` and `why`.
- `bytes`: of the tensors that go along.
- `rows`: how many rows were compared afterwards; `null` for a dry run.
- `cleaned`: how many saves that did not end were removed from the destination.
- `notes`, `findings`: as in `etpe checkpoint show`.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

from ...checkpoint import file_names
from ...checkpoint.bundle import Bundle
from ...checkpoint.options import VERIFY, CheckpointOptions
from ...checkpoint.rotation import GONE, is_gone, rotated_away
from ...errors import CheckpointError, CorruptCheckpointError, Problem, bytes_text
from ...migration import contents, from_tf1, from_tf2, map_file
from ...migration.plan import Choices, Plan, plan
from ...migration.target import KERAS, KINDS, MIDLEVEL, TF1, TFRS, Target
from ..report import Grid, Line, Report
from ..stored import choice, options
from ..stored.texts import as_data, as_lines, count_text

HELP = 'take a checkpoint to TF2 or TFRS, or back, and compare every row'


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Writes the tables, slots, step and other variables of SRC as a program of another API '
        'restores them, into the directory DST, and compares all rows by their ids.')
    parser.add_argument('src', metavar='SRC', help='a model_dir, or a checkpoint such as '
                        'dir/model.ckpt-7 or dir/ckpt-7')
    parser.add_argument('dst', metavar='DST', help='a directory for the new checkpoint')
    configure_choices(parser, needs_target=True)
    parser.add_argument('--dry-run', action='store_true', help='only print the plan')
    parser.add_argument('--overwrite', action='store_true', help='replace a checkpoint of the '
                        'same name in DST')
    options.configure(parser)


def configure_choices(parser: argparse.ArgumentParser, *, needs_target: bool) -> None:
    """Adds the arguments that `planned` reads."""
    parser.add_argument('--to', required=needs_target, choices=KINDS, help='tf2: TPUEmbedding of '
                        'tf.tpu.experimental.embedding; tfrs: the layer of TFRS; tf1: TPUEstimator')
    _configure_paths(parser)
    parser.add_argument('--step', type=int, metavar='N', help='of a checkpoint that does not '
                        'say its step')
    parser.add_argument('--order', default='div', metavar='ORDER', help='"div", or "mod:H" for H '
                        'hosts: how --to tf1 orders rows')
    parser.add_argument('--drop-rest', action='store_true', help='leave out variables that '
                        'nothing names')
    parser.add_argument('--drop-slots', action='store_true', help='leave out slots that --to has '
                        'no place for')


def _configure_paths(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say where a program of TF2 has its objects."""
    parser.add_argument('--map', metavar='FILE', help='a text file with the new names of '
                        'variables: "etpe docs migrating"')
    parser.add_argument('--object-path', default='embedding', metavar='PATH', help='where the '
                        'checkpoint of TF2 has the TPUEmbedding, or the layer of TFRS; "embedding"')
    parser.add_argument('--source-path', metavar='PATH', help='the same of SRC, if it is another')
    parser.add_argument('--optimizer-path', default='optimizer', metavar='PATH', help='where it '
                        'has the Keras optimizer; "optimizer"')
    parser.add_argument('--slots', choices=(KERAS, MIDLEVEL), help='who makes the slots of '
                        'tables: keras (default of tfrs) or midlevel (default of tf2)')


def report(parsed: argparse.Namespace) -> Report:
    """Returns the report about a migration."""
    given = options.options(parsed)
    if parsed.dry_run:
        return _migrated(parsed, given, given)
    quick = dataclasses.replace(given, verify=VERIFY[1])
    try:
        return _migrated(parsed, quick, given)  # Its bytes are verified while they are copied.
    except CheckpointError as error:
        if not os.path.isdir(parsed.src) or not (
                isinstance(error, CorruptCheckpointError) or error.code == GONE):
            raise
    return _migrated(parsed, given, given)  # Another one may be whole.


def _migrated(parsed: argparse.Namespace, way: CheckpointOptions, given: CheckpointOptions
              ) -> Report:
    """Migrates the checkpoint that is chosen in one way, and verifies it as the user asks."""
    from ...checkpoint import recover
    chosen = choice.chosen(parsed.src, way)
    notes = [f'newer, but not whole: {name}' for name in chosen.newer]
    try:
        if parsed.dry_run:
            recover.verify(chosen.prefix, given)
        made = planned(parsed, chosen.prefix, given)
        return _report(parsed, made, notes, chosen.skipped,
                       functools.partial(recover.verify, chosen.prefix, given))
    except CorruptCheckpointError:
        if is_gone(chosen.prefix):
            raise rotated_away(chosen.prefix) from None
        raise


def planned(parsed: argparse.Namespace, prefix: str, given: CheckpointOptions) -> Plan:
    """Returns the plan for a checkpoint, by the arguments of the command."""
    map = map_file.read(parsed.map) if parsed.map else map_file.Map()
    target = _target(parsed)
    if contents.is_tf2(Bundle.open(prefix)):
        found = from_tf2.read(prefix, from_tf2.Paths(
            parsed.source_path or parsed.object_path, parsed.optimizer_path), map)
    else:
        found = from_tf1.read(prefix, given, map)
    return plan(found, target, Choices(
        map=map, drop_rest=parsed.drop_rest, drop_slots=parsed.drop_slots, step=parsed.step))


def _target(parsed: argparse.Namespace) -> Target:
    strategy, hosts = _order(parsed.order)
    return Target(
        kind=parsed.to, object_path=parsed.object_path.strip('/'),
        optimizer_path=parsed.optimizer_path.strip('/'),
        slots=parsed.slots or (KERAS if parsed.to == TFRS else MIDLEVEL),
        strategy=strategy, hosts=hosts)


def _order(text: str) -> tuple[str, int]:
    """Returns strategy and hosts of `--order`, which has the form of `--assume`."""
    order = CheckpointOptions(assume=text).assumed_order()
    assert order is not None
    return order


def _report(parsed: argparse.Namespace, made: Plan, notes: list[str],
            skipped: tuple[Problem, ...], verify: Callable[[], object]) -> Report:
    from ...migration import carry_out
    base = file_names.BASE if made.target.kind == TF1 else file_names.OBJECT_BASE
    prefix = os.path.join(parsed.dst, file_names.name_of(base, made.step))
    rows, cleaned = None, 0
    if parsed.dry_run:
        carry_out.check_destination(made, parsed.dst, prefix, parsed.overwrite)
    else:
        done = carry_out.carry_out(made, parsed.dst, overwrite=parsed.overwrite,
                                   verify=verify)
        rows, cleaned = done.rows, done.cleaned
    data: dict[str, Any] = {
        'source': made.contents.bundle.prefix, 'destination': prefix, 'to': parsed.to,
        'step': made.step, 'moves': [
            {'from': move.source, 'to': move.target, 'kind': move.tensor.kind,
             'shape': list(move.tensor.shape), 'reordered': move.is_reordered}
            for move in made.moves],
        'made': [one.target for one in made.made], 'left_out': [
            {'name': name, 'why': why} for name, why in made.left_out.items()],
        'bytes': made.bytes, 'rows': rows, 'cleaned': cleaned, 'notes': notes,
        'findings': as_data(skipped)}
    return Report([*as_lines(skipped, 'warn'), *_blocks(data)], data)


def _blocks(data: dict[str, Any]) -> Iterator[Line | Grid]:
    for note in data['notes']:
        yield Line(note, 'warn')
    yield Grid(('from', 'to', 'type', 'shape', 'rows'), [
        (one['from'], one['to'], one['kind'], str(one['shape']),
         'reordered' if one['reordered'] else '') for one in data['moves']])
    if data['left_out']:
        yield Grid(('left out', 'why'), [(one['name'], one['why']) for one in data['left_out']])
    if data['cleaned']:
        yield Line(f'removed what {count_text(data["cleaned"], "save")} that did not end had left',
                   'warn')
    size = bytes_text(data['bytes'])
    if data['rows'] is None:
        yield Line(f'dry run: {size} would go to {data["destination"]}', 'warn')
    else:
        yield Line(f'{data["destination"]}: {size}, {count_text(data["rows"], "row")} compared '
                   'with the source, all equal', 'good')
