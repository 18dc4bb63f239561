"""Reads the tensors of a checkpoint without TensorFlow, and trusts nothing in its files.

A checkpoint `model.ckpt-7` is an index, `model.ckpt-7.index`, and data files such as
`model.ckpt-7.data-00000-of-00002` that hold the bytes of tensors one after another. Numbers are
there as they are in memory. Strings are there in three parts: their lengths, a checksum of the
lengths, and the characters:

    03 01 | c3 b2 1a 90 | a b c d      for the strings abc, d

The index has a CRC32C of each piece. That of strings covers the lengths with four bytes each, their
checksum, and the characters.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import math
import os
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

import google_crc32c

from ..errors import CorruptCheckpointError, Problem, shown
from ..proto import files
from ..proto.files import Malformed, Wire
from . import sstable
from .file_names import INDEX, data_of, label
from .tensors import BFLOAT16, NO_ROW, STRING, Index, Piece, Tensor, number_of_shards

if TYPE_CHECKING:  # Tools that only list tensors start without NumPy.
    import numpy as np

_MAX_ROW_BYTES = 2**28
_MAX_TEXT_BYTES = 2**27
_CHUNK = 2**20
_MOST_STRINGS = 2**24
"""A piece with more strings is not checked; each takes a microsecond."""


class Bundle:
    """The tensors of a checkpoint, which are read from its files when they are asked for.

    Attributes:
      prefix: path of the checkpoint, without a suffix.
      tensors: what the index says of each, by name.
      files: names of the index and of the data files.
    """

    def __init__(self, prefix: str, tensors: dict[str, Tensor], files: tuple[str, ...]):
        self.prefix = prefix
        self.tensors = tensors
        self.files = files

    @classmethod
    def open(cls, prefix: str) -> Bundle:
        """Reads the index of a checkpoint, such as `dir/model.ckpt-7`, and the sizes of its files.

        E613 if a file is missing or a link, or a checksum in the index does not hold. Also if the
        bytes of a tensor are not there, or belong to two tensors.
        """
        base = os.path.basename(prefix)
        index_file = base + INDEX
        with opened(prefix, index_file) as file:
            size = files.size_of(file)
            if size > sstable.MAX_BYTES:
                raise corrupt(prefix, f'an index has at most {sstable.MAX_BYTES:,} bytes',
                              f'{size:,}')
            content = bytes(files.read_at_most(file, sstable.MAX_BYTES))
        try:
            entries = dict(sstable.entries(content))
            shards = number_of_shards(entries.pop(b'', b''))
            sizes = {}
            for name in data_of(base, shards):
                with opened(prefix, name) as file:
                    sizes[name] = files.size_of(file)
            tensors = Index(entries, sizes).tensors()
        except Malformed as error:
            raise corrupt(prefix, f'its index {shown(index_file, 255)} must be readable',
                          str(error)) from error
        return cls(prefix, tensors, (index_file, *sizes))

    def read(self, name: str, first: int, stop: int) -> np.ndarray:
        """Returns rows `first` to `stop` of a tensor of numbers, as they are stored.

        They are `[stop - first, ...]`; `[1]` for a single number. bfloat16 is returned as float32.
        E613 if they cannot be read as rows of numbers.
        """
        import numpy as np
        tensor = self.tensors[name]
        raw = self.read_bytes(name, first, stop).reshape(-1)
        rows = raw.view(tensor.code).reshape(stop - first, *tensor.shape[1:])
        if tensor.dtype == BFLOAT16:
            return (rows.astype(np.uint32) << 16).view(np.float32)
        return rows

    def read_bytes(self, name: str, first: int, stop: int) -> np.ndarray:
        """Returns the bytes of such rows: uint8 `[stop - first, row_bytes]`."""
        import numpy as np
        tensor = self.tensors[name]
        if not 0 <= first <= stop <= tensor.rows:
            raise IndexError(f'rows {first} to {stop} of {tensor.rows}')
        self._check_readable(tensor)
        raw = np.empty((stop - first) * tensor.row_bytes, np.uint8)
        view = raw.data
        begin = bisect.bisect_right(tensor.pieces, first, key=lambda one: one.first_row) - 1
        for piece in tensor.pieces[max(begin, 0):] if raw.size else ():
            low, high = max(first, piece.first_row), min(stop, piece.first_row + piece.rows)
            if low >= high:
                break
            with opened(self.prefix, piece.file) as file:
                file.seek(piece.offset + (low - piece.first_row) * tensor.row_bytes)
                part = view[(low - first) * tensor.row_bytes:(high - first) * tensor.row_bytes]
                if file.readinto(part) != len(part):  # type: ignore[attr-defined]
                    raise shortened(self.prefix, piece.file)
        return raw.reshape(stop - first, tensor.row_bytes)

    def read_text(self, name: str) -> bytes:
        """Returns the string in a tensor; CorruptCheckpointError if it holds something else."""
        tensor = self.tensors[name]
        if tensor.dtype != STRING or tensor.shape or tensor.size > _MAX_TEXT_BYTES:
            raise corrupt(self.prefix, f'tensor "{shown(name)}" must be one string of at most '
                          f'{_MAX_TEXT_BYTES:,} bytes', f'{tensor.kind} {list(tensor.shape)} of '
                          f'{tensor.size:,} bytes')
        piece, = tensor.pieces
        if not self.holds(piece, tensor):
            raise corrupt(self.prefix, f'the checksum of tensor "{shown(name)}" must hold',
                          'another one')
        content = b''.join(self.content(piece))
        length, _ = Wire(content).varint(0, len(content))
        return content[len(content) - length:]

    def content(self, piece: Piece) -> Iterator[bytes]:
        """Yields the bytes of a piece, a MB at a time."""
        with opened(self.prefix, piece.file) as file:
            file.seek(piece.offset)
            for first in range(0, piece.size, _CHUNK):
                size = min(_CHUNK, piece.size - first)
                content = file.read(size)
                if len(content) != size:
                    raise shortened(self.prefix, piece.file)
                yield content

    def holds(self, piece: Piece, tensor: Tensor) -> bool:
        """Whether a piece of a tensor, which `is_checkable`, has the bytes that were written."""
        if tensor.code:
            crc = functools.reduce(google_crc32c.extend, self.content(piece), 0)
        else:
            try:
                crc = _of_strings(b''.join(self.content(piece)), _strings_in(piece, tensor))
            except Malformed:
                return False
        return sstable.masked(crc) == piece.crc

    def segments(self) -> dict[str, list[tuple[Piece, Tensor]]]:
        """Returns the pieces in each data file, in their order in the file."""
        found: dict[str, list[tuple[Piece, Tensor]]] = {name: [] for name in self.files[1:]}
        for tensor in self.tensors.values():
            for piece in tensor.pieces:
                found[piece.file].append((piece, tensor))
        for pieces in found.values():
            pieces.sort(key=lambda one: (one[0].offset, one[0].size))
        return found

    def _check_readable(self, tensor: Tensor) -> None:
        """Makes sure that the rows of a tensor can be read, each at once."""
        for wrong, got in (
                (not tensor.code, tensor.kind),
                (any(piece.first_row == NO_ROW for piece in tensor.pieces), 'slices of columns'),
                (tensor.row_bytes > _MAX_ROW_BYTES, f'rows of {tensor.row_bytes:,} bytes')):
            if wrong:
                raise corrupt(self.prefix, f'tensor "{shown(tensor.name)}" must be stored as rows '
                              'of numbers to be read here', got)


def corrupt(prefix: str, rule: str, got: str) -> CorruptCheckpointError:
    """Returns the error for a checkpoint that cannot be read."""
    return CorruptCheckpointError(Problem(
        'E613', label(prefix), rule, got,
        'Use an older one, or restore its files from a copy.'))


def shortened(prefix: str, name: str) -> CorruptCheckpointError:
    """Returns the error for a file that became shorter after it was opened."""
    return corrupt(prefix, f'its file {shown(name, 255)} must stay as it is while it is read',
                   'an earlier end')


@contextlib.contextmanager
def opened(prefix: str, name: str) -> Iterator[BinaryIO]:
    """Opens a file of a checkpoint; E613 if it is missing, no regular file, or reading fails."""
    try:
        path = os.path.join(os.path.dirname(prefix), name)
        try:
            opened_file = files.open_regular(path, follow=False)
        except ValueError as error:  # A name that no file can have is one that is not there.
            raise OSError(str(error)) from error
        with contextlib.closing(opened_file) as file:
            yield file
    except OSError as error:
        raise corrupt(prefix, f'its file {shown(name, 255)} must be readable',
                      shown(error.strerror or error)) from error


def is_checkable(piece: Piece, tensor: Tensor) -> bool:
    """Whether the checksum of a piece is understood here, as of numbers and of few strings."""
    return bool(tensor.code) or (
        tensor.dtype == STRING and piece.first_row != NO_ROW and piece.size <= _MAX_TEXT_BYTES
        and _strings_in(piece, tensor) <= _MOST_STRINGS)


def _strings_in(piece: Piece, tensor: Tensor) -> int:
    return piece.rows * math.prod(tensor.shape[1:])


def _of_strings(content: bytes, count: int) -> int:
    """Returns the checksum of a piece of `count` strings; Malformed if it does not hold so many."""
    wire, crc, chars, at = Wire(content), 0, 0, 0
    for _ in range(count):
        length, at = wire.varint(at, len(content))
        crc = google_crc32c.extend(crc, struct.pack('<I' if length < 2**32 else '<Q',
                                                    length % 2**64))
        chars += length
    lengths_crc = struct.pack('<I', sstable.masked(crc))
    if content[at:at + len(lengths_crc)] != lengths_crc or (
            at + len(lengths_crc) + chars != len(content)):
        raise Malformed('it does not hold so many strings')
    return google_crc32c.extend(crc, content[at:])
