"""`etpe migrate checkpoint`: takes a checkpoint to the other API.

The report in JSON has these fields:

- `source`, `destination`: paths; the destination is the prefix of the new checkpoint.
- `to`: as given.
- `step`: of the new checkpoint.
- `tables`: objects with `from`, `to`, `rows`, `width`, `optimizer`, `slots` (names of tensors), the
  orders of rows `before` and `after`, and `reordered`.
- `moves`: all tensors: objects with `from`, `to`, `kind` (a type), `shape` and `reordered`.
- `made`: variables that are computed, such as powers of Adam: objects with `name`, `kind`, `value`.
- `left_out`: objects with `name` and `why`.
- `unnamed`: variables without a new name, in a dry run.
- `bytes`: of the tensors that go along.
- `rows`: how many rows were compared afterwards; `null` if nothing was written.
- `cleaned`: how many saves that did not end were removed from the destination.
- `map`: the file of `--template` or `--map-back`; `null` if none was written.
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
from ...checkpoint.object_graph import Place
from ...checkpoint.options import CheckpointOptions
from ...checkpoint.rotation import GONE, SPOILT, is_gone, rotated_away
from ...checkpoint.tensors import KINDS
from ...core.partition import Partition
from ...errors import CheckpointError, CorruptCheckpointError, Problem, bytes_text, quoted, shown
from ...migration import map_file
from ...migration import plan as planning
from ...migration.contents import TF1, Variable
from ...migration.naming import NOTHING
from ...migration.plan import Move, Plan
from ..report import Grid, Line, Report, as_data, as_lines, count_text
from ..stored import opened, options
from . import choices

HELP = 'take a checkpoint to TF2 or TFRS, or back, and compare every row'


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Writes the tables, slots, step and other variables of SRC as a program of another API '
        'restores them, into the directory DST, and compares all rows by their ids. The exit '
        'status of a dry run is 1 if variables have no new name.')
    parser.add_argument('src', metavar='SRC', help='a model_dir, or a checkpoint such as '
                        'dir/model.ckpt-7 or dir/ckpt-7')
    parser.add_argument('dst', metavar='DST', help='a directory for the new checkpoint')
    choices.configure(parser, needs_target=True)
    parser.add_argument('--overwrite', action='store_true', help='replace a checkpoint of the '
                        'same name in DST')
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument('--dry-run', action='store_true', help='only print the plan')
    modes.add_argument('--template', metavar='FILE', help='only write a map with a line for each '
                       'variable, to be completed')
    modes.add_argument('--map-back', metavar='FILE', help='also write the map that leads back '
                       'from DST to SRC')
    options.configure(parser)


def report(parsed: argparse.Namespace) -> Report:
    """Returns the report about a migration."""
    given = options.options(parsed)
    for path in filter(None, [parsed.template, parsed.map_back]):
        map_file.require_new(path)
    if not _writes(parsed):
        return _migrated(parsed, given, given)
    quick = dataclasses.replace(given, verify='size')
    try:
        return _migrated(parsed, quick, given)  # Its bytes are verified while they are copied.
    except CheckpointError as error:
        if not os.path.isdir(parsed.src) or not (
                isinstance(error, CorruptCheckpointError) or error.code == GONE):
            raise
    return _migrated(parsed, given, given)  # Another one may be whole.


def _writes(parsed: argparse.Namespace) -> bool:
    """Whether a checkpoint is to be written."""
    return not parsed.dry_run and parsed.template is None


def _migrated(parsed: argparse.Namespace, way: CheckpointOptions, given: CheckpointOptions
              ) -> Report:
    """Migrates the checkpoint that is chosen in one way, and verifies it as the user asks."""
    from ...checkpoint import recover
    chosen = opened.chosen(parsed.src, way)
    notes = [f'newer, but not whole: {name}' for name in chosen.newer]
    careful = given if given.verify == 'size' else dataclasses.replace(given, verify='crc32c')
    verify = functools.partial(recover.verify, chosen.prefix, careful, chosen.known)
    try:
        found = choices.read(parsed, chosen.prefix, given)
        if _writes(parsed):
            return _report(parsed, planning.plan(*found), notes, chosen.skipped, verify)
        verify()
        made = planning.draft(*found)
        if parsed.template is not None:
            map_file.write(parsed.template, map_file.template(made, found[2].map))
        return _report(parsed, made, notes, chosen.skipped, verify)
    except SPOILT:
        if is_gone(chosen.prefix):
            raise rotated_away(chosen.prefix) from None
        raise


def _report(parsed: argparse.Namespace, made: Plan, notes: list[str],
            skipped: tuple[Problem, ...], verify: Callable[[], object]) -> Report:
    from ...migration import carry_out
    base = file_names.BASE if made.target.kind == TF1 else file_names.OBJECT_BASE
    prefix = os.path.join(parsed.dst, file_names.name_of(base, made.step))
    rows, cleaned = None, 0
    if made.pattern is not None and parsed.template is None:
        kept = [shown(Place.of_key(name) or name, 200) for name in made.pattern.kept(made.written)]
        notes = [*notes, f'values that stay as --like has them: {quoted(kept)}']
    if _writes(parsed):
        done = carry_out.carry_out(made, parsed.dst, overwrite=parsed.overwrite, verify=verify)
        rows, cleaned = done.rows, done.cleaned
        if parsed.map_back is not None:
            map_file.write(parsed.map_back, map_file.way_back(made, _comments(parsed, made)))
    elif parsed.template is None:
        carry_out.check_destination(made, parsed.dst, prefix, parsed.overwrite)
    data: dict[str, Any] = {
        'source': made.contents.bundle.prefix, 'destination': prefix, 'to': parsed.to,
        **_as_data(made, parsed.drop_rest), 'rows': rows, 'cleaned': cleaned,
        'map': parsed.template or parsed.map_back, 'notes': notes,
        'findings': as_data(skipped)}
    return Report([*as_lines(skipped, 'warn'), *_blocks(parsed, made, data)], data,
                  status=1 if data['unnamed'] and parsed.dry_run else 0)


def _comments(parsed: argparse.Namespace, made: Plan) -> Iterator[str]:
    """Yields the beginning of a map that leads back: the command to which it belongs."""
    yield f'The way back: etpe migrate checkpoint {parsed.dst} DIR --map {parsed.map_back}'
    target, flags = made.target, []
    if target.kind != TF1 and target.object_path != choices.OBJECT:
        flags += ['--source-path', target.object_path]
    if target.kind != TF1 and target.optimizer_path != choices.OPTIMIZER:
        flags += ['--optimizer-path', target.optimizer_path]
    if made.contents.is_tf2:
        yield ' '.join(['with --to, --object-path and --slots as that program has them', *flags])
        return
    orders = {_order_text(one.order) for one, _ in made.names.tables} - {'ids'}
    yield ' '.join(['with --to', TF1, *flags, *(['--order', orders.pop()] if len(orders) == 1
                                                else [])])


def _blocks(parsed: argparse.Namespace, made: Plan, data: dict[str, Any]
            ) -> Iterator[Line | Grid]:
    for note in data['notes']:
        yield Line(note, 'warn')
    if parsed.template is None:
        yield from _plan_blocks(made, data)
    if data['cleaned']:
        yield Line(f'removed what {count_text(data["cleaned"], "save")} that did not end '
                   'had left', 'warn')
    size = bytes_text(data['bytes'])
    if parsed.template is not None:
        count = count_text(len(data['unnamed']), 'variable')
        yield Line(f'{parsed.template}: a map to complete; {count} without a new name', 'good')
    elif data['rows'] is None:
        yield Line(f'dry run: {size} would go to {data["destination"]}', 'warn')
    else:
        yield Line(f'{data["destination"]}: {size}, {count_text(data["rows"], "row")} '
                   'compared with the source, all equal', 'good')
        if data['map'] is not None:
            yield Line(f'{data["map"]}: the map that leads back', 'good')


def _along(plan: Plan) -> Iterator[tuple[Variable, Move, list[Move]]]:
    """Yields each variable that goes along, its move, and those of its slots."""
    moves = {move.source: move for move in plan.moves}
    for named in plan.names.variables:
        one = named.variable
        if one.tensor in moves:
            yield one, moves[one.tensor], [moves[slot] for slot in one.slots
                                           if slot in moves and slot not in named.alone]


def _as_data(plan: Plan, drops_rest: bool) -> dict[str, Any]:
    """Returns a plan for programs; a draft may lack names."""
    names = {one.tensor: new for one, new in plan.names.tables}
    return {
        'step': plan.step,
        'tables': [
            {'from': one.name, 'to': names[one.tensor], 'rows': move.tensor.rows,
             'width': move.tensor.shape[1],
             'optimizer': one.family.name if one.family is not None else None,
             'slots': [slot.source for slot in slots], 'before': _order_text(one.order),
             'after': _order_text(move.after), 'reordered': move.is_reordered}
            for one, move, slots in _along(plan) if one.is_table],
        'moves': [
            {'from': move.source, 'to': move.target, 'kind': move.tensor.kind,
             'shape': list(move.tensor.shape), 'reordered': move.is_reordered}
            for move in plan.moves],
        'made': [{'name': one.target, 'kind': KINDS[one.dtype][0], 'value': one.value}
                 for one in plan.made],
        'left_out': [{'name': name, 'why': why} for name, why in plan.left_out.items()],
        'unnamed': [] if drops_rest else [named.variable.name for named in plan.nameless],
        'bytes': plan.bytes}


def _order_text(order: Partition | None) -> str:
    """Returns how rows are ordered, for people."""
    if order is None or order.stores_by_id:
        return 'ids'
    return f'{order.strategy}:{order.num_hosts}'


def _plan_blocks(plan: Plan, data: dict[str, Any]) -> Iterator[Line | Grid]:
    """Yields a plan for people: a line for each table and variable, its slots included."""
    if data['tables']:
        yield Grid(('table', 'becomes', '>rows', '>width', 'slots', 'order of rows'), [
            (one['from'], one['to'], f'{one["rows"]:,}', f'{one["width"]:,}', _slots_text(
                one['slots'], one['optimizer']),
             f'{one["before"]} -> {one["after"]}' if one['reordered'] else one['after'])
            for one in data['tables']])
    told, rows = set[str](), []
    for one, move, slots in _along(plan):
        told |= {move.source, *(slot.source for slot in slots)}
        if not one.is_table:
            rows.append((*_cells(plan, move), _slots_text(
                slots, one.family.name if one.family is not None else None)))
    # The step, slots with names of their own, what is computed.
    rows += [(*_cells(plan, move), '') for move in plan.moves if move.source not in told]
    rows += [(f'made: {each.value:.9g}', str(each.place or each.target), KINDS[each.dtype][0],
              '[]', '') for each in plan.made]
    if rows:
        yield Grid(('variable', 'becomes', 'type', 'shape', 'slots'), rows)
    left = [(plan.contents.text_of(tensor), why) for tensor, why in plan.left_out.items()
            if not data['unnamed'] or why != NOTHING]
    if left:
        yield Grid(('left out', 'why'), left)
    if data['unnamed']:
        count = count_text(len(data['unnamed']), 'variable')
        yield Line(f'without a new name: {count}; --template FILE writes a map with a line for '
                   'each, or --drop-rest leaves them out', 'bad')


def _slots_text(slots: list[Any], optimizer: str | None) -> str:
    return f'{len(slots)} of {optimizer}' if slots else ''


def _cells(plan: Plan, move: Move) -> tuple[str, str, str, str]:
    """Returns old and new name, type and shape of a tensor."""
    return (plan.contents.text_of(move.source), str(move.place or move.target), move.tensor.kind,
            str(list(move.tensor.shape)))
