"""Gives a checkpoint of TF2 its graph of objects: that of the new program, or one made anew.

The program knows its objects best. Its own checkpoint (`--like`), saved before any step, has all of
them: rates of optimizers, slots that newer optimizers of Keras number. The result then has the same
graph of objects, and other values.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from ..checkpoint.bundle import Bundle
from ..checkpoint.file_names import label
from ..checkpoint.object_graph import GRAPH_KEY, Graph, GraphBuilder, Place, escaped, joined
from ..errors import Problem, quoted, shown
from .checkpoint_contents import (
    COUNTER,
    INT64,
    KERAS,
    MIDLEVEL,
    PARAMETERS,
    TFRS,
    VARIABLES,
    Family,
    Target,
    Variable,
    of_layer,
    step_paths,
)

if TYPE_CHECKING:  # The writer needs NumPy.
    from ..checkpoint.bundle_writer import BundleWriter
    from .moves import Made, MigrationPlan, Move


def located(bundle: Bundle, kind: str) -> dict[str, str]:
    """Returns the values of a `Target` of some kind that a checkpoint of TF2 shows.

    They are the paths of the object with the tables and of the Keras optimizer, where there is one
    of a kind, and who has made the slots of tables.
    """
    graph = Graph(bundle.read_text(GRAPH_KEY))
    tables, optimizers, parts = [], [], set[str]()
    for one in graph.paths():
        own = {name for each in graph.keys_below(joined(one, VARIABLES)).values() for name in each}
        if PARAMETERS in own:
            tables.append(one)
            parts |= own
        elif any(graph.key_of(Place(step)) for step in step_paths(one)):
            optimizers.append(one)
    found: dict[str, str] = {}
    if len(tables) == 1:
        end = of_layer('')
        found['object_path'] = tables[0] if kind != TFRS else (
            '' if tables[0] == end else tables[0].removesuffix(f'/{end}'))
    if len(optimizers) == 1:
        found['optimizer_path'] = optimizers[0]
    if tables:
        found['slots'] = MIDLEVEL if parts - {PARAMETERS} else KERAS
    return found


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


def write_graph(plan: MigrationPlan, out: BundleWriter) -> None:
    """Writes the graph of objects, and the counter that `tf.train.Checkpoint` expects."""
    graph = GraphBuilder()
    for move in plan.moves:
        if move.place is not None:  # Others are for the way back.
            graph.add(move.place, move.source)
    for made in plan.made:
        if made.place is not None:
            graph.add(made.place, made.target)
    counter = Place(COUNTER)
    if all(move.target != counter.key for move in plan.moves):
        graph.add(counter, COUNTER)
        out.rows(counter.key, INT64, ())[0].append(plan.step.to_bytes(8, 'little'))
    above = joined(plan.target.tables_path, VARIABLES)
    written = {move.place for move in plan.moves}
    for one, table in plan.names.tables:
        own, *slots = plan.target.places(table, one.family, is_table=True)
        graph.alias(joined(joined(above, escaped(table)), PARAMETERS), own.path)
        for place in slots if plan.target.slots != KERAS else ():
            if place in written:
                slot = place.path.rpartition('.S')[2]
                graph.alias(joined(joined(above, escaped(table)), slot), place.path)
    graph.load_into_tpu(plan.target.tables_path)
    out.text(GRAPH_KEY, graph.content())
