"""Splits the text format of protos into tokens, and checks it before protobuf parses it.

Protobuf's parser recurses for each brace. So a pass over the tokens checks every text first; it
needs one regular expression and no recursion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .wire import Malformed

MAX_DEPTH = 32
MAX_DIGITS = 100
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
    """Yields strings, brackets and words; comments and punctuation are left out.

    Raises:
      Malformed: if a string does not end.
    """
    for found in _TOKEN.finditer(content):
        token = found[1]
        if token in (b'"', b"'"):
            raise Malformed(f'a string without an end at byte {found.start()}')
        if token is not None:
            yield token


def check(content: bytes | bytearray) -> None:
    """Requires that a text is safe for protobuf's parser.

    Raises:
      Malformed: if it is nested too deeply, or holds a number with too many digits or a string
        with too many backslashes in a row.
    """
    depth = 0
    for token in tokens(content):
        if token in b'{<[':
            depth += 1
            if depth > MAX_DEPTH:
                raise Malformed(f'it is nested more than {MAX_DEPTH} deep')
        elif token in b'}>]':
            depth -= 1
        elif len(token) > MAX_DIGITS and token[0] in b'0123456789.+-':
            raise Malformed(f'a number of more than {MAX_DIGITS} digits')
        if b'\\' * (MAX_BACKSLASHES + 1) in token:
            raise Malformed(f'a string with more than {MAX_BACKSLASHES} backslashes in a row')


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
