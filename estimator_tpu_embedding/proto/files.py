"""Reads what strangers wrote: regular files, and JSON, numbers and texts of protos in them.

It reads never more bytes or values than asked for. A named pipe would block. A device may never
end, or may do something. A link inside a directory may lead out of it. No other module of the
package opens such files.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from typing import Any, BinaryIO

NO_FILE = 'a pipe, socket or device'
"""The text of the error for a name that is not safe to read."""

MAX_BACKSLASHES = 32
"""The most backslashes in a row: protobuf takes a time that grows with their square."""

_CHUNK = 2**20
_MAX_STRING = 4 * 2**20

_COMMENT = rb'#[^\n]*+'
_STRING = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|\'[^\'\\\n]*+(?:\\.[^\'\\\n]*+)*+\''
_TOKEN = re.compile(_COMMENT + rb'|(' + _STRING + rb'|[{}<>\[\]"\']|[\w.+-]++)')
_FIRST_WORD = re.compile(rb'(?:\s++|#[^\n]*+\n)*+([A-Za-z_]\w*+)')
_ESCAPE = re.compile(rb'\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))', re.DOTALL)
_CONTROLS = dict(zip(b'abfnrtv', b'\a\b\f\n\r\t\v'))


def open_regular(path: str, *, follow: bool) -> BinaryIO:
    """Opens a regular file for reading.

    Args:
      follow: whether `path` itself may be a link; `False` for files that the user did not name.

    Raises:
      OSError: if it is not there, not readable, or not a regular file.
      ValueError: if no file can have that name.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    # Checked before it is opened, because opening a device may already do something.
    require_regular(os.stat(path, follow_symlinks=follow))
    descriptor = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    try:
        require_regular(os.fstat(descriptor))
        return os.fdopen(descriptor, 'rb')
    except BaseException:
        os.close(descriptor)
        raise


def require_regular(status: os.stat_result) -> None:
    """Requires that a `stat` describes a regular file; the OSError names any other kind."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, 'a directory')
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, 'a link, which is not followed here')
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, NO_FILE)


def size_of(file: BinaryIO) -> int:
    """Returns the size of an open file in bytes."""
    return os.fstat(file.fileno()).st_size


def read_at_most(stream: BinaryIO, most: int, begun: bytearray | None = None) -> bytearray:
    """Returns the bytes of a stream up to its end, or the first `most` of them.

    `begun` are bytes that were read before; it grows and is returned.
    """
    content = bytearray() if begun is None else begun
    # Piece by piece: a single call would reserve memory for the allowed maximum.
    while len(content) < most and (chunk := stream.read(min(_CHUNK, most - len(content)))):
        content += chunk
    return content


def is_directory(path: str) -> bool:
    """Whether `path` is a directory, or a link to one."""
    return os.path.isdir(path)


def content_of(path: str, most: int, *, follow: bool) -> bytearray:
    """Returns what a file holds, at most so many bytes; else ValueError, or as `open_regular`."""
    with open_regular(path, follow=follow) as file:
        content = read_at_most(file, most + 1)
    if len(content) > most:
        raise ValueError(f'more than {most:,} bytes')
    return content


def child(directory: str, names: tuple[str, ...]) -> str | None:
    """Returns the path of the first of `names` that is in a directory, or `None`.

    Links count, even if they are dangling: an entry is opened or refused, but not skipped.
    """
    paths = [os.path.join(directory, name) for name in names]
    return next((path for path in paths if os.path.lexists(path)), None)


def json_object(content: bytearray, most: int) -> dict[str, Any]:
    """Returns a JSON object whose keys differ, of which each reader could take another value.

    Args:
      most: the most values in it: three bytes may become an object of a hundred.

    Raises:
      ValueError: if it is none, or has more. RecursionError: if it is nested too deeply.

    >>> json_object(bytearray(b'{"rows": 5}'), 10)
    {'rows': 5}
    """
    if sum(map(content.count, (b',', b'[', b'{'))) > most:
        raise ValueError(f'more than {most:,} values')
    found = json.loads(content, object_pairs_hook=_without_duplicates)
    if not isinstance(found, dict):
        raise ValueError('no JSON object')
    return found


def sha256_of_json(fields: dict[str, Any]) -> str:
    """Returns the SHA-256 of an object in hexadecimal digits, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError('a key occurs twice')
    return fields


Span = tuple[int, int]


class Malformed(ValueError):
    """Raised with the reason if content is not of the kind that it is read as."""


class Wire:
    """Bytes that hold numbers as protos write them."""

    def __init__(self, content: bytes | bytearray):
        self.content = content

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """Returns the number that begins at `at` and its end, which is at most `end`."""
        value = shift = 0
        while at < end and shift < 64:
            byte = self.content[at]
            at += 1
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise Malformed(f'no whole number before byte {at}')


def first_word(content: bytes | bytearray) -> str:
    """Returns the name of the first field of a text proto; empty if there is none."""
    found = _FIRST_WORD.match(content)
    return found[1].decode() if found is not None else ''


def tokens(content: bytes | bytearray) -> Iterator[bytes]:
    """Yields strings, brackets and words of a text proto, without comments and punctuation."""
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
    if len(content) > _MAX_STRING:
        raise Malformed(f'a string of more than {_MAX_STRING:,} bytes')
    return _ESCAPE.sub(_character, content)


def _character(escape: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = escape.groups()
    if other is not None:
        return bytes([_CONTROLS.get(other[0], other[0])])
    return bytes([(int(octal, 8) if octal is not None else int(hexadecimal, 16)) & 0xff])
