"""Compares the bytes of a tensor with the CRC32C of it that the index of a checkpoint holds.

A file holds numbers as they are in memory. It holds strings in three parts: their lengths, a
checksum of the lengths, and the characters:

    03 01 | c3 b2 1a 90 | a b c d      for the strings abc, d

The CRC32C in the index covers the lengths with four bytes each, their checksum, and the characters.
"""

from __future__ import annotations

import math
import struct
from typing import BinaryIO

import google_crc32c

from ..proto.wire import Malformed, Wire
from .sstable import masked
from .tensors import NO_ROW, STRING, Piece, Tensor

_CHUNK = 2**20
_MOST_VARINT = 10
_MOST_STRINGS = 2**24
"""A piece with more strings is not checked; each takes a microsecond."""
_CRC_BYTES = 4


def holds(file: BinaryIO, piece: Piece, tensor: Tensor) -> bool | None:
    """Whether a piece of a tensor has the bytes that were written.

    Args:
      file: the data file that holds the piece.
      piece: the part of the tensor to read.
      tensor: the whole.

    Returns:
      `None` if that cannot be told: the tensor is of a kind that is not understood here, or it
      has too many strings.
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
    """Returns a checksum continued over the next `size` bytes of a file, or up to its end."""
    while size > 0 and (chunk := file.read(min(size, _CHUNK))):
        crc = google_crc32c.extend(crc, chunk)
        size -= len(chunk)
    return crc


def _of_strings(file: BinaryIO, size: int, count: int) -> int:
    """Returns the checksum of `count` strings in the next `size` bytes of a file.

    Raises:
      Malformed: if these bytes are not so many strings.
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
