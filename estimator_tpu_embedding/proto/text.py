"""The text format of protos: reads it without recursion, and writes graphs in it fast."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from google.protobuf import text_format

from .files import Malformed

MAX_STRING = 4 * 2**20
MAX_BACKSLASHES = 32
"""The most backslashes in a row: protobuf takes a time that grows with their square."""

_COMMENT = rb'#[^\n]*+'
_STRING = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|\'[^\'\\\n]*+(?:\\.[^\'\\\n]*+)*+\''
_TOKEN = re.compile(_COMMENT + rb'|(' + _STRING + rb'|[{}<>\[\]"\']|[\w.+-]++)')
_FIRST_WORD = re.compile(rb'(?:\s++|#[^\n]*+\n)*+([A-Za-z_]\w*+)')
_ESCAPE = re.compile(rb'\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))', re.DOTALL)
_CONTROLS = dict(zip(b'abfnrtv', b'\a\b\f\n\r\t\v'))


def first_word(content: bytes | bytearray) -> str:
    """Returns the name of the first field; empty if there is none."""
    found = _FIRST_WORD.match(content)
    return found[1].decode() if found is not None else ''


def tokens(content: bytes | bytearray) -> Iterator[bytes]:
    """Yields strings, brackets and words; comments and punctuation are left out."""
    for found in _TOKEN.finditer(content):
        token = found[1]
        if token in (b'"', b"'"):
            raise Malformed(f'a string without an end at byte {found.start()}')
        if token is not None:
            yield token


def unescaped(content: bytes) -> bytes:
    """Returns the bytes of a string of the text format, which is given without its quotes.

    >>> unescaped(rb'\\n\\003\\x41\\"')
    b'\\n\\x03A"'
    """
    if len(content) > MAX_STRING:
        raise Malformed(f'a string of more than {MAX_STRING:,} bytes')
    return _ESCAPE.sub(_character, content)


def _character(escape: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = escape.groups()
    if other is not None:
        return bytes([_CONTROLS.get(other[0], other[0])])
    return bytes([(int(octal, 8) if octal is not None else int(hexadecimal, 16)) & 0xff])


_CHUNK = 500
"""Nodes whose text is made at once. It is held twice."""

_BEGIN = 'node {\n  '
_ATTRIBUTE = re.compile(r'  attr \{\n(?:    .*\n)*  \}\n')
_ATTRIBUTES = re.compile(rf'(?:{_ATTRIBUTE.pattern})+')
_DEEPER = re.compile(r'\n {6,}attr \{')


def graph_text(graph: Any) -> str:
    """Returns the text of a `GraphDef`.

    It parses to the same graph as the text of `text_format`, and attributes have the same order.
    A float may have another number of digits. `text_format` is written in Python; here the compiled
    part of protobuf prints all nodes, and only their attributes are put in order.

    >>> from tensorflow.core.framework.graph_pb2 import GraphDef
    >>> graph = GraphDef()
    >>> graph.node.add(name='n', op='NoOp').attr['b'].i = 1
    >>> graph.node[0].attr['a'].b = True
    >>> graph_text(graph) == text_format.MessageToString(graph)
    True
    """
    rest = type(graph)(**{field.name: value for field, value in graph.ListFields()
                          if field.name != 'node'})
    return ''.join([*_texts_of_nodes(graph), text_format.MessageToString(rest)])


def _texts_of_nodes(graph: Any) -> Iterator[str]:
    """Yields the text of all nodes, so many at a time."""
    for begin in range(0, len(graph.node), _CHUNK):
        chunk = type(graph)(node=graph.node[begin:begin + _CHUNK])
        text = str(chunk)
        # What `str` returns is no promise of protobuf. A function may have attributes of its own.
        if not text.startswith(_BEGIN) or _DEEPER.search(text):
            yield text_format.MessageToString(chunk)
        else:
            yield _ATTRIBUTES.sub(lambda found: ''.join(sorted(_ATTRIBUTE.findall(found[0]))), text)
