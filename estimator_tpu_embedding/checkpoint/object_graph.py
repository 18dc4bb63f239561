"""Names and reads the tensors of TF2's checkpoints, and makes the graph of objects they need.

A checkpoint of TF2 holds each variable under its path from the saved object. It also holds a graph
that says which attributes lead to it. A program finds its variables by that graph:

    embedding/user/.ATTRIBUTES/VARIABLE_VALUE
    embedding/user.Saccumulators/.ATTRIBUTES/VARIABLE_VALUE
    model/dense/kernel/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE

The first is attribute `user` of the object `embedding`, the second its attribute
`user/accumulators`, and the third a slot that a Keras optimizer has made for `kernel`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from google.protobuf.message import DecodeError

from ..proto.checkpoint_format_pb2 import ObjectGraph

GRAPH_KEY = '_CHECKPOINTABLE_OBJECT_GRAPH'
"""The tensor that holds the graph; checkpoints of TF1 have none."""
_VALUE = 'VARIABLE_VALUE'
_SUFFIX = f'/.ATTRIBUTES/{_VALUE}'
_SLOT = '/.OPTIMIZER_SLOT/'
_CALLBACK = 'tf.TPUEmbeddingCallback'
"""The saver with which a TPUEmbedding of TensorFlow loads its tables into a TPU after a restore."""


class Place(NamedTuple):
    """Where the graph of objects has a variable.

    Attributes:
      path: escaped attributes from the root, with `/` between them.
      optimizer: the path of the optimizer, if it is a slot of the variable at `path`.
      slot: the name of that slot.
    """

    path: str
    optimizer: str = ''
    slot: str = ''

    @property
    def key(self) -> str:
        """The name of its tensor."""
        return f'{self}{_SUFFIX}'

    def __str__(self) -> str:
        if not self.slot:
            return self.path
        return f'{self.path}{_SLOT}{joined(self.optimizer, escaped(self.slot))}'

    @classmethod
    def of(cls, text: str) -> Place:
        """Returns the place that a text means, as `str` gives it.

        >>> Place.of('net/w/.OPTIMIZER_SLOT/optimizer/m')
        Place(path='net/w', optimizer='optimizer', slot='m')
        """
        path, mark, rest = text.partition(_SLOT)
        optimizer, _, slot = rest.rpartition('/')
        return cls(path, optimizer, unescaped(slot)) if mark else cls(path)

    @classmethod
    def of_key(cls, key: str) -> Place | None:
        """Returns the place of a tensor; `None` if it holds no variable."""
        return cls.of(key.removesuffix(_SUFFIX)) if key.endswith(_SUFFIX) else None


def escaped(attribute: str) -> str:
    """Returns an attribute as paths have it.

    >>> escaped('user/momenta.1')
    'user.Smomenta..1'
    """
    return attribute.replace('.', '..').replace('/', '.S')


def unescaped(part: str) -> str:
    """Returns the attribute that a part of a path stands for; the inverse of `escaped`."""
    return '.'.join(each.replace('.S', '/') for each in part.split('..'))


def joined(path: str, part: str) -> str:
    """Returns a path that is one part longer; the root has the path `''`."""
    return f'{path}/{part}' if path else part


def keys_below(graph: bytes, path: str) -> dict[str, dict[str, str]]:
    """Returns the keys of the variables two steps below an object.

    Args:
      graph: as `GRAPH_KEY` holds it. Nothing in it is trusted.
      path: of the object.

    Returns:
      The keys by the attributes that lead to them; nothing if there is no such object.
    """
    try:
        nodes = ObjectGraph.FromString(graph).nodes
    except DecodeError:
        return {}

    def children(number: int) -> Mapping[str, int]:
        return {child.local_name: child.node_id for child in nodes[number].children
                if 0 <= child.node_id < len(nodes)} if nodes else {}

    number: int | None = 0
    for part in path.split('/') if path else ():
        number = children(number).get(unescaped(part)) if number is not None else None
    return {} if number is None else {
        first: {second: attribute.checkpoint_key for second, leaf in children(middle).items()
                for attribute in nodes[leaf].attributes if attribute.name == _VALUE}
        for first, middle in children(number).items()}


class GraphBuilder:
    """Builds a graph of objects from places."""

    def __init__(self) -> None:
        self._graph = ObjectGraph(nodes=[ObjectGraph.Node()])
        self._ids = {'': 0}

    def add(self, place: Place, name: str) -> None:
        """Adds a variable, and the objects on its way.

        Args:
          place: of the variable.
          name: of the variable, or its key, for readers that know no objects.
        """
        if place.slot:
            number = self._new()
            self._graph.nodes[self._object(place.optimizer)].slot_variables.add(
                original_variable_node_id=self._object(place.path), slot_name=place.slot,
                slot_variable_node_id=number)
        else:
            number = self._object(place.path)
        self._graph.nodes[number].attributes.add(
            name=_VALUE, full_name=name.removesuffix(_SUFFIX), checkpoint_key=place.key)

    def alias(self, path: str, target: str) -> None:
        """Lets a second path lead to the object at `target`, which is there already."""
        parent, _, last = path.rpartition('/')
        self._graph.nodes[self._object(parent)].children.add(
            node_id=self._object(target), local_name=unescaped(last))

    def load_into_tpu(self, path: str) -> None:
        """Marks the object at `path` as a TPUEmbedding, whose tables are loaded after a restore."""
        saver = self._graph.nodes[self._object(path)].registered_saver
        saver.name, saver.object_name = _CALLBACK, path

    def content(self) -> bytes:
        """Returns the graph as `GRAPH_KEY` holds it."""
        content: bytes = self._graph.SerializeToString(deterministic=True)
        return content

    def _new(self) -> int:
        self._graph.nodes.add()
        return len(self._graph.nodes) - 1

    def _object(self, path: str) -> int:
        if path not in self._ids:
            parent, _, last = path.rpartition('/')
            above = self._object(parent)
            self._ids[path] = self._new()
            self._graph.nodes[above].children.add(
                node_id=self._ids[path], local_name=unescaped(last))
        return self._ids[path]
