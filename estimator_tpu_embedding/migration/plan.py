"""Plans which tensor of one checkpoint becomes which one of another, before any row is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ..checkpoint.bundle import Bundle
from ..checkpoint.file_names import label
from ..checkpoint.object_graph import GRAPH_KEY, Place
from ..errors import ConfigError, IncompatibleCheckpointError, Problem
from . import checks, from_tf1
from .contents import Contents, Variable
from .map_file import Map
from .moves import FLOAT32, INT64, Made, Move, Moves
from .naming import Named, Names, names
from .pattern import Pattern
from .target import TF1, Target, step_path


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a migration does.

    Attributes:
      contents: of the checkpoint.
      target: what the other one is for.
      step: its step.
      moves: the tensors that go along, sorted by their names.
      tables: pairs of a table and its new name.
      made: the variables that are computed.
      left_out: why each other tensor stays behind, by its name.
      names: by which the moves were found.
      pattern: a checkpoint of the new program that is filled; `None` if there is none.
    """

    contents: Contents
    target: Target
    step: int
    moves: Sequence[Move]
    tables: Sequence[tuple[Variable, str]]
    made: Sequence[Made]
    left_out: Mapping[str, str]
    names: Names
    pattern: Pattern | None = None

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
        return [named for named in self.names.variables if named.is_nameless]


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


def plan(contents: Contents, target: Target, choices: Choices = Choices()) -> Plan:
    """Plans a migration.

    Args:
      contents: of the checkpoint.
      target: what the other one is for.
      choices: of the user.

    Raises:
      ConfigError: E654 if the map fits another job, names a target twice, or a variable has no
        new name; with the problems of E655 if there are any.
      IncompatibleCheckpointError: E655 if the target lacks an optimizer, or a tensor cannot be
        read by rows.
    """
    made = draft(contents, target, choices)
    if not choices.drop_rest and made.nameless:
        raise ConfigError(*checks.of_nameless(contents, made.nameless))
    return made


def draft(contents: Contents, target: Target, choices: Choices) -> Plan:
    """Plans a migration that may lack names, for a user who wants to know which.

    Raises:
      As `plan`, but not for variables without names.
    """
    problems = list(checks.of_target(target))
    if problems:
        raise ConfigError(*problems)
    found = names(contents, choices.map, contents.is_tf2 == (target.kind != TF1))
    step, problems = _step(contents, choices)
    moves = Moves(contents, target, choices.drop_slots)
    for named in found.variables:
        moves.add_variable(named)
    moves.add_others(found.others)
    made = _made(contents, target, choices, step)
    problems += checks.of_map(contents, target, choices.map)
    problems += checks.of_names(contents, target, found, choices.map)
    problems += checks.of_targets(contents, target, [
        *((move.target, move.source, move.place) for move in moves.found),
        *((one.target, 'a variable that is made', one.place) for one in made)])
    moved = moves.ordered()
    pattern = Pattern(choices.like, target) if choices.like is not None else None
    if pattern is not None:
        moved, unfit = pattern.fitted(moved, moves.tables)
        made, problems = pattern.made(made, step), [*problems, *unfit]
    if problems and not choices.drop_rest:
        problems += checks.of_nameless(contents, [
            named for named in found.variables if named.is_nameless])
    if problems:
        raise ConfigError(*problems, *moves.lacks)
    if moves.lacks:
        raise IncompatibleCheckpointError(*moves.lacks)
    return Plan(contents=contents, target=target, step=step, made=made, names=found,
                moves=moved, tables=moves.tables, pattern=pattern,
                left_out=dict(sorted(moves.left_out.items())))


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
        place = None if target.kind == TF1 else Place.of(step_path(target.optimizer_path))
        made.append(Made(from_tf1.STEP if place is None else place.key, INT64, step, place))
    return made


def size_of_files(plan: Plan) -> int:
    """Returns about how many bytes the new checkpoint has, and never too few."""
    names = sum(len(move.target) + 2 * len(move.source) + 300 for move in plan.moves)
    pieces = sum(plan.target.hosts for move in plan.moves if move.after is not None)
    kept = 0
    if plan.pattern is not None:
        tensors = plan.pattern.bundle.tensors
        kept = sum(tensors[name].size + 2 * len(name) + 300 for name in {
            *plan.pattern.kept(plan.written), GRAPH_KEY})
    return plan.bytes + 2 * names + 300 * (pieces + len(plan.made)) + kept + 2**16
