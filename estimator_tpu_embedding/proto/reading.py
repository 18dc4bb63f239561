"""Reads embedding configs from files, SavedModels and streams, and trusts none of them.

The bytes of a file tell its kind, not its name. Its first bytes tell how much of it may be read.
Text is a config or a graph; binary content is a graph or a config. Every problem raises
`UnreadableConfigError`, with one line that is safe to print.

A graph is a program, but this module takes it for data. It imports nothing, builds no function
and looks up no type URL. It reads only the name of a node, its operation and three attributes.
"""

from __future__ import annotations

import dataclasses
import io
import re
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from ..core import limits
from ..errors import Problem, UnreadableConfigError, shown
from . import files
from .checkpoint_format_pb2 import Graph, MetaGraph, SavedModel
from .codec import Config
from .files import Malformed

MAX_TEXT = 2**20
MAX_TEXT_GRAPH = 64 * 2**20
MAX_BINARY_GRAPH = 64 * 2**20
"""The most bytes that are read, by kind of content.

A graph may be larger than the configs in it. Protobuf makes some thirty times as much of empty
nodes.
"""
MAX_CONFIG_BYTES = 8 * 2**20
"""Bytes of all configs of one source. Protobuf makes some forty times as much of empty tables."""
MAX_SHAPE = 8
"""Numbers in the `input_shape` of a feature; TF1 writes one or two, TF2 the rank of the samples."""
MAX_CONFIGS = 100
"""The most different configs in one graph."""

_HEAD = 2**16
NO_CONFIG = 'E488'
"""The code of the error for a whole graph that carries no config."""

SAVED_MODELS = ('saved_model.pb', 'saved_model.pbtxt')
_ACCEPTED = ('Accepted: a TPUEmbeddingConfiguration (text, binary) or a graph (GraphDef, '
             'MetaGraphDef, SavedModel).')
# Text has none of these; a binary message has one of them within a few bytes.
_CONTROLS = re.compile(rb'[\x00-\x08\x0b\x0e-\x1f\x7f]')
_BOM = b'\xef\xbb\xbf'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A config, not checked to be a plan, and its origin: `'saved_model.pb: node "..."'`."""

    where: str
    config: Config


def read_sources(source: str) -> list[Source]:
    """Returns the configs in a file, the directory of a SavedModel, or standard input (`-`).

    They are one entry or more. Equal configs of a graph are one entry, named after the first node.
    """
    if source == '-':
        stream = sys.stdin.buffer if sys.stdin is not None else io.BytesIO()
        try:
            return _read(stream, None, 'standard input')
        except OSError as error:
            raise _unopened('standard input', error) from error
    if not files.is_directory(source):
        return read_file(source)
    path = files.child(source, SAVED_MODELS)
    if path is None:
        raise unreadable('E491', label(source), 'a directory must be that of a SavedModel or '
                         'a model_dir', f'neither {" nor ".join(SAVED_MODELS)} in it')
    return read_file(path, follow=False)


def read_file(path: str, *, follow: bool = True) -> list[Source]:
    """Returns the configs in one file, which may be a link if `follow` is true.

    UnreadableConfigError has the code `NO_CONFIG` if it is a graph without any.
    """
    try:
        with files.open_regular(path, follow=follow) as file:
            return _read(file, files.size_of(file), label(path))
    except UnreadableConfigError:
        raise
    except (OSError, ValueError) as error:
        raise _unopened(label(path), error) from error


def _unopened(where: str, error: OSError | ValueError) -> UnreadableConfigError:
    reason = error.strerror if isinstance(error, OSError) else error
    remedy = 'To read what a pipe holds use - and standard input.' if (
        reason == files.NO_FILE) else ''
    return unreadable('E480', where, 'it must be a regular file that can be read', shown(reason),
                      remedy)


def read_bytes(content: bytes, where: str) -> list[Source]:
    """Returns the configs in the content of a file that messages call `where`."""
    return _read(io.BytesIO(content), len(content), where)


def label(path: str) -> str:
    """Returns a path in a form that is safe to print."""
    return path if path.isprintable() else shown(path, 4096)


def unreadable(code: str, where: str, rule: str, got: str = '', remedy: str = ''
               ) -> UnreadableConfigError:
    """Returns the error for one source."""
    return UnreadableConfigError(Problem(code, where, rule, got, remedy))


def _read(stream: BinaryIO, size: int | None, where: str) -> list[Source]:
    """Returns the configs in a stream; `size` is `None` if nobody knows it before reading."""
    content = files.read_at_most(stream, _HEAD)
    what, most = _kind_and_limit(content)
    try:
        if content[:1] == b'\0':  # No message does; /dev/zero does, without end.
            raise Malformed('it begins with a zero')
        if size is None or size <= most:
            size = len(files.read_at_most(stream, most + 1, content))
        if size > most:
            raise unreadable('E481', where, f'{what} must have at most {most:,} bytes',
                             f'{size:,}' if size > most + 1 else 'more')
        return (_from_binary if what == 'binary content' else _from_text)(content, where)
    except Malformed as error:
        raise unreadable('E484', where, 'it must be a config or a graph',
                         f'{what}, but {error}', _ACCEPTED) from error


def _kind_and_limit(head: bytearray) -> tuple[str, int]:
    """Returns the kind of the content, and how many bytes of it may be read."""
    if _CONTROLS.search(head):
        return 'binary content', MAX_BINARY_GRAPH
    if files.first_word(head) in _WORDS_OF_GRAPHS:
        return 'a text graph', MAX_TEXT_GRAPH
    return 'text', MAX_TEXT


def _from_text(content: bytearray, where: str) -> list[Source]:
    if not content or content.isspace():
        raise unreadable('E482', where, 'it must hold a config', 'nothing: it is empty')
    if files.first_word(content) in _WORDS_OF_GRAPHS:
        return _from_nodes(_carriers_in_text(content), where) or _none_in(
            'a text graph', content, where)
    if b'\\' * (files.MAX_BACKSLASHES + 1) in content:
        raise Malformed(f'more than {files.MAX_BACKSLASHES} backslashes in a row')
    config = Config()
    try:
        text_format.Parse(content.removeprefix(_BOM).decode(), config)
    except UnicodeDecodeError as error:
        raise unreadable('E486', where, 'text must be UTF-8',
                         f'byte 0x{error.object[error.start]:02x}') from error
    except (text_format.ParseError, ValueError) as error:
        raise unreadable('E483', where, 'it must be the text of a TPUEmbeddingConfiguration',
                         shown(' '.join(str(error).split()), 160),
                         _ACCEPTED) from error
    return _checked([(where, config)], 'a config')


def _from_binary(content: bytearray, where: str) -> list[Source]:
    """Returns the configs in a serialized graph, or the config that the content itself is."""
    carriers = _carriers_in_binary(bytes(content))
    if carriers is None:
        return _checked(_messages([(where, bytes(content))], 'a config'), 'a config')
    return _from_nodes(carriers, where) or _none_in('a binary graph', content, where)


def _from_nodes(carriers: Iterable[_Carrier], where: str) -> list[Source]:
    """Returns each config that nodes carry once, named after the first of its nodes."""
    found: dict[bytes, tuple[_Carrier, int]] = {}
    for carrier in carriers:
        first, count = found.get(carrier.config, (carrier, 0))
        found[carrier.config] = first, count + 1
        if len(found) > MAX_CONFIGS:
            raise unreadable('E487', where, 'the nodes of a graph must carry at most '
                             f'{MAX_CONFIGS} different configs', 'more')
    named = [(f'{where}: {_name_of(carrier)}' + (f' and {count - 1} more' if count > 1 else ''),
              content) for content, (carrier, count) in found.items()]
    what = 'all configs of a graph together'
    try:
        return _checked(_messages(named, what), what)
    except Malformed as error:
        raise unreadable('E489', where, 'what its nodes carry must be a TPUEmbeddingConfiguration',
                         str(error)) from error


def _messages(named: Iterable[tuple[str, bytes]], what: str) -> Iterator[tuple[str, Config]]:
    """Yields the configs that serialized messages are; `what` names them together."""
    size = 0
    for where, content in named:
        size += len(content)
        if size > MAX_CONFIG_BYTES:
            raise unreadable('E481', where, f'{what} must have at most {MAX_CONFIG_BYTES:,} bytes',
                             'more')
        try:
            config = Config.FromString(content)
        except (DecodeError, UnicodeDecodeError) as error:  # UnicodeDecodeError: without C.
            raise Malformed('not a whole TPUEmbeddingConfiguration with names in UTF-8') from error
        if config.ByteSize() and not config.ListFields():  # All of its fields are unknown.
            raise Malformed('neither a TPUEmbeddingConfiguration nor a graph')
        yield where, config


def _checked(configs: Iterable[tuple[str, Config]], what: str) -> list[Source]:
    """Returns configs that are not too large; `what` names them together."""
    sources, tables, features = [], 0, 0
    for where, config in configs:
        tables += len(config.table_descriptor)
        features += len(config.feature_descriptor)
        for kind, count, most in (('tables', tables, limits.MAX_TABLES),
                                  ('features', features, limits.MAX_FEATURES)):
            if count > most:
                raise unreadable('E487', where, f'{what} must have at most {most:,} {kind}', 'more')
        if any(len(feature.input_shape) > MAX_SHAPE for feature in config.feature_descriptor):
            raise unreadable('E487', where, 'the input_shape of a feature must have at most '
                             f'{MAX_SHAPE} numbers', 'more')
        if not config.ListFields():
            raise unreadable('E482', where, 'it must hold a config', 'a message without any field',
                             _ACCEPTED)
        sources.append(Source(where=where, config=config))
    return sources


def _none_in(kind: str, content: bytearray, where: str) -> list[Source]:
    raise unreadable(NO_CONFIG, where, 'a node of the graph must carry an embedding config',
                     f'{kind} without such a node', 'Look for it in the graph of a training '
                     'job: an export for serving has none.' + (
                         ' The graph here that is tagged "serve" and "tpu" needs a TPU to load; '
                         'one that is tagged "serve" alone, if there is one, needs none.'
                         if b'TPUPartitionedCall' in content else ''))


def _name_of(carrier: _Carrier) -> str:
    name = f'node "{shown(carrier.node.decode(errors="replace"))}"'
    if carrier.function:
        name += f' of function "{shown(carrier.function.decode(errors="replace"))}"'
    return name


_ATTRIBUTES = {b'config', b'embedding_config', b'tpu_embedding_config'}
_WORDS_OF_GRAPHS = {
    'node', 'library', 'versions', 'version', 'debug_info', 'meta_info_def', 'graph_def',
    'saver_def', 'collection_def', 'signature_def', 'asset_file_def', 'object_graph_def',
    'saved_model_schema_version', 'meta_graphs'}
"""Words that may begin the text of a GraphDef, MetaGraphDef or SavedModel."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Carrier:
    """A node that carries a serialized config; `function` is empty in the graph itself."""

    function: bytes
    node: bytes
    config: bytes


def _is_carrier(op: bytes) -> bool:
    """Whether an operation belongs to the embedding engine; a call of a function does not."""
    return b'TPU' in op or op.startswith(b'ComputeDedupData')


def _carriers_in_binary(content: bytes) -> list[_Carrier] | None:
    """Returns the carriers of a serialized GraphDef, MetaGraphDef or SavedModel, else `None`."""
    is_graph = False
    for parse in (
            lambda given: [one.graph_def for one in SavedModel.FromString(given).meta_graphs],
            lambda given: [MetaGraph.FromString(given).graph_def],
            lambda given: [Graph.FromString(given)]):
        try:
            graphs = parse(content)
        except DecodeError:
            continue
        if found := [carrier for graph in graphs for carrier in _of_graph(graph)]:
            return found
        is_graph |= any(map(_is_graph, graphs))
    return [] if is_graph else None


def _is_graph(graph: Graph) -> bool:
    """Whether a message has what only a graph has: in a config these fields are numbers."""
    return (graph.HasField('library') or graph.HasField('versions')
            or any(node.op for node in graph.node))


def _of_graph(graph: Graph) -> Iterator[_Carrier]:
    yield from _of_nodes(graph.node, b'')
    for function in graph.library.function:
        yield from _of_nodes(function.node_def, function.signature.name)


def _of_nodes(nodes: Iterable[Graph.Node], function: bytes) -> Iterator[_Carrier]:
    for node in nodes:
        for attribute in node.attr if _is_carrier(node.op) else ():
            if attribute.key in _ATTRIBUTES and attribute.value.s:
                yield _Carrier(function=function, node=node.name, config=attribute.value.s)


_STRING = rb'\s*+"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"'
_PARTS = re.compile(  # of a text as TensorFlow writes it: a function, a node, what a node carries
    rb'\bsignature\s*+\{\s*+name:' + _STRING + rb'|\bnode(_def)?\s*+\{\s*+(?:name:' + _STRING
    + rb'\s*+)?+op:' + _STRING + rb'|\bkey:\s*+"(?:(?:tpu_)?embedding_)?config"\s*+value\s*+\{'
    rb'\s*+s:' + _STRING)


def _carriers_in_text(content: bytes | bytearray) -> Iterator[_Carrier]:
    """Yields the carriers of a GraphDef, MetaGraphDef or SavedModel in the text format."""
    function = node = op = b''
    for found in _PARTS.finditer(content) if b'config' in content else ():
        signature, is_in_function, name, operation, config = found.groups()
        if signature is not None:
            function = signature
        elif operation is not None:
            node, op = name or b'', operation
            function = function if is_in_function else b''
        elif config and _is_carrier(op):
            yield _Carrier(function=files.unescaped(function), node=files.unescaped(node),
                           config=files.unescaped(config))
