"""Plans which tensor of one checkpoint becomes which one of another, before any row is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..checkpoint.bundle import Bundle
from ..checkpoint.file_names import label
from ..checkpoint.object_graph import GRAPH_KEY, Place
from ..checkpoint.options import CheckpointOptions
from ..checkpoint.tensors import Tensor
from ..core.partition import Partition
from ..errors import ConfigError, IncompatibleCheckpointError, Problem, quoted, shown
from . import from_tf1, from_tf2, new_names
from .checkpoint_contents import (
    COUNTER,
    FLOAT32,
    INT64,
    TF1,
    Contents,
    Target,
    Variable,
    is_tf2,
    step_paths,
)
from .from_tf2 import Paths
from .map_file import Map, Rule
from .new_names import Named, Names
from .to_tf2 import Pattern


class Move(NamedTuple):
    """A tensor that goes along, with its names in both checkpoints.

    Attributes:
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
        before, after = (() if one is None or one.stores_by_id else (
            one.strategy, min(one.num_hosts, self.tensor.rows)) for one in (
                self.before, self.after))
        return before != after


class Made(NamedTuple):
    """A variable without dimensions that the other checkpoint needs, and this one lacks."""

    target: str  # Its name there.
    dtype: int  # A number of the enum `DataType`.
    value: float
    place: Place | None = None  # As of a `Move`.


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """What a migration does."""

    contents: Contents  # Of the checkpoint.
    target: Target  # What the other one is for.
    step: int
    moves: Sequence[Move]  # The tensors that go along, sorted by their names.
    made: Sequence[Made]  # The variables that are computed.
    left_out: Mapping[str, str]  # Why each other tensor stays behind, by its name.
    names: Names  # By which the moves were found.
    pattern: Pattern | None = None  # A checkpoint of the new program that is filled.

    @property
    def written(self) -> set[str]:
        """The names of the tensors that go along or are computed."""
        return {move.target for move in self.moves} | {one.target for one in self.made}

    @property
    def bytes(self) -> int:
        """The bytes of all tensors that go along."""
        return sum(move.tensor.size for move in self.moves)

    @property
    def nameless(self) -> list[Named]:
        """The variables about which the user has said nothing."""
        return [named for named in self.names.variables if named.new is None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a user decides about a migration.

    Attributes:
      map: the new names.
      drop_rest: whether variables without a new name stay behind.
      drop_slots: whether slots without a place stay behind.
      step: of a checkpoint that does not say it.
      like: a checkpoint that the new program has saved, whose places are filled.
    """

    map: Map = Map()
    drop_rest: bool = False
    drop_slots: bool = False
    step: int | None = None
    like: Bundle | None = None


class _Moves:
    """Collects the moves of a plan, and the problems E655 of what the target has no place for."""

    def __init__(self, contents: Contents, target: Target, drop_slots: bool):
        self._contents, self._target, self._drop_slots = contents, target, drop_slots
        self._keeps_suffixes = target.kind == TF1 and not contents.is_tf2
        self.found: list[Move] = []
        self.left_out: dict[str, str] = dict(contents.own)
        self.lacks: list[Problem] = []

    def add_variable(self, named: Named) -> None:
        """Moves a variable and its slots."""
        one, new = named.variable, named.new
        for slot, name in named.alone.items():
            self._add_alone(slot, name, one)
        along = [tensor for tensor in named.tensors if tensor not in named.alone]
        if not isinstance(new, str):
            self.left_out |= dict.fromkeys(along, new_names.why(new))
            return
        there = self._names(one, new)
        if len(along) > 1 and len(there) == 1:
            self._add_lacking(one, along[1:])
        for tensor, (name, place) in zip(named.tensors, there):
            if tensor in along:
                self._add(tensor, name, place, one)

    def add_others(self, named: Mapping[str, str | Rule]) -> None:
        """Moves the step, powers of Adam, and other tensors that are no variables."""
        for tensor, new in named.items():
            self.left_out.pop(tensor, None)
            self._add_alone(tensor, new)
        step, target = self._contents.step, self._target
        if step is not None and step not in named:
            if target.kind == TF1:
                self._add_alone(step, from_tf1.STEP)
            else:  # Versions of Keras have it at different paths.
                self._add_alone(step, self._contents.text_of(step) if self._contents.is_tf2
                                else step_paths(target.optimizer_path)[0])
        for tensor in self._contents.aside:  # The way back looks for its old name.
            if tensor not in named:
                self._add(tensor, tensor, None)

    def ordered(self, names: Names) -> list[Move]:
        """Returns the moves by their names; tensors below a table of TF1 have its order.

        Readers take slots, moving averages and the like to be in the order of their table.
        """
        moves = sorted(self.found, key=lambda move: move.target)
        if self._target.kind != TF1:
            return moves
        tensors = {move.target: move.tensor for move in moves}
        tables = {new for _, new in names.tables if new in tensors}
        return [move if from_tf1.table_of(move.target, tensors, tables) not in tables
                else move._replace(after=self._target.order(move.tensor.rows)) for move in moves]

    def _names(self, one: Variable, new: str) -> Sequence[tuple[str, Place | None]]:
        """Returns the tensor and the place of a variable and of its slots."""
        if self._target.kind != TF1:
            return [(place.key, place)
                    for place in self._target.places(new, one.family, one.is_table)]
        ends = [f'/{name}' for name in self._target.slots_of(one.family, one.is_table)
                ] if one.family is not None else []
        if self._keeps_suffixes:
            ends = [slot.removeprefix(one.tensor) for slot in one.slots]
        return [(f'{new}{end}', None) for end in ('', *ends)]

    def _add_alone(self, tensor: str, new: str | Rule, one: Variable | None = None) -> None:
        """Moves a tensor whose name does not follow from a variable's name."""
        if isinstance(new, Rule):
            self.left_out[tensor] = new_names.why(new)
            return
        place = None if self._target.kind == TF1 else Place.of(new)
        self._add(tensor, new if place is None else place.key, place, one)

    def _add(self, tensor: str, name: str, place: Place | None, one: Variable | None = None
             ) -> None:
        found = self._contents.tensor(tensor)
        if not (found.has_rows if found.code else len(found.pieces) == 1):
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


def read(prefix: str, paths: Paths = Paths(), map: Map = Map(),
         options: CheckpointOptions = CheckpointOptions()) -> Contents:
    """Reads what a checkpoint of either API holds.

    Lines of the map with `table` say which variables are tables, beside manifest and config of TF1,
    and beside the object of TF2 that `paths` name. Of `options`, `assume` counts for TF1.

    Raises:
      CorruptCheckpointError: if it cannot be read.
      ConfigError: E653 if there are no tables at the path, E654 if the map calls something a table
        that cannot be one.
      IncompatibleCheckpointError: E652 if nothing says how the rows of tables are ordered, E655 if
        tables are stacked.
    """
    if is_tf2(Bundle.open(prefix)):
        return from_tf2.read(prefix, paths, map)
    return from_tf1.read(prefix, options, map)


def plan(contents: Contents, target: Target, choices: Choices = Choices(), *,
         may_lack_names: bool = False) -> MigrationPlan:
    """Plans a migration; variables `may_lack_names` for a user who asks which do.

    Raises:
      ConfigError: E654 if the map fits another job, names a target twice, or a variable has no
        new name; with the problems of E655 if there are any.
      IncompatibleCheckpointError: E655 if the target lacks an optimizer, or a tensor cannot be
        read by rows.
    """
    problems = list(target.problems())
    if problems:
        raise ConfigError(*problems)
    found = new_names.names(contents, choices.map, contents.is_tf2 == (target.kind != TF1))
    step, problems = _step(contents, choices)
    moves = _Moves(contents, target, choices.drop_slots)
    for named in found.variables:
        moves.add_variable(named)
    moves.add_others(found.others)
    made = _made(contents, target, choices, step)
    problems += new_names.problems_of_map(contents, target, choices.map)
    problems += new_names.problems_of_names(contents, target, found, choices.map)
    problems += new_names.problems_of_targets(contents, target, [
        *((move.target, move.source, move.place) for move in moves.found),
        *((one.target, 'a variable that is made', one.place) for one in made)])
    moved = moves.ordered(found)
    pattern = Pattern(choices.like, target) if choices.like is not None else None
    if pattern is not None:
        moved, unfit = pattern.fitted(moved, found.tables)
        counter = Place(COUNTER)
        made = pattern.fitting([*made, Made(counter.key, INT64, step, counter)])
        problems += unfit
    if not choices.drop_rest and (problems or not may_lack_names):
        problems += new_names.problems_of_nameless(contents, found)
    if problems:
        raise ConfigError(*problems, *moves.lacks)
    if moves.lacks:
        raise IncompatibleCheckpointError(*moves.lacks)
    return MigrationPlan(
        contents=contents, target=target, step=step, made=made, names=found, moves=moved,
        pattern=pattern, left_out=dict(sorted(moves.left_out.items())))


def _step(contents: Contents, choices: Choices) -> tuple[int, list[Problem]]:
    """Returns the step that the checkpoint says, or that the user says."""
    tensor, bundle, where = contents.step, contents.bundle, label(contents.bundle.prefix)
    said = None
    if tensor is not None and bundle.tensors[tensor].kind in ('int64', 'int32') and (
            bundle.tensors[tensor].rows == 1):
        said = max(int(bundle.read(tensor, 0, 1).reshape(-1)[0]), 0)
    if said is None and choices.step is None:
        return 0, [Problem('E654', where, 'its step must be known', 'no tensor for it',
                           'Say it: --step N.')]
    if said is not None and choices.step not in (None, said):
        return said, [Problem('E654', where, '--step is for a checkpoint that does not say its '
                              f'step, and this one says {said:,}', f'{choices.step:,}',
                              'Leave --step out.')]
    return said if said is not None else choices.step or 0, []


def _made(contents: Contents, target: Target, choices: Choices, step: int) -> list[Made]:
    """Returns the variables that are computed: powers of Adam, and a step that the user says."""
    made = [Made(name, FLOAT32, base**(step + 1)) for name, base in choices.map.powers
            if target.kind == TF1]
    if contents.step is None:
        place = None if target.kind == TF1 else Place.of(step_paths(target.optimizer_path)[0])
        made.append(Made(from_tf1.STEP if place is None else place.key, INT64, step, place))
    return made


def size_of_files(plan: MigrationPlan) -> int:
    """Returns about how many bytes the new checkpoint has, and never too few."""
    names = sum(len(move.target) + 2 * len(move.source) + 300 for move in plan.moves)
    pieces = sum(plan.target.hosts for move in plan.moves if move.after is not None)
    kept = 0
    if plan.pattern is not None:
        tensors = plan.pattern.bundle.tensors
        kept = sum(tensors[name].size + 2 * len(name) + 300 for name in {
            *plan.pattern.kept(plan.written), GRAPH_KEY})
    return plan.bytes + 2 * names + 300 * (pieces + len(plan.made)) + kept + 2**16
