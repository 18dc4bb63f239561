"""Whether the bytes of a tensor are those that were written, by the CRC32C in the index.

Numbers lie there as they are. Of strings there are first their lengths, then a checksum of these,
then the strings:

    03 01 | c3 b2 1a 90 | a b c d      for the strings abc, d

The checksum of the whole is taken over the lengths in four bytes each, their checksum, and the
strings.
"""

from __future__ import annotations

import math
import struct
from typing import BinaryIO

import google_crc32c

from ..proto.wire import Malformed, Wire
from .index import NO_ROW, STRING, Piece, Tensor
from .sstable import masked

_CHUNK = 2**20
_MOST_VARINT = 10
_MOST_STRINGS = 2**24
"""Strings of one piece that are looked at one by one, which takes a microsecond each."""
_CRC_BYTES = 4


def holds(file: BinaryIO, piece: Piece, tensor: Tensor) -> bool | None:
    """Whether a piece of a tensor is what was written.

    Args:
      file: that it is in.
      piece: what to read.
      tensor: that it is a part of.

    Returns:
      `None` if that cannot be told, since the tensor is of a kind that is not understood here,
      or has too many strings.
    """
    file.seek(piece.offset)
    if tensor.code:
        return masked(_extended(0, file, piece.size)) == piece.crc
    count = piece.rows * math.prod(tensor.shape[1:])
    if tensor.dtype != STRING or piece.first_row == NO_ROW or count > _MOST_STRINGS:
        return None
    try:
        return masked(_of_strings(file, piece.size, count)) == piece.crc
    except Malformed:
        return False


def _extended(crc: int, file: BinaryIO, size: int) -> int:
    """A checksum that goes on with the next `size` bytes of a file, or those that there are."""
    while size > 0 and (chunk := file.read(min(size, _CHUNK))):
        crc = google_crc32c.extend(crc, chunk)
        size -= len(chunk)
    return crc


def _of_strings(file: BinaryIO, size: int, count: int) -> int:
    """The checksum of the next `size` bytes of a file, which are `count` strings.

    Raises:
      Malformed: if they are not.
    """
    crc, chars, at, buffer, read = 0, 0, 0, b'', 0
    for _ in range(count):
        if len(buffer) - at < _MOST_VARINT and read < size:
            chunk = file.read(min(_CHUNK, size - read))
            buffer, at, read = buffer[at:] + chunk, 0, read + len(chunk)
        length, at = Wire(buffer).varint(at, len(buffer))
        crc = google_crc32c.extend(crc, struct.pack('<I' if length < 2**32 else '<Q',
                                                    length % 2**64))
        chars += length
    lengths_crc = struct.pack('<I', masked(crc))
    file.seek(at - len(buffer), 1)
    read -= len(buffer) - at
    if file.read(_CRC_BYTES) != lengths_crc or read + _CRC_BYTES + chars != size:
        raise Malformed('it does not hold so many strings')
    return _extended(google_crc32c.extend(crc, lengths_crc), file, chars)
