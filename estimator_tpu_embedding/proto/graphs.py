"""Finds the embedding configs that the nodes of a graph carry, in its text or binary format.

A graph is a program, but this module takes it for data. It imports nothing, builds no function
and looks up no type URL. It reads only the name of a node, its operation and three attributes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError

from . import text
from .checkpoint_format_pb2 import Graph, MetaGraph, SavedModel

_ATTRIBUTES = {b'config', b'embedding_config', b'tpu_embedding_config'}
_COMMON = b'config'

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


def in_binary(content: bytes) -> list[Carrier] | None:
    """Returns the carriers of a serialized GraphDef, MetaGraphDef or SavedModel.

    Returns:
      `None` if it is none of these.
    """
    is_graph = False
    for parse in (_of_saved_model, _of_meta_graph, lambda given: [Graph.FromString(given)]):
        try:
            graphs = parse(content)
        except DecodeError:
            continue
        if found := [carrier for graph in graphs for carrier in _of_graph(graph)]:
            return found
        is_graph |= any(map(_is_graph, graphs))
    return [] if is_graph else None


def _of_saved_model(content: bytes) -> list[Graph]:
    return [one.graph_def for one in SavedModel.FromString(content).meta_graphs]


def _of_meta_graph(content: bytes) -> list[Graph]:
    return [MetaGraph.FromString(content).graph_def]


def _is_graph(graph: Graph) -> bool:
    """Whether a message has what only a graph has: in a config these fields are numbers."""
    return (graph.HasField('library') or graph.HasField('versions')
            or any(node.op for node in graph.node))


def _of_graph(graph: Graph) -> Iterator[Carrier]:
    yield from _of_nodes(graph.node, b'')
    for function in graph.library.function:
        yield from _of_nodes(function.node_def, function.signature.name)


def _of_nodes(nodes: Iterable[Graph.Node], function: bytes) -> Iterator[Carrier]:
    for node in nodes:
        for attribute in node.attr if _is_carrier(node.op) else ():
            if attribute.key in _ATTRIBUTES and attribute.value.s:
                yield Carrier(function=function, node=node.name, config=attribute.value.s)


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
