"""Writes the tables, slots, step and other variables of SRC as a program of another API restores
them, into the directory DST, and compares all rows by their ids. The exit status of a dry run is 1
if variables have no new name.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

from ..checkpoint import file_names
from ..checkpoint.bundle import Bundle
from ..checkpoint.concurrent_changes import GONE, SPOILT, is_gone, rotated_away
from ..checkpoint.object_graph import Place
from ..checkpoint.options import VERIFY, CheckpointOptions
from ..checkpoint.tensors import KINDS
from ..core.names import name_problems
from ..core.partition import Partition
from ..errors import (
    CheckpointError,
    ConfigError,
    CorruptCheckpointError,
    Problem,
    bytes_text,
    counted,
    quoted,
    shown,
)
from ..migration import checkpoint_contents, map_file, moves, to_tf2
from ..migration.checkpoint_contents import KERAS, MIDLEVEL, TF1, Contents, Target
from ..migration.from_tf2 import Paths
from ..migration.moves import Choices, MigrationPlan
from ..migration.new_names import NOTHING
from . import checkpoint_argument
from .checkpoint_argument import Stored
from .report import Grid, Line, Report, as_command, as_data, as_lines


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('src', metavar='SRC', help='a model_dir, or a checkpoint such as '
                        'dir/model.ckpt-7 or dir/ckpt-7')
    parser.add_argument('dst', metavar='DST', help='a directory for the new checkpoint')
    parser.add_argument('--to', required=True, choices=checkpoint_contents.KINDS, help='tf2: '
                        'TPUEmbedding of tf.tpu.experimental.embedding; tfrs: the layer of TFRS; '
                        'tf1: TPUEstimator')
    add_paths(parser)
    add_source_path(parser, 'SRC')
    parser.add_argument('--slots', choices=(KERAS, MIDLEVEL), help='who makes the slots of '
                        'tables in the program of TF2: midlevel, the default, is the '
                        'TPUEmbedding; keras is a Keras optimizer')
    parser.add_argument('--like', metavar='CHECKPOINT', help='a checkpoint that the new program of '
                        'TF2 has saved, or its folder: its objects are taken as they are, and get '
                        'the values; paths and slots that are not given are those in it')
    parser.add_argument('--order', metavar='ORDER', type=_order, help='how --to tf1 orders rows: '
                        '"div", the default, or "mod:H" for H hosts')
    parser.add_argument('--step', type=int, metavar='N', help='of a checkpoint that does not '
                        'say its step')
    parser.add_argument('--drop-rest', action='store_true', help='leave out variables that '
                        'nothing names')
    parser.add_argument('--drop-slots', action='store_true', help='leave out slots that --to has '
                        'no place for')
    parser.add_argument('--overwrite', action='store_true', help='replace a checkpoint of the '
                        'same name in DST')
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument('--dry-run', action='store_true', help='only print the plan, and the lines '
                       'that a map needs')
    modes.add_argument('--map-back', metavar='FILE', help='also write the map that leads back '
                       'from DST to SRC')
    checkpoint_argument.add_arguments(parser)
    as_command(parser, _tried)


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments about the names of variables and the objects of a program of TF2."""
    parser.add_argument('--map', metavar='FILE', help='a text file with the new names of '
                        'variables: etpe docs migrating')
    parser.add_argument('--object-path', metavar='PATH', type=_path, help='where the checkpoint '
                        'of TF2 has the TPUEmbedding, or the layer of TFRS; '
                        f'{Paths().tables} if left out')
    parser.add_argument('--optimizer-path', metavar='PATH', type=_path, help='where it has the '
                        f'Keras optimizer; {Paths().optimizer} if left out')


def add_source_path(parser: argparse.ArgumentParser, source: str) -> None:
    """Adds the argument about the objects of the checkpoint that `source` names."""
    parser.add_argument('--source-path', metavar='PATH', type=_path, help=f'where {source} has '
                        'them, if it is a checkpoint of TF2 with another path than --object-path')


def _path(text: str) -> str:
    """Returns a path of objects; the root has the path `''`."""
    path = text.strip('/')
    for problem in name_problems('path', path) if path else ():
        raise argparse.ArgumentTypeError(problem.rule)
    return path


def _order(text: str) -> tuple[str, int] | None:
    """Returns strategy and hosts, which are written as in `--assume`."""
    try:
        return CheckpointOptions(assume=text).assumed_order()
    except ConfigError as error:
        raise argparse.ArgumentTypeError(error.problems[0].rule) from error


def read(parsed: argparse.Namespace, prefix: str, given: CheckpointOptions
         ) -> tuple[Contents, Target, Choices]:
    """Reads the map and a checkpoint; arguments that do not apply end the command."""
    for argument, why in _unused(parsed, checkpoint_contents.is_tf2(Bundle.open(prefix))):
        parsed.refuse(f'argument {argument}: {why}')
    map, like = read_map(parsed), _like(parsed, given)
    path = parsed.object_path if parsed.source_path is None else parsed.source_path
    return moves.read(prefix, paths(path, parsed.optimizer_path), map, given), _target(
        parsed, like), Choices(map=map, drop_rest=parsed.drop_rest, drop_slots=parsed.drop_slots,
                               step=parsed.step, like=like)


def _target(parsed: argparse.Namespace, like: Bundle | None) -> Target:
    strategy, hosts = parsed.order or (None, None)
    given = {'object_path': parsed.object_path, 'optimizer_path': parsed.optimizer_path,
             'slots': parsed.slots, 'strategy': strategy, 'hosts': hosts}
    return Target(kind=parsed.to, **{
        **(to_tf2.located(like, parsed.to) if like is not None else {}),
        **{name: value for name, value in given.items() if value is not None}})


def _like(parsed: argparse.Namespace, given: CheckpointOptions) -> Bundle | None:
    """Opens the checkpoint of `--like`."""
    if parsed.like is None:
        return None
    from ..checkpoint import recover
    quick = dataclasses.replace(given, verify=VERIFY[1])
    found = recover.verify(Stored(parsed.like, quick).prefix, quick).bundle
    if not checkpoint_contents.is_tf2(found):
        parsed.refuse('argument --like: it must be a checkpoint of TF2, such as dir/ckpt-1')
    return found


def read_map(parsed: argparse.Namespace) -> map_file.Map:
    """Returns the map of `--map`; an empty one without it."""
    return map_file.read(parsed.map) if parsed.map is not None else map_file.Map()


def paths(tables: str | None, optimizer: str | None) -> Paths:
    """Returns where a checkpoint of TF2 has its objects, as far as it is said."""
    return Paths(Paths().tables if tables is None else tables,
                 Paths().optimizer if optimizer is None else optimizer)


def _unused(parsed: argparse.Namespace, is_tf2: bool) -> Iterator[tuple[str, str]]:
    """Yields each argument that means nothing here, with the reason."""
    to_tf1 = parsed.to == TF1
    rules = (
        ('order', not to_tf1, 'only --to tf1 has an order'),
        ('like', to_tf1, 'the graph of objects is one of TF2'),
        ('slots', to_tf1, 'TF1 has one kind of slots'),
        ('object_path', to_tf1 and not is_tf2, 'neither SRC nor --to tf1 has objects'),
        ('optimizer_path', to_tf1 and not is_tf2, 'neither SRC nor --to tf1 has objects'),
        ('source_path', not is_tf2, 'SRC is a checkpoint of TF1, which has no objects'),
        ('object_path', to_tf1 and parsed.source_path is not None,
         '--source-path says where SRC has them, and TF1 has no objects'),
        ('assume', is_tf2, 'SRC is a checkpoint of TF2, whose rows are in the order of ids'),
        ('step', not 0 <= (parsed.step or 0) < 2**63, 'it must be >= 0, and below 2**63'))
    for name, is_idle, why in rules:
        if is_idle and getattr(parsed, name) is not None:
            yield f'--{name.replace("_", "-")}', why


def _tried(parsed: argparse.Namespace) -> Report:
    """Migrates a checkpoint that is verified while it is copied, or another one that is whole."""
    given = checkpoint_argument.options(parsed)
    if parsed.map_back is not None:
        map_file.require_new(parsed.map_back)
    if parsed.dry_run:
        return _migrated(parsed, given, given)
    quick = dataclasses.replace(given, verify='size')
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
    from ..checkpoint import recover
    chosen = Stored(parsed.src, way)
    notes = [f'newer, but not whole: {name}' for name in chosen.newer]
    careful = given if given.verify == 'size' else dataclasses.replace(given, verify='crc32c')
    verify = functools.partial(recover.verify, chosen.prefix, careful, chosen.known)
    try:
        found = read(parsed, chosen.prefix, given)
        if parsed.dry_run:
            verify()
        made = moves.plan(*found, may_lack_names=parsed.dry_run)
        return _report(parsed, made, notes, chosen.skipped, verify)
    except SPOILT:
        if is_gone(chosen.prefix):
            raise rotated_away(chosen.prefix) from None
        raise


def _report(parsed: argparse.Namespace, made: MigrationPlan, notes: list[str],
            skipped: tuple[Problem, ...], verify: Callable[[], object]) -> Report:
    from ..migration import migrate_checkpoint
    base = file_names.BASE if made.target.kind == TF1 else file_names.OBJECT_BASE
    prefix = os.path.join(parsed.dst, file_names.name_of(base, made.step))
    rows, cleaned = None, 0
    if made.pattern is not None:
        kept = [shown(Place.of_key(name) or name, 200) for name in made.pattern.kept(made.written)]
        notes = [*notes, f'values that stay as --like has them: {quoted(kept)}']
    if not parsed.dry_run:
        done = migrate_checkpoint.carry_out(
            made, parsed.dst, overwrite=parsed.overwrite, verify=verify)
        rows, cleaned = done.rows, done.cleaned
        if parsed.map_back is not None:
            map_file.write(parsed.map_back, map_file.way_back(made, _comments(parsed, made)))
    else:
        migrate_checkpoint.check_destination(made, parsed.dst, prefix, parsed.overwrite)
    data: dict[str, Any] = {
        'source': made.contents.bundle.prefix, 'destination': prefix, 'to': parsed.to,
        'step': made.step, 'moves': [
            {'from': move.source, 'to': move.target, 'kind': move.tensor.kind,
             'shape': list(move.tensor.shape), 'before': _order_text(move.before),
             'after': _order_text(move.after), 'reordered': move.is_reordered}
            for move in made.moves],
        'made': [{'name': one.target, 'kind': KINDS[one.dtype][0], 'value': one.value}
                 for one in made.made],
        'left_out': [{'name': name, 'why': why} for name, why in made.left_out.items()],
        'unnamed': [] if parsed.drop_rest else [
            named.variable.name for named in made.nameless],
        'bytes': made.bytes, 'rows': rows, 'cleaned': cleaned, 'map': parsed.map_back,
        'notes': notes, 'findings': as_data(skipped)}
    return Report([*as_lines(skipped, 'warn'), *_blocks(made, data)], data,
                  status=1 if data['unnamed'] and parsed.dry_run else 0)


def _comments(parsed: argparse.Namespace, made: MigrationPlan) -> Iterator[str]:
    """Yields the beginning of a map that leads back: the command to which it belongs."""
    yield f'The way back: etpe migrate checkpoint {parsed.dst} DIR --map {parsed.map_back}'
    target, flags = made.target, []
    if target.kind != TF1 and target.object_path != Paths().tables:
        flags += ['--source-path', target.object_path]
    if target.kind != TF1 and target.optimizer_path != Paths().optimizer:
        flags += ['--optimizer-path', target.optimizer_path]
    if made.contents.is_tf2:
        yield ' '.join(['with --to, --object-path and --slots as that program has them', *flags])
        return
    orders = {_order_text(one.order) for one, _ in made.names.tables} - {'ids'}
    yield ' '.join(['with --to', TF1, *flags, *(['--order', orders.pop()] if len(orders) == 1
                                                else [])])


def _order_text(order: Partition | None) -> str:
    """Returns how rows are ordered, for people."""
    if order is None or order.stores_by_id:
        return 'ids'
    return f'{order.strategy}:{order.num_hosts}'


def _blocks(plan: MigrationPlan, data: dict[str, Any]) -> Iterator[Line | Grid]:
    """Yields the report for people: a line for each tensor, those of tables first."""
    yield from as_lines(data['notes'], 'warn')
    moves = sorted(plan.moves, key=lambda move: move.variable is None or (
        not move.variable.is_table))
    rows = [(plan.contents.text_of(move.source), str(move.place or move.target), move.tensor.kind,
             str(list(move.tensor.shape)), f'{_order_text(move.before)} -> '
             f'{_order_text(move.after)}' if move.is_reordered else '') for move in moves]
    rows += [(f'made: {each.value:.9g}', str(each.place or each.target), KINDS[each.dtype][0],
              '[]', '') for each in plan.made]
    if rows:
        yield Grid(('tensor', 'becomes', 'type', 'shape', 'new order of rows'), rows)
    left = [(plan.contents.text_of(tensor), why) for tensor, why in plan.left_out.items()
            if not data['unnamed'] or why != NOTHING]
    if left:
        yield Grid(('left out', 'why'), left)
    if data['unnamed']:
        count = counted(len(data['unnamed']), 'variable')
        yield Line(f'without a new name: {count}; --drop-rest leaves them out, or a map names them',
                   'bad')
        for one in (named.variable for named in plan.nameless):
            yield Line(map_file.line(one.name, map_file.UNKNOWN, one.is_table or one.may_be_table))
    if data['cleaned']:
        yield Line(f'removed what {counted(data["cleaned"], "save")} that did not end '
                   'had left', 'warn')
    size = bytes_text(data['bytes'])
    if data['rows'] is None:
        yield Line(f'dry run: {size} would go to {data["destination"]}', 'warn')
    else:
        yield Line(f'{data["destination"]}: {size}, {counted(data["rows"], "row")} '
                   'compared with the source, all equal', 'good')
        if data['map'] is not None:
            yield Line(f'{data["map"]}: the map that leads back', 'good')
