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

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_MOST_PARTS = 32
_LISTS = {'m': '_momentums', 'v': '_velocities', 'accumulator': '_accumulators',
          'linear': '_linears'}
"""Where optimizers of Keras 3 have the slots of these names."""


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


_Slots = tuple[Mapping[tuple[int, str], str | None], Mapping[str, Sequence[str | None]]]
"""Keys of slots by the node of the variable and their name, and by the names of their variables."""


class Graph:
    """The graph of objects of a checkpoint. Nothing in it is trusted."""

    def __init__(self, content: bytes):
        """Takes what `GRAPH_KEY` holds; other bytes are a graph without objects."""
        try:
            self._nodes = ObjectGraph.FromString(content).nodes
        except DecodeError:
            self._nodes = ObjectGraph().nodes
        self._slots: dict[str, _Slots] = {}
        self._known: dict[int, Mapping[str, int]] = {}

    def paths(self) -> Iterator[str]:
        """Yields a shortest path to each object of at most 32 parts, beginning at the root."""
        found = {0: ''} if self._nodes else {}
        waiting = collections.deque(found)
        while waiting:
            number = waiting.popleft()
            yield found[number]
            is_deep = found[number].count('/') >= _MOST_PARTS - 1  # A hostile graph may be a chain.
            for attribute, child in self._children(number).items() if not is_deep else ():
                if child not in found:
                    found[child] = joined(found[number], escaped(attribute))
                    waiting.append(child)

    def keys_below(self, path: str) -> dict[str, dict[str, str]]:
        """Returns the keys of the variables two steps below an object, by both attributes."""
        return {first: {second: key for second, leaf in self._children(middle).items()
                        if (key := self._key(leaf)) is not None}
                for first, middle in self._children(self._object(path)).items()}

    def slots_of(self, path: str, optimizer: str, names: Iterable[str]) -> dict[str, str]:
        """Returns the keys of those slots of a variable that an optimizer has, by their names."""
        return {name: key for name in names
                if (key := self.key_of(Place(path, optimizer, name))) is not None}

    def key_of(self, place: Place) -> str | None:
        """Returns the key of a variable or slot, by whatever way it is reached.

        The slot of a newer optimizer of Keras has the name that a legacy one gives it.
        """
        number = self._object(place.path)
        if number is None or not place.slot:
            return self._key(number)
        if place.optimizer not in self._slots:
            self._slots[place.optimizer] = self._slots_of(self._object(place.optimizer))
        by_number, by_name = self._slots[place.optimizer]
        found = by_name.get(f'{place.slot}/{self._full_name(number)}', ())
        return by_number.get((number, place.slot)) or (found[0] if len(found) == 1 else None)

    def _slots_of(self, optimizer: int | None) -> _Slots:
        """Returns the slots of an optimizer of any age."""
        by_number: dict[tuple[int, str], str | None] = {}
        by_name: dict[str, list[str | None]] = {}
        for slot in self._nodes[optimizer].slot_variables if optimizer is not None else ():
            by_number[slot.original_variable_node_id, slot.slot_name] = self._key(
                slot.slot_variable_node_id)
        lists = self._children(optimizer)
        # Keras 3 has its variables in a list, and slots in lists of the same order.
        variables = self._children(lists.get('_trainable_variables'))
        for name, attribute in _LISTS.items():
            for position, slot_number in self._children(lists.get(attribute)).items():
                if position in variables:
                    by_number[variables[position], name] = self._key(slot_number)
        # Keras 2 names its slots after their variables, perhaps behind its own name.
        for slot_number in self._children(lists.get('_variables')).values():
            full = self._full_name(slot_number)
            for text in {full, full.partition('/')[2]}:
                by_name.setdefault(text, []).append(self._key(slot_number))
        return by_number, by_name

    def _object(self, path: str) -> int | None:
        number: int | None = 0 if self._nodes else None
        for part in path.split('/') if path else ():
            number = self._children(number).get(unescaped(part))
        return number

    def _children(self, number: int | None) -> Mapping[str, int]:
        if number is None:
            return {}
        if number not in self._known:
            self._known[number] = {
                child.local_name: child.node_id for child in self._nodes[number].children
                if 0 <= child.node_id < len(self._nodes)}
        return self._known[number]

    def _key(self, number: int | None) -> str | None:
        return next((attribute.checkpoint_key for attribute in self._attributes(number)
                     if attribute.name == _VALUE), None)

    def _full_name(self, number: int) -> str:
        return next((attribute.full_name for attribute in self._attributes(number)), '')

    def _attributes(self, number: int | None) -> Sequence[ObjectGraph.Value]:
        return self._nodes[number].attributes if number is not None and (
            0 <= number < len(self._nodes)) else ()


class GraphBuilder:
    """Builds a graph of objects from places."""

    def __init__(self) -> None:
        self._graph = ObjectGraph(nodes=[ObjectGraph.Node()])
        self._ids = {'': 0}

    def add(self, place: Place, name: str) -> None:
        """Adds a variable, and the objects on its way.

        `name` is that of the variable, or its key, for readers that know no objects.
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
