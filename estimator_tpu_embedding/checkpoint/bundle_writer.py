"""Writes tensors into the files of a checkpoint a few MB at a time, without TensorFlow."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

import google_crc32c

from ..proto.checkpoint_format_pb2 import BundleEntry, BundleHeader
from . import sstable
from .file_names import INDEX, data_of
from .storage import created
from .tensors import KINDS, STRING, slice_key

_CHUNK = 2**20


class Part:
    """Bytes of the data file that belong together, which are appended one after another."""

    def __init__(self, file: BinaryIO, offset: int, size: int, crc: int | None):
        """Reserves `size` bytes from `offset` on; `crc` is their masked checksum if it is known."""
        self.offset, self.size, self.written = offset, size, 0
        self._file, self._known, self._crc = file, crc, 0

    @property
    def crc(self) -> int:
        """The masked checksum of what was written."""
        return sstable.masked(self._crc) if self._known is None else self._known

    def append(self, content: Any) -> None:
        """Writes the next bytes, a contiguous buffer; not more than are left."""
        view = memoryview(content)
        if not view.nbytes:  # It cannot be cast.
            return
        view = view.cast('B')
        if self.written + len(view) > self.size:
            raise ValueError(f'{self.written + len(view)} of {self.size} bytes')
        while len(view):
            chunk = bytes(view[:_CHUNK])  # The library takes nothing else.
            if self._known is None:
                self._crc = google_crc32c.extend(self._crc, chunk)
            view = view[len(chunk):]
            while chunk:
                count = os.pwrite(self._file.fileno(), chunk, self.offset + self.written)
                self.written, chunk = self.written + count, chunk[count:]


class BundleWriter:
    """A checkpoint of one data file that is being written.

    Tensors lie in the data file in the order in which they were reserved, whatever the order in
    which they are filled. The checkpoint can be read once `finish` has returned.
    """

    def __init__(self, prefix: str):
        """Makes the data file; no file of the checkpoint `prefix` may exist."""
        self._prefix = prefix
        self._file = created(data_of(prefix, 1)[0])
        self._entries: dict[bytes, BundleEntry] = {}
        self._parts: list[tuple[bytes, Part]] = []
        self._end = 0

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def rows(self, name: str, dtype: int, shape: Sequence[int], pieces: Sequence[int] = ()
             ) -> list[Part]:
        """Reserves a tensor of numbers, of a type of the enum `DataType`.

        Args:
          name: its key.
          dtype: a number of the enum.
          shape: of the whole.
          pieces: the rows of each slice, > 0, if it is to be stored in slices, as TensorFlow
            stores a partitioned variable; their sum is `shape[0]`. One slice is no slice.

        Returns:
          One part for each slice, or one for the whole.

        Raises:
          ValueError: if no reader would take the name or the slices, or the name is in use.
        """
        key, item = _key(name), int(KINDS[dtype][1][1:])
        if pieces and (min(pieces) < 1 or not shape or sum(pieces) != shape[0]):
            raise ValueError(f'{key!r} of {shape} is not in slices of {pieces}')
        if len(pieces) < 2:
            return [self._reserve(key, dtype, shape, math.prod(shape) * item)]
        if key in self._entries:
            raise ValueError(f'{key!r} is there already')
        first, parts = 0, []
        whole = self._entries[key] = _entry(dtype, shape)
        for count in pieces:
            extents = [(first, count), *((0, size) for size in shape[1:])]
            whole.slices.add(extent=[{'start': start, 'length': size} for start, size in extents])
            own = (count, *shape[1:])
            parts.append(self._reserve(slice_key(key, extents), dtype, own, math.prod(own) * item))
            first += count
        return parts

    def copied(self, name: str, dtype: int, shape: Sequence[int], size: int, crc: int) -> Part:
        """Reserves a tensor of any kind whose bytes come from another checkpoint as they are.

        `crc` is their masked checksum there. Raises as `rows`.
        """
        return self._reserve(_key(name), dtype, shape, size, crc)

    def text(self, name: str, content: bytes) -> None:
        """Writes one string as a tensor without dimensions."""
        length = struct.pack('<I' if len(content) < 2**32 else '<Q', len(content))
        lengths_crc = google_crc32c.value(length)
        checked = struct.pack('<I', sstable.masked(lengths_crc))
        crc = google_crc32c.extend(google_crc32c.extend(lengths_crc, checked), content)
        stored = sstable.varint(len(content)) + checked + content
        self.copied(name, STRING, (), len(stored), sstable.masked(crc)).append(stored)

    def finish(self) -> None:
        """Writes the index; raises ValueError if a part was not filled."""
        for key, part in self._parts:
            if part.written != part.size:
                raise ValueError(f'{key!r}: {part.written} of {part.size} bytes')
            self._entries[key].crc32c = part.crc
        header = BundleHeader(num_shards=1, version=BundleHeader.Version(producer=1))
        content = sstable.content_of([
            (b'', header.SerializeToString()),
            *((key, entry.SerializeToString()) for key, entry in sorted(self._entries.items()))])
        with created(self._prefix + INDEX) as file:
            file.write(content)

    def _reserve(self, key: bytes, dtype: int, shape: Sequence[int], size: int,
                 crc: int | None = None) -> Part:
        if key in self._entries:
            raise ValueError(f'{key!r} is there already')
        entry = self._entries[key] = _entry(dtype, shape)
        entry.offset, entry.size = self._end, size
        part = Part(self._file, self._end, size, crc)
        self._parts.append((key, part))
        self._end += size
        return part


def _key(name: str) -> bytes:
    """Returns the key of a tensor; an empty one is that of the header."""
    key = name.encode(errors='surrogateescape')
    if not key or b'\0' in key or b'\xff' in key:
        raise ValueError(f'{key!r} is no name of a tensor')
    return key


def _entry(dtype: int, shape: Sequence[int]) -> BundleEntry:
    return BundleEntry(dtype=dtype, shape=BundleEntry.Shape(
        dim=[BundleEntry.Shape.Dim(size=size) for size in shape]))
