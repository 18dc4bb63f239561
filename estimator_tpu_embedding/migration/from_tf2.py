"""Reads what a checkpoint of TF2 holds, by the paths of its variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ..checkpoint.bundle import Bundle
from ..checkpoint.file_names import label
from ..checkpoint.manifest import read_manifest
from ..checkpoint.object_graph import GRAPH_KEY, Graph, Place, joined, unescaped
from ..errors import ConfigError, IncompatibleCheckpointError, Problem, quoted, shown
from .checkpoint_contents import (
    COUNTER,
    PARAMETERS,
    VARIABLES,
    Contents,
    Variable,
    of_layer,
    recognized,
    step_paths,
    suffixes,
)
from .map_file import Map

_ATTRIBUTE = '/.ATTRIBUTES/'
_OF_MODEL = '/_trainable_variables/'
"""Optimizers of Keras 3 have the variables of the model there, beside their own."""
_LAYOUTS = '_sparse_core_table_layouts'
"""An attribute of TPUEmbeddingV2, which stacks tables of one width into one variable."""


class Paths(NamedTuple):
    """Where a program of TF2 has its objects.

    Attributes:
      tables: the TPUEmbedding, or the layer of TFRS that has one.
      optimizer: the Keras optimizer.
    """

    tables: str = 'embedding'
    optimizer: str = 'optimizer'


def read(prefix: str, paths: Paths, map: Map = Map()) -> Contents:
    """Returns the contents of a checkpoint, as `moves.read`."""
    bundle, manifest = Bundle.open(prefix), read_manifest(prefix)
    places = {name: place for name in bundle.tensors
              if (place := Place.of_key(name)) is not None}
    graph = Graph(bundle.read_text(GRAPH_KEY))
    values = {str(place): name for name, place in places.items() if not place.slot}
    tables = _tables(bundle, graph, values, paths, map)
    step = next((values[path] for path in step_paths(paths.optimizer) if path in values), None)
    own = {name: 'a counter of TF2, or a hyper-parameter of the optimizer'
           for each, name in values.items() if name != step and (
               each == COUNTER or not bundle.tensors[name].shape
               and each.startswith(f'{paths.optimizer}/') and _OF_MODEL not in each)}
    own |= {name: 'it describes objects of TF2' for name in bundle.tensors
            if name not in places and _ATTRIBUTE in name or name == GRAPH_KEY}
    variables = list(_variables(places, tables, {
        each: name for each, name in values.items() if name != step and name not in own},
        lambda path: {name: key for name, key in graph.slots_of(
            path, paths.optimizer, suffixes('keras')).items() if key in places}))
    return Contents(bundle=bundle, variables=variables, step=step, own=own,
                    aside=bundle.tensors.keys() - places.keys() - own.keys(),
                    config=manifest.config if manifest is not None else b'')


def _tables(bundle: Bundle, graph: Graph, values: Mapping[str, str], paths: Paths, map: Map
            ) -> dict[str, dict[str, str]]:
    """Returns the tensors of each table by their names, the rows as `PARAMETERS`."""
    def at(path: str) -> dict[str, dict[str, str]]:
        told = graph.keys_below(joined(path, VARIABLES))
        tables = {table: {name: key for name, key in parts.items() if key in bundle.tensors}
                  for table, parts in told.items()}
        return {table: parts for table, parts in tables.items() if PARAMETERS in parts
                and len(bundle.tensors[parts[PARAMETERS]].shape) == 2}

    stacked = sorted(name for name in bundle.tensors if _LAYOUTS in name)
    if stacked:
        raise IncompatibleCheckpointError(Problem(
            'E655', label(bundle.prefix), 'each table must be a tensor of its own',
            f'tables that are stacked for SparseCores, as "{shown(stacked[0], 200)}" says',
            'Restore it into a TPUEmbeddingForServing and save that; it has the rows, without '
            'slots.'))
    found = at(paths.tables) or at(of_layer(paths.tables))
    known = {parts[PARAMETERS] for parts in found.values()}
    for path, tensor in values.items():
        rule = map.rule_for(path)
        if tensor not in known and rule is not None and rule.is_table:
            parent, _, last = path.rpartition('/')
            found[path] = at(parent).get(unescaped(last), {PARAMETERS: tensor})
    if not found:
        raise _no_tables(bundle, values, paths.tables)
    return found


def _variables(places: Mapping[str, Place], tables: Mapping[str, dict[str, str]],
               values: Mapping[str, str], slots_of: Callable[[str], dict[str, str]]
               ) -> Iterator[Variable]:
    found = [(table, parts[PARAMETERS], parts) for table, parts in tables.items()]
    rows = {tensor for _, tensor, _ in found}
    found += [(path, tensor, {}) for path, tensor in values.items() if tensor not in rows]
    recognized_slots = {
        tensor: recognized(parts, 'midlevel') or recognized(
            slots_of(places[tensor].path), 'keras') or (None, ()) for _, tensor, parts in found}
    taken = {slot for _, slots in recognized_slots.values() for slot in slots} - rows
    for name, tensor, _ in found:
        if tensor not in taken:
            family, slots = recognized_slots[tensor]
            yield Variable(name=name, tensor=tensor, is_table=tensor in rows, family=family,
                           slots=slots)
    for tensor, place in places.items():
        if place.slot and tensor not in taken:
            yield Variable(name=str(place), tensor=tensor)


def _no_tables(bundle: Bundle, values: Mapping[str, str], path: str) -> ConfigError:
    parents = sorted({each.rpartition('/')[0] for each, tensor in values.items()
                      if len(bundle.tensors[tensor].shape) == 2})
    return ConfigError(Problem(
        'E653', label(bundle.prefix), f'its object "{shown(path, 200)}" must have '
        'tables, which are variables with two dimensions', 'none there',
        f'Say where they are: --source-path. Objects with such variables: {quoted(parents[:10])}.'))
