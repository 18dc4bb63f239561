"""Puts what goes along into the places of a checkpoint that the new program has saved.

The program knows its objects best. Its own checkpoint, saved before any step, has all of them:
rates of optimizers, slots that newer optimizers of Keras number. The result has the same graph of
objects, and other values.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..checkpoint.bundle import Bundle, corrupt, holds, opened
from ..checkpoint.file_names import label
from ..checkpoint.object_graph import GRAPH_KEY, Graph, Place, joined
from ..checkpoint.tensors import Tensor
from ..errors import Problem, quoted, shown
from .contents import Family, Variable
from .target import KERAS, MIDLEVEL, PARAMETERS, TFRS, VARIABLES, Target, of_layer, step_paths

if TYPE_CHECKING:
    from .plan import Made, Move


class Objects(NamedTuple):
    """Where a program has its objects, by its checkpoint.

    Attributes:
      tables: the paths of objects with tables.
      optimizers: the paths of Keras optimizers.
      slots: who has made the slots of tables, as `Target` calls it.
    """

    tables: Sequence[str]
    optimizers: Sequence[str]
    slots: str

    @classmethod
    def of(cls, bundle: Bundle) -> Objects:
        """Finds the objects in a checkpoint of TF2."""
        graph = Graph(bundle.read_text(GRAPH_KEY))
        tables, optimizers, parts = [], [], set[str]()
        for path in graph.paths():
            own = {name for each in graph.keys_below(joined(path, VARIABLES)).values()
                   for name in each}
            if PARAMETERS in own:
                tables.append(path)
                parts |= own
            elif any(graph.key_of(Place(step)) for step in step_paths(path)):
                optimizers.append(path)
        return cls(tables, optimizers, MIDLEVEL if parts - {PARAMETERS} else KERAS)

    def fill(self, target: Target, *, path: bool, optimizer: bool, slots: bool) -> Target:
        """Returns a target with these objects, as far as asked, where there is one of a kind."""
        changes: dict[str, Any] = {}
        if path and len(self.tables) == 1:
            found, end = self.tables[0], of_layer('')
            changes['object_path'] = found if target.kind != TFRS else (
                '' if found == end else found.removesuffix(f'/{end}'))
        if optimizer and len(self.optimizers) == 1:
            changes['optimizer_path'] = self.optimizers[0]
        if slots and self.tables:
            changes['slots'] = self.slots
        return dataclasses.replace(target, **changes)


class Pattern:
    """A checkpoint of TF2 whose places are filled; `target` says where it has its objects."""

    def __init__(self, bundle: Bundle, target: Target):
        self.bundle = bundle
        self._target = target
        self._graph = Graph(bundle.read_text(GRAPH_KEY))
        self._tables = self._graph.keys_below(joined(target.tables_path, VARIABLES))

    def fitted(self, moves: Sequence[Move], tables: Sequence[tuple[Variable, str]]
               ) -> tuple[list[Move], list[Problem]]:
        """Returns moves to the keys that the checkpoint has, and what does not fit."""
        keys = {tensor: key for one, table in tables for tensor, key in self._of_table(one, table)}
        found: dict[str, Move] = {}
        problems: list[Problem] = []
        for move in moves:
            if move.place is None:  # It is for the way back.
                if move.target not in self.bundle.tensors:
                    found[move.target] = move
                continue
            key = keys.get(move.source) or self._key_of(move.place)
            problems += self._of_move(move, key, found)
            found[key or move.target] = move._replace(target=key or move.target)
        return sorted(found.values(), key=lambda move: move.target), problems

    def fitting(self, made: Sequence[Made]) -> list[Made]:
        """Returns the variables that are computed, as far as the checkpoint has them."""
        return [one._replace(target=key) for one in made if one.place is not None
                and (key := self._key_of(one.place)) is not None]

    def kept(self, written: Collection[str]) -> list[str]:
        """Returns the tensors that keep their values."""
        return sorted(self.bundle.tensors.keys() - set(written) - {GRAPH_KEY})

    def _of_table(self, one: Variable, table: str) -> Iterator[tuple[str, str]]:
        """Yields tensors of a table and its slots with their keys, whoever has made the slots."""
        there = self._tables.get(table, {})
        family = one.family or Family('none')
        for tensor, name in zip((one.tensor, *one.slots), (PARAMETERS, *family.midlevel)):
            if name in there:
                yield tensor, there[name]

    def _key_of(self, place: Place) -> str | None:
        """Returns the key of a place; the step may have another one there."""
        steps = step_paths(self._target.optimizer_path)
        paths = steps if place.path in steps else [place.path]
        keys = (self._graph.key_of(place._replace(path=path)) for path in paths)
        return next(filter(None, keys), None)

    def _of_move(self, move: Move, key: str | None, found: Collection[str]) -> Iterator[Problem]:
        where = f'--like: {label(self.bundle.prefix)}'
        if key is None or key not in self.bundle.tensors:
            places = [str(place) for name in self.bundle.tensors
                      if (place := Place.of_key(name)) is not None]
            near = difflib.get_close_matches(str(move.place), places, n=3)
            yield Problem(
                'E654', where, f'it must have "{shown(move.place, 200)}" for '
                f'"{shown(move.source, 200)}"', 'none', f'Similar there: {quoted(near)}.' if near
                else 'Did the program make all variables before it was saved?')
            return
        tensor = self.bundle.tensors[key]
        if (tensor.shape, tensor.dtype) != (move.tensor.shape, move.tensor.dtype):
            yield Problem(
                'E654', where, f'"{shown(move.place, 200)}" must be {move.tensor.kind} '
                f'{list(move.tensor.shape)}, as "{shown(move.source, 200)}" is',
                f'{tensor.kind} {list(tensor.shape)}')
        if key in found:
            yield Problem('E654', where, f'"{shown(move.place, 200)}" must have one source',
                          f'"{shown(move.source, 200)}" and another one')

    def verified(self, name: str) -> Tensor:
        """Returns the description of a tensor that is to be copied.

        Raises:
          CorruptCheckpointError: if its bytes are damaged.
        """
        tensor = self.bundle.tensors[name]
        for piece in tensor.pieces:
            with opened(self.bundle.prefix, piece.file) as file:
                if holds(file, piece, tensor) is False:
                    raise corrupt(self.bundle.prefix, f'the checksum of tensor '
                                  f'"{shown(tensor.name)}" must hold', 'another one')
        return tensor
