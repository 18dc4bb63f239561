"""Reads the text format of protos without recursion."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
