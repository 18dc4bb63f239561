"""Writes maps: one to begin with, which the user completes, and one that leads back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from ..checkpoint import files
from ..checkpoint.object_graph import Place
from ..errors import CheckpointWriteError, Problem, shown
from .map_file import UNKNOWN, Map, Rule
from .moves import Move
from .names import Family, recognized
from .naming import Named, text_of
from .plan import Plan
from .target import KERAS, TF1, step_path

_PLAIN = re.compile(r'(?!(?:table|re|drop)\s|#|.*\s->\s|\s)[^\\]*(?<!\s)')


def template(plan: Plan, map: Map) -> str:
    """Returns the map of a plan with a line for each variable.

    Args:
      plan: a draft may lack names; `?` stands for them.
      map: by which it was made.
    """
    contents = plan.contents
    tables: list[str] = []
    others: list[str] = []
    for named in plan.names.variables:
        one = named.variable
        new = UNKNOWN if named.is_nameless else named.new
        lines = tables if one.is_table or one.may_be_table else others
        is_table = one.is_table and not contents.is_tf2 or named.is_nameless and one.may_be_table
        lines.append(_line(one.name, new, is_table))
        others += _lines_alone(plan, named.alone.items())
    others += _lines_alone(plan, plan.names.others.items())
    others += [f'power {name} {base!r}' for name, base in map.powers]
    return '\n'.join([
        f'# Write the new names in the places of {UNKNOWN}. A line "drop OLD" leaves a variable '
        'out.', '# Slots go with their variables. More: etpe docs migrating',
        *sorted(tables), *sorted(others), *_free(plan), ''])


def _free(plan: Plan) -> Iterator[str]:
    """Yields comments about variables of the new program that get no value."""
    tensors = plan.pattern.bundle.tensors if plan.pattern is not None else {}
    kept = plan.pattern.kept(plan.written) if plan.pattern is not None else []
    places = {place: tensors[name] for name in kept if (place := Place.of_key(name)) is not None
              and not place.slot and tensors[name].shape}
    if places:
        yield '# --like has places without a value from SRC:'
    for place, tensor in places.items():
        yield f'# {shown(place, 1000)} {tensor.kind} {list(tensor.shape)}'


def _lines_alone(plan: Plan, named: Iterable[tuple[str, str | Rule]]) -> Iterator[str]:
    for tensor, new in named:
        yield _line(text_of(plan.contents, tensor), new if isinstance(new, str) else None)


def way_back(plan: Plan, comments: Iterable[str] = ()) -> str:
    """Returns a map that gives the tensors of the new checkpoint their old names.

    Args:
      plan: of the migration.
      comments: lines to begin with.
    """
    contents = plan.contents
    moves = {move.source: move for move in plan.moves}
    lines = []
    for named in plan.names.variables:
        one = named.variable
        if named.new is not None:
            # A checkpoint of the new program may have the variable at another path.
            new = named.new if one.is_table else _target_text(moves[one.tensor])
            lines.append(_line(new, one.name, one.is_table and contents.is_tf2
                               and plan.target.kind == TF1))
            slots = [moves[slot] for slot in one.slots if slot in moves and slot not in named.alone]
            if not _are_found_again(plan, named, moves[one.tensor], slots):
                lines += [_line(_target_text(move), text_of(contents, move.source))
                          for move in slots]
        lines += [_line(new, text_of(contents, slot)) for slot, new in named.alone.items()
                  if isinstance(new, str)]
    lines += [_line(new, text_of(contents, tensor))
              for tensor, new in plan.names.others.items() if isinstance(new, str)]
    step = contents.step
    if contents.is_tf2 and step in moves and step not in plan.names.others and (
            text_of(contents, step) != step_path(plan.target.optimizer_path)):
        lines.append(_line(_target_text(moves[step]), text_of(contents, step)))
    left = [f'# Left behind: {shown(name, 1000)}' for name in plan.left_out]
    return '\n'.join([*(f'# {line}' for line in comments), *sorted(lines), *left, ''])


def _are_found_again(plan: Plan, named: Named, own: Move, slots: list[Move]) -> bool:
    """Whether slots get their old names on the way back without lines of their own."""
    one, family = named.variable, named.variable.family
    if family is None or not slots:
        return True
    if len(slots) != len(one.slots) or plan.target.kind != TF1 and [
            move.target for move in slots] != _usual(plan, named, own):
        return False
    if plan.contents.is_tf2 == (plan.target.kind != TF1):
        return True
    if plan.target.kind == TF1:
        ways, theirs = ('tf1', 'train') if one.is_table else ('train',), (
            family.tf1 if one.is_table else family.train)
    else:
        ways, theirs = _ways_of_tf2(plan, one.is_table), family.keras
        if ways == ('midlevel',):
            theirs = family.midlevel
    again = recognized(dict.fromkeys(theirs, ''), *ways)
    if again is None:
        return False
    return again[0] is family if plan.contents.is_tf2 else _suffixes(again[0], one.is_table) == [
        slot.removeprefix(f'{one.tensor}/') for slot in one.slots]


def _usual(plan: Plan, named: Named, own: Move) -> list[str]:
    """Returns the tensors of slots of TF2 by which their variable is known."""
    one, target = named.variable, plan.target
    places = (target.table_places(named.new or '', one.family) if one.is_table
              else target.variable_places(_target_text(own), one.family))
    return [place.key for place in places[1:]]


def _ways_of_tf2(plan: Plan, is_table: bool) -> tuple[str]:
    return ('keras',) if not is_table or plan.target.slots == KERAS else ('midlevel',)


def _suffixes(family: Family, is_table: bool) -> list[str]:
    return list(family.tf1 if is_table else family.train)


def _target_text(move: Move) -> str:
    return str(Place.of_key(move.target) or move.target)


def _line(old: str, new: str | None, is_table: bool = False) -> str:
    """Returns the line for a name; `None` drops it."""
    left = old if _PLAIN.fullmatch(old) else f're {re.escape(old)}'
    text = f'drop {left}' if new is None else f'{"table " if is_table else ""}{left} -> {new}'
    if not old.isprintable() or new is not None and not (new.isprintable() and (
            _PLAIN.fullmatch(new))):
        return f'# No line can say this: {shown(text, 1000)}'
    return text


def require_new(path: str) -> None:
    """Makes sure that a file can be made at `path`, before much time is spent.

    Raises:
      CheckpointWriteError: E659 if there is something, or no folder for it.
    """
    if os.path.lexists(path):
        raise _refused(path, 'something there')
    if not os.path.isdir(os.path.dirname(path) or '.'):
        raise _refused(path, 'no folder for it')


def write(path: str, text: str) -> None:
    """Writes a map into a new file.

    Raises:
      CheckpointWriteError: E659 if it is there already, or cannot be made.
    """
    try:
        with files.created(path) as file:
            file.write(text.encode(errors='backslashreplace'))
    except (OSError, ValueError) as error:
        raise _refused(path, shown(getattr(error, 'strerror', None) or error, 200)) from error


def _refused(path: str, got: str) -> CheckpointWriteError:
    return CheckpointWriteError(Problem(
        'E659', f'map {shown(path, 300)}', 'it must be possible to make a new file there', got,
        'Name another file.'))
