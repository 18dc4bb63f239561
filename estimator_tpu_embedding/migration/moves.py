"""Moves variables and their slots to the places that another API has for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..checkpoint.file_names import label
from ..checkpoint.object_graph import Place
from ..checkpoint.tensors import NO_ROW, Tensor
from ..core.partition import Partition
from ..errors import Problem, quoted, shown
from . import from_tf1
from .contents import Contents, Variable
from .map_file import Rule
from .naming import Named, text_of, why
from .target import TF1, Target, step_path

FLOAT32, INT64 = 1, 9
"""Numbers of the enum `DataType`."""


class Move(NamedTuple):
    """A tensor that goes along.

    Attributes:
      source: its name in the checkpoint.
      target: its name in the other one.
      tensor: what the checkpoint says of it.
      before: the order of its rows; `None` if they are in the order of ids, or no rows of ids.
      after: their order afterwards.
      place: where the graph of objects has it; `None` in TF1.
      variable: the variable whose slot it is, or itself; `None` if it belongs to none.
    """

    source: str
    target: str
    tensor: Tensor
    before: Partition | None = None
    after: Partition | None = None
    place: Place | None = None
    variable: Variable | None = None

    @property
    def is_reordered(self) -> bool:
        """Whether rows change their places."""
        rows = self.tensor.rows
        return _order(self.before, rows) != _order(self.after, rows)


def _order(partition: Partition | None, rows: int) -> tuple[object, ...]:
    if partition is None or partition.stores_by_id:
        return ()
    return partition.strategy, min(partition.num_hosts, rows)


class Made(NamedTuple):
    """A variable without dimensions that the other checkpoint needs, and this one lacks.

    Attributes:
      target: its name there.
      dtype: a number of the enum `DataType`.
      value: its number.
      place: where the graph of objects has it; `None` in TF1.
    """

    target: str
    dtype: int
    value: float
    place: Place | None = None


class Moves:
    """Collects the moves of a plan.

    Attributes:
      found: the moves.
      tables: pairs of a table and its new name.
      left_out: why each other tensor stays behind, by its name.
      lacks: problems E655 with what the target has no place for.
    """

    def __init__(self, contents: Contents, target: Target, drop_slots: bool):
        """Takes what `plan` takes."""
        self._contents, self._target, self._drop_slots = contents, target, drop_slots
        self._keeps_suffixes = target.kind == TF1 and not contents.is_tf2
        self.found: list[Move] = []
        self.tables: list[tuple[Variable, str]] = []
        self.left_out: dict[str, str] = dict(contents.own)
        self.lacks: list[Problem] = []

    def add_variable(self, named: Named) -> None:
        """Moves a variable and its slots."""
        one, new = named.variable, named.new
        for slot, name in named.alone.items():
            self._add_alone(slot, name, one)
        along = [tensor for tensor in named.tensors if tensor not in named.alone]
        if new is None:
            self.left_out |= dict.fromkeys(along, named.why)
            return
        if one.is_table:
            self.tables.append((one, new))
        if one.family is not None and len(along) > 1 and not self._keeps_suffixes and (
                self._target.lacks(one.family, one.is_table)):
            self._add_lacking(one, along[1:])
        for tensor, (name, place) in zip(named.tensors, self._names(one, new)):
            if tensor in along and tensor not in self.left_out:
                self._add(tensor, name, place, one)

    def add_others(self, named: Mapping[str, str | Rule]) -> None:
        """Moves the step, powers of Adam, and other tensors without slots.

        Args:
          named: the tensors that the map names, as `Names` has them.
        """
        for tensor, new in named.items():
            self.left_out.pop(tensor, None)
            self._add_alone(tensor, new)
        step = self._contents.step
        if step is not None and step not in named:
            self._add_alone(step, self._default_of_step(step))
        for tensor in self._contents.aside:  # The way back looks for its old name.
            if tensor not in named:
                self._add(tensor, tensor, None)

    def ordered(self) -> list[Move]:
        """Returns the moves by their names; tensors below a table of TF1 have its order.

        Readers take slots, moving averages and the like to be in the order of their table.
        """
        moves = sorted(self.found, key=lambda move: move.target)
        if self._target.kind != TF1:
            return moves
        tensors = {move.target: move.tensor for move in moves}
        tables = {new for _, new in self.tables if new in tensors}
        return [move if from_tf1.table_of(move.target, tensors, tables) not in tables
                else move._replace(after=self._target.order(move.tensor.rows)) for move in moves]

    def _default_of_step(self, step: str) -> str:
        if self._target.kind == TF1:
            return from_tf1.STEP
        if self._contents.is_tf2:  # Versions of Keras have it at different paths.
            return text_of(self._contents, step)
        return step_path(self._target.optimizer_path)

    def _names(self, one: Variable, new: str) -> Sequence[tuple[str, Place | None]]:
        """Returns the tensor and the place of a variable and of its slots."""
        if self._target.kind == TF1:
            return [(f'{new}{suffix}', None) for suffix in ('', *self._suffixes(one))]
        places = (self._target.table_places(new, one.family) if one.is_table
                  else self._target.variable_places(new, one.family))
        return [(place.key, place) for place in places]

    def _suffixes(self, one: Variable) -> list[str]:
        """Returns what TF1 appends to the name of a variable for its slots."""
        if self._keeps_suffixes:
            return [slot.removeprefix(one.tensor) for slot in one.slots]
        if one.family is None:
            return []
        return [f'/{name}' for name in (one.family.tf1 if one.is_table else one.family.train)]

    def _add_alone(self, tensor: str, new: str | Rule, one: Variable | None = None) -> None:
        """Moves a tensor whose name does not follow from a variable's name."""
        if isinstance(new, Rule):
            self.left_out[tensor] = why(new)
            return
        place = None if self._target.kind == TF1 else Place.of(new)
        self._add(tensor, new if place is None else place.key, place, one)

    def _add(self, tensor: str, name: str, place: Place | None, one: Variable | None = None
             ) -> None:
        found = self._contents.tensor(tensor)
        if found.code and any(piece.first_row == NO_ROW for piece in found.pieces) or (
                not found.code and len(found.pieces) != 1):
            self.lacks.append(Problem(
                'E655', label(self._contents.bundle.prefix),
                f'tensor "{shown(tensor, 200)}" must be stored as rows', 'slices of columns',
                'Drop it in the map.'))
        self.found.append(Move(tensor, name, found, one.order if one is not None else None,
                               place=place, variable=one))

    def _add_lacking(self, one: Variable, slots: Sequence[str]) -> None:
        if self._drop_slots:
            self.left_out |= dict.fromkeys(slots, f'--to {self._target.kind} has no place for it')
            return
        names = quoted(shown(tensor, 200) for tensor in slots)
        self.lacks.append(Problem(
            'E655', label(self._contents.bundle.prefix),
            f'the optimizer of "{shown(one.name, 200)}" must be one that --to {self._target.kind} '
            'has', f'{one.family.name if one.family else "none"}, with slots {names}',
            '--drop-slots keeps the rows; the new optimizer then begins anew.'))
