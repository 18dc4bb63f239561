"""Reads what a checkpoint of TF2 holds, by the paths of its variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..checkpoint.bundle import Bundle
from ..checkpoint.file_names import label
from ..checkpoint.manifest import read_manifest
from ..checkpoint.object_graph import GRAPH_KEY, Place, joined, unescaped
from ..errors import ConfigError, Problem, quoted, shown
from .contents import Contents, Variable
from .names import recognized, suffixes
from .target import COUNTER, PARAMETERS, VARIABLES, of_layer, step_path


_ATTRIBUTE = '/.ATTRIBUTES/'


class Paths(NamedTuple):
    """Where a program of TF2 has its objects.

    Attributes:
      tables: the TPUEmbedding, or the layer of TFRS that has one.
      optimizer: the Keras optimizer.
    """

    tables: str = 'embedding'
    optimizer: str = 'optimizer'


def read(prefix: str, paths: Paths) -> Contents:
    """Returns the contents of a checkpoint.

    Args:
      prefix: of the checkpoint.
      paths: of the objects in it.

    Raises:
      CorruptCheckpointError: if it cannot be read.
      ConfigError: E653 if there is no table at the path of the object.
    """
    bundle, manifest = Bundle.open(prefix), read_manifest(prefix)
    places = {name: place for name in bundle.tensors
              if (place := Place.of_key(name)) is not None}
    values = {str(place): name for name, place in places.items() if not place.slot}
    found = ((path, dict(_tables(bundle, values, path)))
             for path in (paths.tables, of_layer(paths.tables)))
    path, tables = next((each for each in found if each[1]), ('', {}))
    if not tables:
        raise _no_tables(bundle, values, paths.tables)
    step = values.get(step_path(paths.optimizer))
    own = {name: 'a counter of TF2, or a hyper-parameter of the optimizer'
            for each, name in values.items() if name != step and (
                each == COUNTER or each.startswith(f'{paths.optimizer}/'))}
    own |= {name: 'it describes objects of TF2' for name in bundle.tensors
            if name not in places and _ATTRIBUTE in name or name == GRAPH_KEY}
    inside = f'{path}/'
    variables = list(_variables(places, tables, {
        each: name for each, name in values.items() if name != step and name not in own
        and not (each.startswith(inside) and path)}, paths.optimizer))
    return Contents(bundle=bundle, variables=variables, step=step, own=own,
                    aside=bundle.tensors.keys() - places.keys() - own.keys(),
                    config=manifest.config if manifest is not None else b'')


def _tables(bundle: Bundle, values: dict[str, str], tables_path: str
            ) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the name of each table, and the tensors of its parameters and slots by their names."""
    edges: dict[str, str] = {}
    found: dict[str, dict[str, str]] = {}
    for path, tensor in values.items():
        parent, _, last = path.rpartition('/')
        if parent == tables_path and len(bundle.tensors[tensor].shape) == 2:
            edges[unescaped(last)] = tensor
        elif parent.rpartition('/')[0] == joined(tables_path, VARIABLES):
            found.setdefault(unescaped(parent.rpartition('/')[2]), {})[unescaped(last)] = tensor
    names = suffixes('midlevel')
    for edge, tensor in sorted(edges.items()):
        table, _, slot = edge.rpartition('/')
        if slot in names and table in edges:
            found.setdefault(table, {})[slot] = tensor
        else:
            found.setdefault(edge, {})[PARAMETERS] = tensor
    yield from ((table, parts) for table, parts in found.items() if PARAMETERS in parts)


def _variables(places: dict[str, Place], tables: dict[str, dict[str, str]],
               values: dict[str, str], optimizer_path: str) -> Iterator[Variable]:
    """Yields tables and other variables with their slots."""
    slots: dict[str, dict[str, str]] = {}
    for name, place in places.items():
        if place.slot and place.optimizer == optimizer_path:
            slots.setdefault(place.path, {})[place.slot] = name
    taken: set[str] = set()
    for table, parts in tables.items():
        tensor = parts[PARAMETERS]
        by_keras = slots.get(places[tensor].path, {})
        family, tensors = (recognized(parts, 'midlevel') or recognized(by_keras, 'keras')
                           or (None, ()))
        taken |= {*parts.values(), *tensors}
        yield Variable(name=table, tensor=tensor, is_table=True, family=family, slots=tensors)
    for path, name in values.items():
        if name not in taken:
            family, tensors = recognized(slots.get(path, {}), 'keras') or (None, ())
            taken |= {name, *tensors}
            yield Variable(name=path, tensor=name, family=family, slots=tensors)
    for name, place in places.items():
        if place.slot and name not in taken:
            yield Variable(name=str(place), tensor=name)


def _no_tables(bundle: Bundle, values: dict[str, str], path: str) -> ConfigError:
    parents = sorted({each.rpartition('/')[0] for each, tensor in values.items()
                      if len(bundle.tensors[tensor].shape) == 2})
    return ConfigError(Problem(
        'E653', label(bundle.prefix), f'its object "{shown(path, 200)}" must have '
        'tables, which are variables with two dimensions', 'none there',
        f'Say where they are: --source-path. Objects with such variables: {quoted(parents[:10])}.'))
