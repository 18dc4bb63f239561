"""Walks serialized protos of strangers field by field, without building messages.

Protobuf makes an object of some 100 bytes from the two bytes of an empty sub-message. So 16 MiB of
empty nodes take 900 MB as a `GraphDef`. A walk takes no memory, and its time has a limit.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
MAX_FIELDS = 1_000_000
"""The most fields that are looked at in one file; a graph has about one per node."""

Span = tuple[int, int]


class Malformed(ValueError):
    """Raised with the reason if content is not of the kind that it is read as."""


class Wire:
    """One serialized message.

    Attributes:
      content: its bytes.
      left: number of fields that may still be looked at.
    """

    def __init__(self, content: bytes | bytearray):
        self.content = content
        self.left = MAX_FIELDS

    def fields(self, span: Span) -> Iterator[tuple[int, int, Span]]:
        """Yields (number, wire type, span of the value) of the fields of one message.

        Args:
          span: place of the message, as (start, end).

        Raises:
          Malformed: if it is not a serialized message, or `MAX_FIELDS` are used up.
        """
        at, end = span
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise Malformed(f'it has more than {MAX_FIELDS:,} fields')
            tag, at = self.varint(at, end)
            number, kind = tag >> 3, tag & 7
            start = at
            if kind == LENGTH:
                length, start = self.varint(at, end)
                at = start + length
            elif kind == VARINT:
                _, at = self.varint(at, end)
            elif kind in (FIXED32, FIXED64):
                at += 4 if kind == FIXED32 else 8
            else:  # Groups, which no message of TensorFlow has, and unknown types.
                raise Malformed(f'wire type {kind} at byte {start}')
            if number == 0 or at > end:
                raise Malformed(f'no whole field at byte {start}')
            yield number, kind, (start, at)

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

    def all_at(self, path: tuple[int, ...], span: Span) -> Iterator[Span]:
        """Yields the values at a path of field numbers below a message, in their order."""
        if not path:
            yield span
            return
        for number, kind, value in self.fields(span):
            if number == path[0]:
                if kind != LENGTH:
                    raise Malformed(f'field {number} has wire type {kind}')
                yield from self.all_at(path[1:], value)

    def last_at(self, path: tuple[int, ...], span: Span) -> bytes:
        """Returns the last value at a path, which takes effect; empty if there is none."""
        start = end = 0
        for start, end in self.all_at(path, span):
            pass
        return bytes(self.content[start:end])

    def whole(self) -> Span:
        """Returns the span of the message itself."""
        return 0, len(self.content)

    def shape(self) -> collections.Counter[tuple[int, int]]:
        """Returns how often each (number, wire type) occurs at the top."""
        return collections.Counter((number, kind) for number, kind, _ in
                                   self.fields(self.whole()))
