"""Reads and writes `.parquet` files by the package pyarrow, a few MB at a time.

A file has a column `id` of int64. Each tensor is a column of lists of one length. Types that
Parquet lacks are stored as unsigned integers of the same size.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from ...errors import CheckpointError, Problem
from ...proto.wire import Malformed
from .files import CODES, Column, opened

ID = 'id'
_BUFFER = 2**20
_MAX_GROUP = 2**30
"""The most bytes of a column in a row group: what a reader may have to hold at once."""


def require_pyarrow() -> None:
    """Makes sure that pyarrow can be imported.

    Raises:
      CheckpointError: E663 if not.
    """
    if importlib.util.find_spec('pyarrow') is None:
        raise CheckpointError(Problem(
            'E663', 'Parquet', 'the package pyarrow must be installed', 'no such package',
            'pip install pyarrow, or "estimator_tpu_embedding[rows]"; or use another format.'))


def columns(path: str, where: str, file: BinaryIO) -> dict[str, Column]:
    """Returns the columns of a file. Those of numbers, or of lists of numbers, can be read.

    Args:
      path: of the file.
      where: the file, as messages call it.
      file: it, opened.

    Raises:
      ValueError: if it is no such file.
    """
    import pyarrow
    from pyarrow import parquet
    try:
        source = parquet.ParquetFile(file, buffer_size=_BUFFER)
        schema, rows = source.schema_arrow, source.metadata.num_rows
        _require_small_groups(source.metadata)
        found = {}
        for field in schema:
            kind, is_list = _kind(pyarrow, field.type)
            if schema.get_all_field_indices(field.name) == [schema.get_field_index(field.name)]:
                width = _width(source, field) if is_list else None
                shape = (rows,) if width is None else (rows, width)
                found[field.name] = _column(path, where, field.name, kind, shape)
        return found
    except pyarrow.ArrowException as error:
        raise Malformed(f'{type(error).__name__}: {error}') from error


def _require_small_groups(metadata: Any) -> None:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.total_byte_size > _MAX_GROUP:
            raise Malformed(f'a row group of {group.total_byte_size:,} bytes, more than '
                            f'{_MAX_GROUP:,}: write it with smaller ones')


def _kind(pyarrow: Any, type: Any) -> tuple[str, bool]:
    """Returns the name of a type, and whether it is of lists of numbers."""
    types = pyarrow.types
    is_list = (types.is_fixed_size_list(type) or types.is_list(type) or types.is_large_list(type))
    number = type.value_type if is_list else type
    if not (types.is_integer(number) or types.is_floating(number)):
        return str(type), False
    return np.dtype(number.to_pandas_dtype()).name, is_list


def _width(source: Any, field: Any) -> int:
    """Returns the length of the lists in a column; lists of variable length tell it by the first.

    All of them are compared with it when they are read.
    """
    if hasattr(field.type, 'list_size'):
        return int(field.type.list_size)
    for batch in source.iter_batches(1, columns=[field.name]):
        return len(batch.column(0)[0]) if batch.column(0)[0].is_valid else 0
    return 0


def _column(path: str, where: str, name: str, kind: str, shape: tuple[int, ...]) -> Column:
    def read(step: int) -> Iterator[np.ndarray]:
        import pyarrow
        from pyarrow import parquet
        with opened(path, where) as file:
            try:
                source = parquet.ParquetFile(file, buffer_size=_BUFFER)
                # One row group after the other: pyarrow would keep all of them in memory.
                yield from _in_steps((
                    _numbers(name, batch.column(0), kind, shape[1:])
                    for group in range(source.num_row_groups) for batch in source.iter_batches(
                        step, row_groups=[group], columns=[name], use_threads=False)), step)
            except pyarrow.ArrowException as error:
                raise Malformed(f'{type(error).__name__}: {error}') from error

    return Column(where=where, name=name, kind=kind, shape=shape, read=read)


def _numbers(name: str, column: Any, kind: str, sizes: tuple[int, ...]) -> np.ndarray:
    """Returns the numbers of a part of a column.

    Raises:
      ValueError: if some are missing, or a list has another length.
    """
    count = len(column)
    if column.null_count:
        raise Malformed(f'{column.null_count:,} empty cells in column "{name}"')
    if sizes:
        from pyarrow import compute
        if (compute.list_value_length(column).to_numpy(zero_copy_only=False) != sizes[0]).any():
            raise Malformed(f'lists of different lengths in column "{name}"')
        column = column.flatten()
        if column.null_count:
            raise Malformed(f'{column.null_count:,} empty cells in lists of column "{name}"')
    numbers = column.to_numpy(zero_copy_only=False)
    if numbers.dtype.name != kind:
        raise Malformed(f'{numbers.dtype.name} where {kind} was announced')
    return numbers.reshape(count, *sizes)


def _in_steps(parts: Iterator[np.ndarray], step: int) -> Iterator[np.ndarray]:
    """Yields the same rows, `step` at a time but for the last."""
    waiting: list[np.ndarray] = []
    count = 0
    for part in parts:
        waiting.append(part)
        count += len(part)
        while count >= step:
            whole = np.concatenate(waiting)
            yield whole[:step]
            waiting, count = [whole[step:]], count - step
    if count:
        yield np.concatenate(waiting)


class ParquetWriter:
    """Writes rows and their ids; each append becomes a row group."""

    def __init__(self, file: BinaryIO, tensors: Sequence[tuple[str, str, int]], first_id: int):
        """Begins a file.

        Args:
          file: which is written.
          tensors: name, type and width of each.
          first_id: the id of the first row.
        """
        import pyarrow
        from pyarrow import parquet
        fields = [pyarrow.field(ID, pyarrow.int64(), nullable=False)]
        for name, kind, width in tensors:
            number = pyarrow.from_numpy_dtype(np.dtype(CODES[kind]))
            fields.append(pyarrow.field(name, pyarrow.list_(
                pyarrow.field('element', number, nullable=False), width), nullable=False))
        self._schema = pyarrow.schema(fields)
        # Trained rows hardly compress, and a dictionary of floats is as large as they are.
        self._writer = parquet.ParquetWriter(file, self._schema, compression='none',
                                             use_dictionary=False, write_statistics=[ID])
        self._next = first_id

    def append(self, tensors: Sequence[np.ndarray]) -> None:
        """Writes the next rows of all tensors: `[n, width]` each."""
        import pyarrow
        count = len(tensors[0])
        arrays = [pyarrow.array(np.arange(self._next, self._next + count, dtype=np.int64))]
        for field, rows in zip(list(self._schema)[1:], tensors):
            arrays.append(pyarrow.FixedSizeListArray.from_arrays(
                pyarrow.array(np.ascontiguousarray(rows).reshape(-1)), type=field.type))
        self._writer.write_table(pyarrow.Table.from_arrays(arrays, schema=self._schema))
        self._next += count

    def finish(self) -> None:
        """Ends the file."""
        self._writer.close()
