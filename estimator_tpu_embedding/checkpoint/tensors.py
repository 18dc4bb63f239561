"""Describes the tensors of a checkpoint: their types and shapes, and the pieces in its files."""

from __future__ import annotations

import math
from typing import NamedTuple

STRING, BFLOAT16 = 7, 14
KINDS = {
    1: ('float32', 'f4'), 2: ('float64', 'f8'), 3: ('int32', 'i4'), 4: ('uint8', 'u1'),
    5: ('int16', 'i2'), 6: ('int8', 'i1'), STRING: ('string', ''), 8: ('complex64', 'c8'),
    9: ('int64', 'i8'), 10: ('bool', 'b1'), 11: ('qint8', 'i1'), 12: ('quint8', 'u1'),
    13: ('qint32', 'i4'), BFLOAT16: ('bfloat16', 'u2'), 15: ('qint16', 'i2'),
    16: ('quint16', 'u2'), 17: ('uint16', 'u2'), 18: ('complex128', 'c16'),
    19: ('float16', 'f2'), 20: ('resource', ''), 21: ('variant', ''), 22: ('uint32', 'u4'),
    23: ('uint64', 'u8'), 24: ('float8_e5m2', 'u1'), 25: ('float8_e4m3fn', 'u1')}
"""For each `DataType` its name, and NumPy's code of its numbers or of integers of that size."""

NO_ROW = -1
"""The first row of a piece that does not hold whole rows."""


class Piece(NamedTuple):
    """A part of a tensor whose bytes lie together in a file.

    Attributes:
      file: name of the data file, without its directory.
      offset: where in the file the bytes begin.
      size: number of bytes.
      crc: CRC32C of the bytes, masked as TensorFlow does it.
      first_row: its first row in the tensor; `NO_ROW` if it does not hold whole rows.
      rows: number of rows; 1 if the tensor is a single number.
    """

    file: str
    offset: int
    size: int
    crc: int
    first_row: int
    rows: int


class Tensor(NamedTuple):
    """A tensor as the index describes it.

    Attributes:
      name: its key; bytes that are no UTF-8 are surrogates.
      dtype: a number of the enum `DataType`.
      shape: of the whole.
      pieces: in the order of their rows.
    """

    name: str
    dtype: int
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]

    @property
    def kind(self) -> str:
        """The name of its type."""
        return KINDS[self.dtype][0] if self.dtype in KINDS else f'type {self.dtype}'

    @property
    def code(self) -> str:
        """NumPy's code of its type; empty if it holds no numbers."""
        return KINDS[self.dtype][1] if self.dtype in KINDS else ''

    @property
    def is_float(self) -> bool:
        """Whether it holds real floating-point numbers."""
        return self.kind.startswith(('float', 'bfloat'))

    @property
    def item_bytes(self) -> int:
        """Bytes of one of its numbers; 0 if it holds none."""
        return int(self.code[1:] or 0)

    @property
    def rows(self) -> int:
        """Its first dimension; 1 if it is a single number."""
        return self.shape[0] if self.shape else 1

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of numbers."""
        return math.prod(self.shape[1:]) * self.item_bytes

    @property
    def size(self) -> int:
        """Bytes of all its pieces."""
        return sum(piece.size for piece in self.pieces)
