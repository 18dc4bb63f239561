"""Describes the tensors of a checkpoint: type, shape and place in its files, as the index says.

An entry of the index says in which data file the bytes of its tensor are. If the tensor was saved
in slices, the entry lists them, and each slice has an entry of its own under an encoded key. The
entries must agree with each other and with the sizes of the data files, so no read leaves a file.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from ..errors import shown
from ..proto.checkpoint_format_pb2 import BundleEntry, BundleHeader
from ..proto.files import Malformed

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

_Message = TypeVar('_Message', bound=Message)
_MAX_SHARDS = 10_000
_MAX_RANK = 254
_VERSION = 1
_LITTLE_ENDIAN = 0

_MAX_ENTRY_BYTES = 2**22
"""Protobuf makes some 60 bytes from two; the slices of a table on 1,024 hosts take 3 MB."""
_LENGTHS_CRC = 4
"""Bytes in a tensor of strings beside the strings and their lengths, of at least a byte each."""


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
    def has_rows(self) -> bool:
        """Whether it holds numbers, and each of its pieces whole rows of them."""
        return bool(self.code) and all(piece.first_row != NO_ROW for piece in self.pieces)

    @property
    def is_table(self) -> bool:
        """Whether it can be an embedding table: rows of floats."""
        return self.is_float and self.has_rows and len(self.shape) == 2 and min(self.shape) > 0

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


def number_of_shards(header: bytes) -> int:
    """Returns the number of data files that a header says; Malformed if it cannot be read here."""
    found = _parsed(BundleHeader(), header)
    if found.version.min_consumer > _VERSION or found.endianness != _LITTLE_ENDIAN:
        raise Malformed('it is of a newer version, or of a big-endian machine')
    shards = found.num_shards
    if not 1 <= shards <= _MAX_SHARDS:
        raise Malformed(f'{shards} data files; there are 1 to {_MAX_SHARDS:,}')
    return shards


class Index:
    """The entries of an index without the header, and the data files that they must fit."""

    def __init__(self, entries: Mapping[bytes, bytes], sizes: Mapping[str, int]):
        self._entries = entries
        self._files = list(sizes.items())
        self._used: set[bytes] = set()

    def tensors(self) -> dict[str, Tensor]:
        """Returns all tensors, by name; Malformed if an entry contradicts another or a file."""
        found = {}
        for key in self._entries:
            if key[:1] == b'\0':
                continue  # The entry of a slice; that of the whole lists it.
            name = key.decode(errors='surrogateescape')
            try:
                if b'\0' in key or b'\xff' in key:
                    raise Malformed('it is no name')
                found[name] = self._tensor(key, name)
            except Malformed as error:
                raise Malformed(f'tensor "{shown(name)}": {error}') from error
        if sum(key[:1] == b'\0' for key in self._entries) != len(self._used):
            raise Malformed('there are slices that belong to no tensor')
        _check_disjoint(found)
        return found

    def _tensor(self, key: bytes, name: str) -> Tensor:
        entry = _parsed(BundleEntry(), self._entries[key])
        shape = _shape(entry)
        slices = [_extents(one, shape) for one in entry.slices]
        whole = Tensor(name, entry.dtype, shape, ())
        if slices:
            pieces = [self._slice(key, whole, extents) for extents in slices]
            _check_complete(whole, pieces, slices)
        else:
            pieces = [self._piece(entry, whole, 0)]
        return whole._replace(pieces=tuple(sorted(pieces, key=lambda one: one.first_row)))

    def _slice(self, key: bytes, whole: Tensor, extents: list[tuple[int, int]]) -> Piece:
        """Returns the piece of a slice: (start, length) by dimension, where -1 is all of it."""
        own = slice_key(key, extents)
        if own not in self._entries or own in self._used:
            raise Malformed('a slice is missing, or named twice')
        self._used.add(own)
        entry = _parsed(BundleEntry(), self._entries[own])
        shape = tuple(full if length < 0 else length
                      for full, (_, length) in zip(whole.shape, extents))
        if (entry.dtype, _shape(entry)) != (whole.dtype, shape):
            raise Malformed('a slice has another type or shape than the whole says')
        has_rows = shape[1:] == whole.shape[1:]
        return self._piece(entry, whole._replace(shape=shape),
                           extents[0][0] if has_rows else NO_ROW)

    def _piece(self, entry: BundleEntry, part: Tensor, first_row: int) -> Piece:
        """Returns the piece that an entry describes; `part` has the shape of the piece."""
        shard, offset, size = entry.shard_id, entry.offset, entry.size
        if not 0 <= shard < len(self._files):
            raise Malformed(f'it is in data file {shard} of {len(self._files)}')
        file, file_size = self._files[shard]
        if min(offset, size) < 0 or offset + size > file_size:
            raise Malformed(f'its bytes {offset:,} to {offset + size:,} are not in '
                            f'{shown(file, 255)} of {file_size:,} bytes')
        items = math.prod(part.shape)
        if part.item_bytes and size != items * part.item_bytes or (
                part.dtype == STRING and size < items + _LENGTHS_CRC):
            raise Malformed(f'{part.kind} {list(part.shape)} of {size:,} bytes')
        return Piece(file, offset, size, entry.crc32c, first_row, part.rows)


def slice_key(name: bytes, extents: list[tuple[int, int]]) -> bytes:
    """Returns the key of a slice of a tensor, as TensorFlow's `EncodeTensorNameSlice` writes it.

    Args:
      name: of the tensor, without bytes 0 and 255, which would have to be escaped.
      extents: (start, length) by dimension; a length of -1 is all of it.

    >>> slice_key(b't', [(200, 100), (0, 2)]).hex(' ')
    '00 74 00 01 01 02 c0 c8 c0 64 80 82'
    """
    return b'\0' + name + b'\0\1' + bytes([1, len(extents)]) + b''.join(
        _ordered(number) for extent in extents for number in extent)


def _ordered(number: int) -> bytes:
    """Returns a signed number in a code that sorts as numbers do.

    A longer code begins with more ones.
    """
    size = ((~number if number < 0 else number).bit_length() + 1 + 6) // 7
    # The first `size` bits are ones, unless the number is negative, then zeros.
    bits = (2**size - 1) << (7 * size)
    return ((bits ^ number) & (2**(8 * size) - 1)).to_bytes(size, 'big')


def _parsed(message: _Message, content: bytes) -> _Message:
    """Parses an entry into an empty message, and returns it."""
    if len(content) > _MAX_ENTRY_BYTES:
        raise Malformed(f'an entry of {len(content):,} bytes; there are at most '
                        f'{_MAX_ENTRY_BYTES:,}')
    try:
        message.ParseFromString(content)
    except DecodeError as error:
        raise Malformed('it is no whole message') from error
    return message


def _shape(entry: BundleEntry) -> tuple[int, ...]:
    shape = tuple(dimension.size for dimension in entry.shape.dim)
    if len(shape) > _MAX_RANK or any(size < 0 for size in shape):
        raise Malformed('its shape has too many dimensions, or a dimension is negative')
    return shape


def _extents(one: BundleEntry.Slice, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Returns (start, length) of a slice by dimension; -1 if it takes all."""
    found = [(extent.start, extent.length if extent.HasField('length') else -1)
             for extent in one.extent]
    if any(start < 0 or length < 0 and extent.HasField('length')
           for extent, (start, length) in zip(one.extent, found)):
        raise Malformed('a number is negative')
    if not shape or len(found) != len(shape) or any(
            length == 0 or start + max(length, 0) > full or (length < 0 and start)
            for full, (start, length) in zip(shape, found)):
        raise Malformed(f'a slice is not one of the shape {list(shape)}')
    return found


def _check_complete(whole: Tensor, pieces: list[Piece], slices: list[list[tuple[int, int]]]
                    ) -> None:
    """Makes sure that slices cover a tensor and do not overlap."""
    items = sum(math.prod(full if length < 0 else length for full, (_, length) in zip(
        whole.shape, extents)) for extents in slices)
    ends = [piece.first_row + piece.rows for piece in pieces if piece.first_row != NO_ROW]
    firsts = [piece.first_row for piece in pieces if piece.first_row != NO_ROW]
    if items != math.prod(whole.shape) or len(ends) == len(pieces) and (
            sorted(firsts) != sorted([0, *ends])[:-1]):
        raise Malformed('its slices overlap, or leave something out')


def _check_disjoint(tensors: Mapping[str, Tensor]) -> None:
    """Makes sure that no two pieces share bytes; so each byte of a file is read once."""
    ends: collections.Counter[str] = collections.Counter()
    for file, offset, end, name in sorted(
            (piece.file, piece.offset, piece.offset + piece.size, tensor.name)
            for tensor in tensors.values() for piece in tensor.pieces if piece.size):
        if offset < ends[file]:
            raise Malformed(f'tensor "{shown(name)}": it shares bytes with another one')
        ends[file] = end
