"""Reads all bytes of a checkpoint: hashes files, finds numbers that are not finite, checks CRC32C.

A checkpoint is hashed after it was written, and it must not be kept if a number is not finite. One
pass does both, while the bytes are in the cache of the processor.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import os
from collections.abc import Iterator, Mapping
from concurrent import futures
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from ..errors import CorruptCheckpointError, Problem, shown
from ..proto import files
from .bundle import Bundle, corrupt, is_checkable, opened, shortened
from .file_names import DATA, GRAPH, label, parse
from .manifest import StoredFile
from .tensors import BFLOAT16, Piece, Tensor

if TYPE_CHECKING:  # Checksums need no NumPy.
    import numpy as np

_CHUNK = 2**19
"""Bytes at once: few enough to stay in the cache of a processor until they are read again."""
_MOST_NAMED = 5
_MOST_READERS = 4

_EXPONENTS = {
    1: ('u4', 0x7f800000), 2: ('u8', 0x7ff << 52), 8: ('u4', 0x7f800000),
    BFLOAT16: ('u2', 0x7f80), 18: ('u8', 0x7ff << 52), 19: ('u2', 0x7c00), 24: ('u1', 0x7c),
    25: ('u1', 0x7f)}
"""For types with numbers that are not finite: the integers of their size, and the bits that are all
set only in such numbers."""
_FLOATS = {'u4': 'f4', 'u8': 'f8'}


class Scanned(NamedTuple):
    """Size and hash of each file of a checkpoint, and which tensors are not finite.

    `nonfinite` has for each such tensor how many of its rows have numbers that are not finite; for
    a vector, how many numbers are not.
    """

    files: dict[str, StoredFile]
    nonfinite: dict[str, int]


def scan(bundle: Bundle) -> Scanned:
    """Hashes all files of a checkpoint and looks for numbers that are not finite.

    It takes a few MB of memory beside the index, however large the tensors are. E613 if a file
    cannot be read.
    """
    prefix, segments = bundle.prefix, bundle.segments()
    names = list(bundle.files)
    if os.path.lexists(prefix + GRAPH):
        names.append(os.path.basename(prefix) + GRAPH)
    nonfinite: collections.Counter[str] = collections.Counter()
    with _readers() as pool:
        scanned = list(pool.map(
            lambda name: _scan_file(prefix, name, segments.get(name, [])), names))
    for _, counts in scanned:
        nonfinite.update(counts)
    return Scanned({name: stored for name, (stored, _) in zip(names, scanned)},
                   {name: nonfinite[name] for name in bundle.tensors if nonfinite[name]})


def _readers() -> futures.Executor:
    """Returns threads that read a file each; no two can share the hash of a file."""
    return futures.ThreadPoolExecutor(max_workers=min(_MOST_READERS, os.cpu_count() or 1))


def _scan_file(prefix: str, name: str, segments: list[tuple[Piece, Tensor]]
               ) -> tuple[StoredFile, dict[str, int]]:
    """Returns size and hash of a file, and how many rows of its tensors are not finite."""
    nonfinite: collections.Counter[str] = collections.Counter()
    with opened(prefix, name) as file:
        read = _Reader(prefix, name, file)
        for piece, tensor in segments:
            read.skip_to(piece.offset)
            nonfinite[tensor.name] += _nonfinite_rows(tensor, piece, read.chunks(piece.size))
        read.skip_to(None)
        return StoredFile(size=read.at, sha256=read.digest.hexdigest()), nonfinite


class _Reader:
    """Reads and hashes a file from its beginning to its end."""

    def __init__(self, prefix: str, name: str, file: BinaryIO):
        self._place, self._file = (prefix, name), file
        self._buffer = memoryview(bytearray(_CHUNK))
        self.digest = hashlib.sha256()
        self.at = 0

    def chunks(self, size: int) -> Iterator[memoryview]:
        """Yields the next `size` bytes in chunks; each chunk overwrites the one before."""
        end = self.at + size
        while self.at < end:
            chunk = self._buffer[:min(_CHUNK, end - self.at)]
            if self._file.readinto(chunk) != len(chunk):  # type: ignore[attr-defined]
                raise shortened(*self._place)
            self.digest.update(chunk)
            self.at += len(chunk)
            yield chunk

    def skip_to(self, offset: int | None) -> None:
        """Reads up to an offset; `None` is the end of the file."""
        end = files.size_of(self._file) if offset is None else offset
        for _ in self.chunks(end - self.at):
            pass


def _nonfinite_rows(tensor: Tensor, piece: Piece, chunks: Iterator[memoryview]) -> int:
    """Counts the rows of a piece that have numbers that are not finite; uses up its chunks."""
    import numpy as np
    code, exponent = _EXPONENTS.get(tensor.dtype, ('', 0))
    # In a vector each number counts; in slices of columns, the part of a row in the piece.
    row_bytes = (piece.size // max(piece.rows, 1) if len(tensor.shape) > 1 else tensor.item_bytes)
    count, last, at = 0, -1, 0
    for chunk in chunks:
        if code and not _is_finite(chunk, code):
            bits = np.frombuffer(chunk, code) & np.array(exponent, code)
            wrong = np.flatnonzero(bits == exponent) * int(code[1:])
            rows = np.unique((at + wrong) // row_bytes)
            rows = rows[rows > last]  # A row may have begun in the chunk before.
            count += len(rows)
            last = int(rows[-1]) if len(rows) else last
        at += len(chunk)
    return count


@functools.cache
def _zeros(code: str) -> np.ndarray:
    """Returns as many zeros of a type as a chunk can have."""
    import numpy as np
    return np.zeros(_CHUNK // int(code[1:]), code)


def _is_finite(chunk: memoryview, code: str) -> bool:
    """Whether all numbers are finite; `False` if there is no fast way to tell."""
    import numpy as np
    if code not in _FLOATS:
        return False
    numbers = np.frombuffer(chunk, _FLOATS[code])
    with np.errstate(invalid='ignore'):
        # A number that is not finite times 0 is NaN, and so is the sum; nothing is faster.
        return bool(np.dot(numbers, _zeros(_FLOATS[code])[:len(numbers)]) == 0)


def check_crcs(bundle: Bundle) -> list[str]:
    """Compares the bytes of all tensors of a checkpoint with the checksums in the index.

    It returns the names of the tensors whose checksum is not understood here, sorted. E613 has each
    file whose bytes are not as they were written, with the names of its damaged tensors.
    """
    segments = bundle.segments()
    problems: list[Problem] = []
    for name, pieces in segments.items():
        damaged = _damaged(bundle, pieces)
        if damaged:
            problems += corrupt(
                bundle.prefix, f'the bytes in its file {shown(name, 255)} must be those that were '
                'written', damaged).problems
    if problems:
        raise CorruptCheckpointError(*problems)
    return sorted({tensor.name for pieces in segments.values() for piece, tensor in pieces
                   if not is_checkable(piece, tensor)})


def check_files(prefix: str, files: Mapping[str, StoredFile], how: str) -> Bundle:
    """Opens a checkpoint, and makes sure that its files are as its manifest lists them.

    With `'crc32c'` the index must have its SHA-256, and the data the checksums in the index. E618
    has each file that is missing, a link or another file. E613 if the files are as listed, but are
    no checkpoint.
    """
    names = sorted(files)
    quick = {name for name in names if (part := parse(name)) is not None and part.kind == DATA}
    ways = {name: 'size' if how == 'crc32c' and name in quick else how for name in names}
    with _readers() as pool:
        found = list(pool.map(
            lambda name: _difference(prefix, name, files[name], ways[name]), names))
    problems = [Problem('E618', label(prefix),
                        f'its file {shown(name, 255)} must be as the manifest says', got,
                        'Use an older one, or restore the file from a copy.')
                for name, got in zip(names, found) if got]
    if problems:
        raise CorruptCheckpointError(*problems)
    bundle = Bundle.open(prefix)
    for name in set(bundle.files) - set(files):
        raise CorruptCheckpointError(Problem(
            'E618', label(prefix),
            'its manifest must list all its files', f'not {shown(name, 255)}',
            'Use an older one, or restore the manifest from a copy.'))
    if how == 'crc32c' and check_crcs(bundle):  # Some have no checksum that is understood.
        return check_files(prefix, files, 'sha256')
    return bundle


def _difference(prefix: str, name: str, stored: StoredFile, how: str) -> str:
    """Returns how a file differs from its entry in the manifest; `''` if it does not."""
    if not os.path.lexists(os.path.join(os.path.dirname(prefix), name)):
        return 'listed in manifest, not found'
    try:
        with opened(prefix, name) as file:
            if (size := files.size_of(file)) != stored.size:
                return f'{size:,} bytes, not {stored.size:,}'
            if how == 'size':
                return ''
            found = hashlib.file_digest(file, 'sha256').hexdigest()  # type: ignore[arg-type]
    except CorruptCheckpointError as error:
        return error.problems[0].got
    return '' if found == stored.sha256 else f'another SHA-256, {found}{_culprits(prefix, name)}'


def _culprits(prefix: str, name: str) -> str:
    """Returns the end of a message: the damaged tensors of a file, if that can be told."""
    try:
        bundle = Bundle.open(prefix)
        damaged = _damaged(bundle, bundle.segments().get(name, []))
    except CorruptCheckpointError:
        return ''
    return f', damaged is {damaged}' if damaged else ''


def _damaged(bundle: Bundle, pieces: list[tuple[Piece, Tensor]]) -> str:
    """Returns the tensors whose checksum does not hold, for people; `''` if there is none."""
    names = sorted({tensor.name for piece, tensor in pieces
                    if is_checkable(piece, tensor) and not bundle.holds(piece, tensor)})
    if not names:
        return ''
    text = ', '.join(f'"{shown(name)}"' for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f'tensor {text}' + (f' and {more} more' if more > 0 else '')
