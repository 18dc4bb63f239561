"""Plans which tensor of one checkpoint becomes which one of another, before any row is read."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..checkpoint.file_names import label
from ..checkpoint.object_graph import Place
from ..checkpoint.tensors import NO_ROW, Tensor
from ..core.names import name_problems
from ..core.partition import Partition
from ..errors import ConfigError, IncompatibleCheckpointError, Problem, quoted, shown
from . import from_tf1
from .contents import Contents, Variable
from .map_file import Map
from .target import TF1, Target, step_path


class Move(NamedTuple):
    """A tensor that goes along.

    Attributes:
      source: its name in the checkpoint.
      target: its name in the other one.
      tensor: what the checkpoint says of it.
      before: the order of its rows; `None` if they are in the order of ids, or no rows of ids.
      after: their order afterwards.
      place: where the graph of objects has it; `None` in TF1.
    """

    source: str
    target: str
    tensor: Tensor
    before: Partition | None = None
    after: Partition | None = None
    place: Place | None = None

    @property
    def is_reordered(self) -> bool:
        """Whether rows change their places."""
        rows = self.tensor.rows
        return _order(self.before, rows) != _order(self.after, rows)


def _order(partition: Partition | None, rows: int) -> tuple[object, ...]:
    if partition is None or partition.stores_by_id:
        return ()
    return partition.strategy, min(partition.num_hosts, rows)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a migration does.

    Attributes:
      contents: of the checkpoint.
      target: what the other one is for.
      step: its step.
      moves: the tensors that go along, sorted by their names.
      tables: pairs of a table and its new name.
      powers: the variables of Adam to be made, with their values.
      left_out: why each other tensor stays behind, by its name.
    """

    contents: Contents
    target: Target
    step: int
    moves: Sequence[Move]
    tables: Sequence[tuple[Variable, str]]
    powers: Mapping[str, float]
    left_out: Mapping[str, str]

    @property
    def bytes(self) -> int:
        """The bytes of all tensors that go along."""
        return sum(move.tensor.size for move in self.moves)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a user decides about a migration.

    Attributes:
      map: the new names.
      drop_rest: whether variables without a new name stay behind.
      drop_slots: whether slots without a place stay behind.
      step: of a checkpoint that does not say it.
    """

    map: Map = Map()
    drop_rest: bool = False
    drop_slots: bool = False
    step: int | None = None


def plan(contents: Contents, target: Target, choices: Choices = Choices()) -> Plan:
    """Plans a migration.

    Raises:
      ConfigError: E654 if the map fits another job, names a target twice, or a variable has no
        new name.
      IncompatibleCheckpointError: E655 if the target lacks an optimizer, or a tensor cannot be
        read by rows.
    """
    planner = _Planner(contents, target, choices)
    planner.name_all()
    if planner.problems:
        raise ConfigError(*planner.problems)
    if planner.lacks:
        raise IncompatibleCheckpointError(*planner.lacks)
    return Plan(contents=contents, target=target, step=planner.step,
                moves=sorted(planner.moves, key=lambda move: move.target), tables=planner.tables,
                powers={name: base**(planner.step + 1) for name, base in choices.map.powers},
                left_out=dict(sorted(planner.left_out.items())))


class _Planner:
    """Collects moves and problems."""

    def __init__(self, contents: Contents, target: Target, choices: Choices):
        self._contents, self._target, self._choices = contents, target, choices
        self._where = label(contents.bundle.prefix)
        self._stays_in_api = contents.is_tf2 == (target.kind != TF1)
        self._keeps_names = target.kind == TF1 and not contents.is_tf2
        self.moves: list[Move] = []
        self.tables: list[tuple[Variable, str]] = []
        self.left_out: dict[str, str] = dict(contents.own)
        self.problems: list[Problem] = []
        self.lacks: list[Problem] = []
        self._nameless: list[str] = []
        self._default = {} if contents.is_tf2 else _default_names(contents)

    def name_all(self) -> None:
        """Names everything."""
        self.step = self._step()
        for one in self._contents.variables:
            self._name(one)
        for tensor in self._contents.own:
            new = self._renamed(self._text(tensor))
            if new is not None:
                del self.left_out[tensor]
                self._move_plain(tensor, new)
        for tensor in self._contents.aside:
            self._name_aside(tensor)
        self._name_step()
        self._check_map()
        self._check_twice()
        self._check_rest()

    def _text(self, tensor: str) -> str:
        """Returns how maps call a tensor: in TF2 without its suffix."""
        place = Place.of_key(tensor) if self._contents.is_tf2 else None
        return tensor if place is None else str(place)

    def _renamed(self, name: str) -> str | None:
        rule = self._choices.map.rule_for(name)
        return rule.renamed(name) if rule is not None else None

    def _name(self, one: Variable) -> None:
        """Names a variable and its slots."""
        rule = self._choices.map.rule_for(one.name)
        if rule is not None and rule.new is None:
            for tensor in (one.tensor, *one.slots):
                self.left_out[tensor] = f'dropped by {rule.where}'
            return
        new = rule.renamed(one.name) if rule is not None else self._default_of(one)
        if new is None:
            self._nameless += [one.tensor, *one.slots]
            return
        if one.is_table:
            self.tables.append((one, new))
            self.problems += [dataclasses.replace(problem, code='E654')
                              for problem in name_problems('table', new)]
        names = self._names(one, new)
        # An expression that fits variable and slot means the variable.
        alone = [tensor for tensor in one.slots if self._choices.map.rule_for(
            self._text(tensor)) not in (None, rule)]
        for tensor in alone:
            self._name_alone(tensor)
        if one.family is not None and not self._keeps_names and (
                self._target.lacks(one.family, one.is_table)):
            self._lacks(one, [tensor for tensor in one.slots if tensor not in alone])
        for tensor, (name, place) in zip((one.tensor, *one.slots), names):
            if tensor not in alone and tensor not in self.left_out:
                self._add(one, tensor, name, place)

    def _default_of(self, one: Variable) -> str | None:
        """Returns the name of a variable about which the map says nothing."""
        if self._stays_in_api:
            return one.name
        if one.is_table:
            return one.name if self._contents.is_tf2 else self._default.get(one.name)
        return None

    def _names(self, one: Variable, new: str) -> list[tuple[str, Place | None]]:
        """Returns tensor and place of a variable and of its slots."""
        family = one.family
        if self._target.kind == TF1:
            suffixes = [tensor.removeprefix(one.tensor) for tensor in one.slots]
            if not self._keeps_names:
                suffixes = [f'/{suffix}' for suffix in (
                    () if family is None else family.tf1 if one.is_table else family.train)]
            return [(new, None), *((f'{new}{suffix}', None) for suffix in suffixes)]
        places = (self._target.table_places(new, family) if one.is_table
                  else self._target.variable_places(new, family))
        return [(place.key, place) for place in places]

    def _name_alone(self, tensor: str) -> None:
        """Names a slot that the map names itself."""
        new = self._renamed(self._text(tensor))
        if new is None:
            self.left_out[tensor] = 'dropped by the map'
        else:
            self._move_plain(tensor, new)

    def _name_aside(self, tensor: str) -> None:
        """Lets a tensor that only TF1 needs keep its name, unless the map says otherwise."""
        if self._choices.map.rule_for(tensor) is not None:
            self._name_alone(tensor)
        else:
            self._add(None, tensor, tensor, None)

    def _move_plain(self, tensor: str, new: str) -> None:
        place = None if self._target.kind == TF1 else Place.of(new)
        self._add(None, tensor, new if place is None else place.key, place)

    def _add(self, one: Variable | None, tensor: str, name: str, place: Place | None) -> None:
        found = self._contents.tensor(tensor)
        is_table = one is not None and one.is_table
        if found.code and any(piece.first_row == NO_ROW for piece in found.pieces) or (
                not found.code and len(found.pieces) != 1):
            self.lacks.append(Problem(
                'E655', self._where, f'tensor "{shown(tensor, 200)}" must be stored as rows',
                'slices of columns', 'Drop it in the map.'))
        self.moves.append(Move(
            tensor, name, found, one.order if one is not None else None,
            self._target.order(found.rows) if is_table and self._target.kind == TF1 else None,
            place))

    def _lacks(self, one: Variable, slots: Sequence[str]) -> None:
        if self._choices.drop_slots:
            for tensor in slots:
                self.left_out[tensor] = f'--to {self._target.kind} has no place for it'
            return
        self.lacks.append(Problem(
            'E655', self._where, f'the optimizer of "{shown(one.name, 200)}" must be one that '
            f'--to {self._target.kind} has', f'{one.family and one.family.name}, with slots '
            f'{quoted([shown(tensor, 200) for tensor in slots])}',
            '--drop-slots keeps the rows; the new optimizer then begins anew.'))

    def _step(self) -> int:
        """Returns the step that the checkpoint says, or that the user says."""
        tensor, bundle = self._contents.step, self._contents.bundle
        if tensor is not None and bundle.tensors[tensor].kind in ('int64', 'int32') and (
                bundle.tensors[tensor].rows == 1):
            return max(int(bundle.read(tensor, 0, 1).reshape(-1)[0]), 0)
        if self._choices.step is None:
            self.problems.append(Problem(
                'E654', self._where, 'its step must be known', 'no tensor for it',
                'Say it: --step N.'))
        return self._choices.step or 0

    def _name_step(self) -> None:
        tensor = self._contents.step
        if tensor is None:
            return
        rule = self._choices.map.rule_for(self._text(tensor))
        if rule is None:
            self._move_plain(tensor, from_tf1.STEP if self._target.kind == TF1
                             else step_path(self._target.optimizer_path))
        elif (new := rule.renamed(self._text(tensor))) is not None:
            self._move_plain(tensor, new)
        else:
            self.left_out[tensor] = f'dropped by {rule.where}'

    def _check_map(self) -> None:
        """Finds lines that are about no variable here: the map may be another job's."""
        names = [one.name for one in self._contents.variables]
        names += [self._text(tensor) for tensor in self._contents.bundle.tensors]
        for rule in self._choices.map.idle(names):
            self.problems.append(Problem(
                'E654', rule.where, f'a line must be about a variable of {self._where}',
                f'"{shown(rule.old, 200)}"', 'Is it the map of another job?'))

    def _check_twice(self) -> None:
        """Finds targets that two tensors would have, or that lie inside of another one."""
        sources: dict[str, list[str]] = collections.defaultdict(list)
        for move in self.moves:
            sources[move.target].append(move.source)
        for name in self._choices.map.powers if self._target.kind == TF1 else ():
            sources[name[0]].append('a power of Adam')
        if self._choices.map.powers and self._target.kind != TF1:
            self.problems.append(Problem(
                'E654', self._where, 'only --to tf1 has powers of Adam', 'a line with "power"',
                'Leave it out.'))
        for target, names in sorted(sources.items()):
            if len(names) > 1:
                self.problems.append(Problem(
                    'E654', self._where, f'"{shown(target, 200)}" must have one source',
                    quoted([shown(name, 200) for name in names]), 'Rename one in the map.'))

    def _check_rest(self) -> None:
        if self._choices.drop_rest:
            for tensor in self._nameless:
                self.left_out[tensor] = 'nothing names it'
        elif self._nameless:
            names = sorted(self._text(tensor) for tensor in self._nameless)
            self.problems.append(Problem(
                'E654', self._where, 'each variable must have a new name',
                f'{len(names):,} without: {quoted([shown(name, 200) for name in names[:20]])}',
                'Name them in the map, or leave all of them out: --drop-rest.'))


def _default_names(contents: Contents) -> dict[str, str]:
    """Returns the name of each table of TF1 by the config of its job."""
    config = from_tf1.parsed(contents.config)
    return from_tf1.table_names(contents.bundle, config)


def size_of_files(plan: Plan) -> int:
    """Returns about how many bytes the new checkpoint has, and never too few."""
    names = sum(len(move.target) + 2 * len(move.source) + 300 for move in plan.moves)
    pieces = sum(plan.target.hosts for move in plan.moves if move.after is not None)
    return plan.bytes + 2 * names + 300 * pieces + 2**16
