"""Reads numbers of the wire format of protos from bytes of strangers."""

from __future__ import annotations

Span = tuple[int, int]


class Malformed(ValueError):
    """Raised with the reason if content is not of the kind that it is read as."""


class Wire:
    """Bytes that hold numbers as protos write them.

    Attributes:
      content: the bytes.
    """

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
