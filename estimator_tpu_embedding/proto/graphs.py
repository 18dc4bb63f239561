"""Finds the embedding configs that the nodes of a graph carry, in its text or binary format.

A graph is a program, but this module treats it as bytes. It imports nothing, builds no function
and looks up no type URL. It reads only the name of a node, its operation and three attributes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from . import text
from .wire import LENGTH, VARINT, Span, Wire

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


_STRING = rb'\s*+"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"'
_PARTS = re.compile(  # of a text as TensorFlow writes it: a function, a node, what a node carries
    rb'\bsignature\s*+\{\s*+name:' + _STRING + rb'|\bnode(_def)?\s*+\{\s*+(?:name:' + _STRING
    + rb'\s*+)?+op:' + _STRING + rb'|\bkey:\s*+"(?:(?:tpu_)?embedding_)?config"\s*+value\s*+\{'
    rb'\s*+s:' + _STRING)


def in_text(content: bytes | bytearray) -> Iterator[Carrier]:
    """Yields the carriers of a GraphDef, MetaGraphDef or SavedModel in the text format.

    Raises:
      Malformed: if a config is too long.
    """
    function = node = op = b''
    for found in _PARTS.finditer(content) if _COMMON in content else ():
        signature, is_in_function, name, operation, config = found.groups()
        if signature is not None:
            function = signature
        elif operation is not None:
            node, op = name or b'', operation
            function = function if is_in_function else b''
        elif config and _is_carrier(op):
            yield Carrier(function=text.unescaped(function), node=text.unescaped(node),
                          config=text.unescaped(config))
