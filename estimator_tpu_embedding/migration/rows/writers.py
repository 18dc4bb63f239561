"""Writes rows into `.npy` and `.safetensors` files, a few MB at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np

from .files import CODES, ROWS, SAFETENSORS_KINDS
from .parquet import ID, ParquetWriter, require_pyarrow

FORMATS = ('npy', 'safetensors', 'parquet')
_AS_INTEGERS = {'bfloat16': 'uint16', 'float8_e5m2': 'uint8', 'float8_e4m3fn': 'uint8'}
"""Types that NumPy and Parquet lack, and the integers that hold their bits there."""

_RESERVED = (ID, '__metadata__')
"""Names that mean something else in a file."""


class Described(NamedTuple):
    """A tensor of rows: its name, the name of its type, and the numbers in a row."""

    name: str
    kind: str
    width: int

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.width * int(CODES[self.kind][1:])


class Writer(Protocol):
    """A file of rows that is being written."""

    def append(self, tensors: Sequence[np.ndarray]) -> None:
        """Writes the next rows of all tensors: `[n, width]` each, as `CODES` says."""

    def finish(self) -> None:
        """Ends the file; it is not closed."""


def require(format: str) -> None:
    """Makes sure that files of a format can be written.

    Raises:
      CheckpointError: E663 if a package is missing.
    """
    if format == 'parquet':
        require_pyarrow()


def writer(format: str, file: BinaryIO, tensors: Sequence[Described], first_id: int, rows: int
           ) -> Writer:
    """Begins a file.

    Args:
      format: one of `FORMATS`.
      file: which is written.
      tensors: in it; a `.npy` file has one.
      first_id: the id of its first row.
      rows: how many it will have.
    """
    tensors = [tensor._replace(name=column_of(format, tensor.name)) for tensor in tensors]
    if format == 'parquet':
        return ParquetWriter(file, tensors, first_id)
    if format == 'safetensors':
        return _SafetensorsWriter(file, tensors, first_id, rows)
    tensor, = tensors
    return _NpyWriter(file, tensor, rows)


def files_of(format: str, tensors: Sequence[Described]) -> list[list[Described]]:
    """Returns which tensors share a file; in `.npy` each has one of its own."""
    return [[tensor] for tensor in tensors] if format == 'npy' else [list(tensors)]


def id_bytes(format: str) -> int:
    """Returns the bytes of the id that a file has for each row."""
    return 8 if format == 'parquet' else 0


def column_of(format: str, tensor: str) -> str:
    """Returns the name of the column that holds a tensor.

    >>> column_of('parquet', 'user'), column_of('parquet', 'id')
    ('user', 'id_rows')
    """
    if format == 'npy':
        return ROWS
    return f'{tensor}_rows' if tensor in _RESERVED else tensor


def stored_kind(format: str, kind: str) -> str:
    """Returns the type of the column that holds numbers of a type.

    >>> stored_kind('npy', 'bfloat16'), stored_kind('safetensors', 'bfloat16')
    ('uint16', 'bfloat16')
    """
    return kind if format == 'safetensors' else _AS_INTEGERS.get(kind, kind)


class _NpyWriter:
    """Writes one array."""

    def __init__(self, file: BinaryIO, tensor: Described, rows: int):
        np.lib.format.write_array_header_1_0(file, {
            'descr': np.dtype(CODES[tensor.kind]).str, 'fortran_order': False,
            'shape': (rows, tensor.width)})
        self._file = file

    def append(self, tensors: Sequence[np.ndarray]) -> None:
        self._file.write(np.ascontiguousarray(tensors[0]).data)

    def finish(self) -> None:
        """Everything is written."""


class _SafetensorsWriter:
    """Writes several tensors, each into a place of its own.

    The library of that name would hold all rows of the file in memory.
    """

    def __init__(self, file: BinaryIO, tensors: Sequence[Described], first_id: int, rows: int):
        header: dict[str, object] = {'__metadata__': {
            'first_id': str(first_id), 'rows': str(rows)}}
        self._ends, end = [], 0
        for tensor in tensors:
            begin, end = end, end + rows * tensor.row_bytes
            header[tensor.name] = {'dtype': SAFETENSORS_KINDS[tensor.kind],
                                   'shape': [rows, tensor.width], 'data_offsets': [begin, end]}
            self._ends.append(begin)
        text = json.dumps(header).encode()
        text += b' ' * (-len(text) % 8)  # So that numbers lie at multiples of their size.
        file.write(len(text).to_bytes(8, 'little') + text)
        self._ends = [8 + len(text) + begin for begin in self._ends]
        self._file = file

    def append(self, tensors: Sequence[np.ndarray]) -> None:
        for number, rows in enumerate(tensors):
            self._file.seek(self._ends[number])
            self._file.write(np.ascontiguousarray(rows).data)
            self._ends[number] += rows.nbytes

    def finish(self) -> None:
        """Everything is written."""
