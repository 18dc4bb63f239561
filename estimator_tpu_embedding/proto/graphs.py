"""Finds the embedding configs that the nodes of a graph carry, in its text or binary format.

A graph is a program, but this module treats it as bytes. It imports nothing, builds no function
and looks up no type URL. It reads only the name of a node, its operation and three attributes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from . import text
from .wire import LENGTH, VARINT, Malformed, Span, Wire

MAX_DEPTH = 100
"""The deepest nesting of a text graph, which is protobuf's own limit."""

_ATTRIBUTES = {b'config', b'embedding_config', b'tpu_embedding_config'}
_COMMON = b'config'

KINDS = {  # name: the wire types of the fields at the top, and the path to the GraphDef
    'SavedModel': ({1: VARINT, 2: LENGTH}, (2, 2)),
    'MetaGraphDef': (dict.fromkeys(range(1, 8), LENGTH), (2,)),
    'GraphDef': ({1: LENGTH, 2: LENGTH, 3: VARINT, 4: LENGTH, 5: LENGTH}, ())}

FIRST_WORDS = {
    'node', 'library', 'versions', 'version', 'debug_info', 'meta_info_def', 'graph_def',
    'saver_def', 'collection_def', 'signature_def', 'asset_file_def', 'object_graph_def',
    'saved_model_schema_version', 'meta_graphs'}
"""Words that may begin the text of a GraphDef, MetaGraphDef or SavedModel."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A node that carries a config.

    Attributes:
      function: name of the function that has the node; empty for the graph itself.
      node: name of the node.
      config: the serialized config.
    """

    function: bytes
    node: bytes
    config: bytes


def _is_carrier(op: bytes) -> bool:
    """Whether an operation belongs to the embedding engine; a call of a function does not."""
    return b'TPU' in op or op.startswith(b'ComputeDedupData')


def in_binary(wire: Wire, path: tuple[int, ...]) -> Iterator[Carrier]:
    """Yields the carriers of a serialized message.

    Args:
      wire: the message.
      path: path to its GraphDef, see `KINDS`.

    Raises:
      Malformed: if the message is of another kind.
    """
    for graph in wire.all_at(path, wire.whole()):
        for number, kind, value in wire.fields(graph):
            if number == 1 and kind == LENGTH:
                yield from _of_node(wire, value, b'')
            elif number == 2 and kind == LENGTH:
                for function in wire.all_at((1,), value):
                    yield from _of_function(wire, function)


def _mentions_configs(wire: Wire, span: Span) -> bool:
    """Whether a message may hold configs; almost all nodes are skipped without a walk."""
    return wire.content.find(_COMMON, *span) >= 0


def _of_function(wire: Wire, span: Span) -> Iterator[Carrier]:
    if _mentions_configs(wire, span):
        name = wire.last_at((1, 1), span)
        for node in wire.all_at((3,), span):
            yield from _of_node(wire, node, name)


def _of_node(wire: Wire, span: Span, function: bytes) -> Iterator[Carrier]:
    if not _mentions_configs(wire, span) or not _is_carrier(wire.last_at((2,), span)):
        return
    for attribute in wire.all_at((5,), span):
        if wire.last_at((1,), attribute) in _ATTRIBUTES:
            config = wire.last_at((2, 2), attribute)
            if config:
                yield Carrier(function=function, node=wire.last_at((1,), span), config=config)


@dataclasses.dataclass(slots=True)
class _Message:
    """A message of a text graph: the name of its field, and its strings so far."""

    field: bytes
    strings: dict[bytes, bytearray] = dataclasses.field(default_factory=dict)
    configs: list[bytes] = dataclasses.field(default_factory=list)


_STRINGS = {b'node': (b'name', b'op'), b'node_def': (b'name', b'op'), b'attr': (b'key',),
            b'value': (b's',), b'signature': (b'name',)}
_OPEN, _CLOSE, _QUOTES = {b'{', b'<'}, {b'}', b'>'}, b'"\''


def in_text(content: bytes | bytearray) -> Iterator[Carrier]:
    """Yields the carriers of a GraphDef, MetaGraphDef or SavedModel in the text format.

    Raises:
      Malformed: if the text is nested too deeply or does not close what it opens.
    """
    if _COMMON not in content:
        return
    path = [_Message(b'')]
    field, begun = b'', None
    for token in text.tokens(content, of_graph=True):
        if token in _OPEN:
            path.append(_Message(field))
            if len(path) > MAX_DEPTH:
                raise Malformed(f'it is nested more than {MAX_DEPTH} deep')
        elif token in _CLOSE:
            closed = path.pop()
            if not path:
                raise Malformed('a bracket closes what was not opened')
            field = closed.field  # In a list the next message belongs to the same field.
            yield from _close(closed, path[-1])
        elif token[0] not in _QUOTES:
            field, begun = token, None
        elif field in _STRINGS.get(path[-1].field, ()):
            if begun is None:
                begun = path[-1].strings[field] = bytearray()
            begun += token[1:-1]  # Adjacent strings are one string.
    if len(path) > 1:
        raise Malformed('it ends inside a message')


def _close(closed: _Message, parent: _Message) -> Iterator[Carrier]:
    """Passes the strings of a message on to the enclosing one; yields the carrier of a node."""
    strings = closed.strings
    if closed.field == b'value' and parent.field == b'attr':
        parent.strings.update(strings)
    elif closed.field == b'attr':
        if _unescaped(strings, b'key') in _ATTRIBUTES and strings.get(b's'):
            parent.configs.append(_unescaped(strings, b's'))
    elif closed.field == b'signature':
        parent.strings[b'function'] = strings.get(b'name', bytearray())
    elif closed.configs and _is_carrier(_unescaped(strings, b'op')):
        for config in closed.configs:
            yield Carrier(function=_unescaped(parent.strings, b'function'),
                          node=_unescaped(strings, b'name'), config=config)


def _unescaped(strings: dict[bytes, bytearray], field: bytes) -> bytes:
    return text.unescaped(bytes(strings.get(field, b'')))
