"""Shows the plan of a migration to people and to programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...checkpoint.tensors import KINDS
from ...core.partition import Partition
from ...migration.map_file import UNKNOWN
from ...migration.plan import Move, Plan
from ..report import Grid, Line
from ..stored.texts import count_text

_MOST_NAMELESS = 50


def as_data(plan: Plan, drops_rest: bool) -> dict[str, Any]:
    """Returns a plan for programs.

    Args:
      plan: the plan; a draft may lack names.
      drops_rest: whether variables without names are meant to stay behind.
    """
    slots, moves = _slots(plan), {move.source: move for move in plan.moves}
    return {
        'step': plan.step,
        'tables': [
            {'from': one.name, 'to': new, 'rows': plan.contents.tensor(one.tensor).rows,
             'width': plan.contents.tensor(one.tensor).shape[1],
             'optimizer': one.family.name if one.family is not None else None,
             'slots': [move.source for move in slots.get(one.tensor, [])],
             'before': order_text(one.order), 'after': order_text(moves[one.tensor].after),
             'reordered': moves[one.tensor].is_reordered}
            for one, new in plan.tables],
        'moves': [
            {'from': move.source, 'to': move.target, 'kind': move.tensor.kind,
             'shape': list(move.tensor.shape), 'reordered': move.is_reordered}
            for move in plan.moves],
        'made': [{'name': one.target, 'kind': KINDS[one.dtype][0], 'value': one.value}
                 for one in plan.made],
        'left_out': [{'name': name, 'why': why} for name, why in plan.left_out.items()],
        'unnamed': [] if drops_rest else [named.variable.name for named in plan.nameless],
        'bytes': plan.bytes}


def order_text(order: Partition | None) -> str:
    """Returns how rows are ordered, for people."""
    if order is None or order.stores_by_id:
        return 'ids'
    return f'{order.strategy}:{order.num_hosts}'


def blocks(plan: Plan, data: dict[str, Any]) -> Iterator[Line | Grid]:
    """Yields a plan for people: a line for each table and variable, its slots included.

    Args:
      plan: the plan.
      data: of `as_data`.
    """
    slots = _slots(plan)
    if data['tables']:
        yield Grid(('table', 'becomes', '>rows', '>width', 'slots', 'order of rows'), [
            (one['from'], one['to'], f'{one["rows"]:,}', f'{one["width"]:,}', _slots_text(
                one['slots'], one['optimizer']),
             f'{one["before"]} -> {one["after"]}' if one['reordered'] else one['after'])
            for one in data['tables']])
    variables = [move for move in plan.moves if move.variable is not None
                 and move.source == move.variable.tensor and not move.variable.is_table]
    if variables:
        yield Grid(('variable', 'becomes', 'type', 'shape', 'slots'), [
            (_text(plan, move), _target_text(move), move.tensor.kind,
             str(list(move.tensor.shape)), _slots_text(
                 slots.get(move.source, []), move.variable.family.name
                 if move.variable is not None and move.variable.family is not None else None))
            for move in variables])
    yield from _others(plan)
    left = list(_left_out(plan, bool(data['unnamed'])))
    if left:
        yield Grid(('left out', '>slots', 'why'), left)
    if data['unnamed']:
        yield from _nameless(plan)


def _others(plan: Plan) -> Iterator[Grid]:
    """Yields what is no variable: the step, slots with names of their own, what is computed."""
    alone = {slot for named in plan.names.variables for slot in named.alone}
    rows = [(_text(plan, move), _target_text(move), move.tensor.kind,
             str(list(move.tensor.shape)))
            for move in plan.moves if move.variable is None or move.source in alone]
    rows += [(f'made: {one.value:.9g}', str(one.place or one.target), KINDS[one.dtype][0], '[]')
             for one in plan.made]
    if rows:
        yield Grid(('other', 'becomes', 'type', 'shape'), rows)


def _left_out(plan: Plan, asks_for_names: bool) -> Iterator[tuple[str, str, str]]:
    """Yields what stays behind, its slots, and why; variables that need a name come later."""
    rest = dict(plan.left_out)
    for named in plan.names.variables:
        one = named.variable
        gone = [(slot, why) for slot in one.slots if (why := rest.pop(slot, None)) is not None]
        why = rest.pop(one.tensor, None)
        if named.is_nameless and asks_for_names:
            continue
        if why is not None:
            yield one.name, str(sum(other == why for _, other in gone) or ''), why
        for reason in dict.fromkeys(each for _, each in gone if each != why):
            those = [slot for slot, each in gone if each == reason]
            yield f'slots of {one.name}', str(len(those)), reason
    for tensor, why in rest.items():
        yield plan.contents.text_of(tensor), '', why


def _nameless(plan: Plan) -> Iterator[Line]:
    """Yields lines for a map that the user can copy."""
    nameless = plan.nameless
    yield Line(f'without a new name: {count_text(len(nameless), "variable")}; --map needs a line '
               'for each, or --drop-rest leaves them out', 'bad')
    for named in nameless[:_MOST_NAMELESS]:
        one = named.variable
        mark = 'table ' if one.may_be_table or one.is_table and not plan.contents.is_tf2 else ''
        yield Line(f'  {mark}{one.name} -> {UNKNOWN}')
    if len(nameless) > _MOST_NAMELESS:
        yield Line(f'  ... and {len(nameless) - _MOST_NAMELESS:,} more: --template FILE')


def _slots(plan: Plan) -> dict[str, list[Move]]:
    """Returns the slots that go along with their variables, by the tensor of the variable."""
    alone = {slot for named in plan.names.variables for slot in named.alone}
    found: dict[str, list[Move]] = {}
    for move in plan.moves:
        one = move.variable
        if one is not None and move.source != one.tensor and move.source not in alone:
            found.setdefault(one.tensor, []).append(move)
    return found


def _slots_text(slots: list[Any], optimizer: str | None) -> str:
    return f'{len(slots)} of {optimizer}' if slots else ''


def _text(plan: Plan, move: Move) -> str:
    return plan.contents.text_of(move.source)


def _target_text(move: Move) -> str:
    return move.target if move.place is None else str(move.place)
