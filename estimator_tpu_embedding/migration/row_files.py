"""Reads matrices of rows and vectors of ids from `.npy`, `.safetensors` and `.parquet` files.

Nothing in these files is trusted. Rows are read a few MB at a time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import math
import os
import tokenize
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from ..errors import CheckpointError, Problem, shown
from ..proto import files

ID = 'id'
"""The name of the column with ids in files of several columns."""
PACKAGES = {'npy': 'numpy', 'safetensors': 'safetensors', 'parquet': 'pyarrow',
            'projector': 'numpy'}
"""By the format of files, which mostly is their suffix: what reads them."""
SAFETENSORS_KINDS = {
    'float64': 'F64', 'float32': 'F32', 'float16': 'F16', 'bfloat16': 'BF16',
    'float8_e5m2': 'F8_E5M2', 'float8_e4m3fn': 'F8_E4M3', 'int64': 'I64', 'int32': 'I32',
    'uint64': 'U64', 'uint32': 'U32'}
"""What `.safetensors` files call the types of rows and ids."""
_STEP_BYTES = 2**22
_BUFFER = 2**20


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """Rows or ids in a file.

    `read` takes the opened file and a number of rows; it yields all rows, so many at a time or
    fewer.
    """

    file: str  # Its name.
    path: str
    kind: str  # The name of its type, such as `'float32'`.
    shape: tuple[int, ...]  # `(n, width)` of rows and `(n,)` of ids; the caller refuses others.
    read: Callable[[BinaryIO, int], Iterator[np.ndarray]]

    def __str__(self) -> str:
        return f'{shown(self.kind, 100)} {list(self.shape)} in file {shown(self.file, 255)}'

    def chunks(self) -> Iterator[np.ndarray]:
        """Yields all rows, a few MB at a time, of `np.dtype(kind)`.

        Raises:
          CheckpointError: E665 if the file has changed.
        """
        dtype = np.dtype(self.kind)
        with _opened(self.path) as file:
            for rows in self.read(file, step_of(math.prod(self.shape[1:]) * dtype.itemsize)):
                yield rows.astype(dtype, copy=False).reshape(-1, *self.shape[1:])


def step_of(row_bytes: int) -> int:
    """Returns how many rows are read at once."""
    return max(_STEP_BYTES // max(row_bytes, 1), 1)


def columns_of(directory: str, name: str) -> dict[str, Column]:
    """Returns what a file holds, by the names of its columns; a `.npy` file has one, called `''`.

    Raises:
      CheckpointError: E665 if the file is missing, no regular file, truncated, or of another kind.
        E663 if the package that reads it is missing.
    """
    path, suffix = os.path.join(directory, name), name.rpartition('.')[2]
    readers = {'npy': _npy, 'safetensors': _safetensors, 'parquet': _parquet}
    require(suffix)
    with _opened(path) as file:
        return dict(readers[suffix](name, path, file))


def require(format: str) -> None:
    """Makes sure that files of a format can be read and written.

    Raises:
      CheckpointError: E663 if a package is missing.
    """
    package = PACKAGES[format]
    if importlib.util.find_spec(package) is None:
        raise CheckpointError(Problem(
            'E663', f'.{format}', f'the package {package} must be installed', 'no such package',
            f'pip install {package}, or "estimator_tpu_embedding[rows]"; or use another format.'))


def bad_file(name: str, rule: str, got: str, remedy: str = 'Write the file anew.'
             ) -> CheckpointError:
    """Returns the error for a file that cannot be used."""
    return CheckpointError(Problem('E665', f'file {shown(name, 255)}', rule, got, remedy))


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Opens a file; its content, and errors of the system, raise E665 in the body."""
    name = os.path.basename(path)
    try:
        with contextlib.closing(files.open_regular(path, follow=True)) as file:
            yield file
    except OSError as error:
        raise bad_file(name, 'it must be a regular file that can be read',
                       shown(error.strerror or error)) from error
    # Errors of pyarrow are of these classes too.
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError, SyntaxError,
            MemoryError, NotImplementedError, tokenize.TokenError) as error:
        raise bad_file(name, 'it must be readable', shown(error, 200)) from error


def _npy(name: str, path: str, file: BinaryIO) -> Iterator[tuple[str, Column]]:
    found = np.lib.format.open_memmap(path, 'r')  # It reads the header alone.
    dtype, shape, begin = found.dtype, found.shape, found.offset
    if not found.flags.c_contiguous:
        raise ValueError('columns in Fortran order: save numpy.ascontiguousarray(array)')

    def read(file: BinaryIO, step: int) -> Iterator[np.ndarray]:
        file.seek(begin)  # Pages of a mapped file would count as memory.
        for first in range(0, shape[0], step):
            count = min(step, shape[0] - first) * math.prod(shape[1:])
            rows = np.fromfile(file, dtype, count)
            if rows.size != count:
                raise ValueError('it became shorter while it was read')
            yield rows

    yield '', Column(name, path, dtype.name, shape, read)


@contextlib.contextmanager
def _with_safetensors(path: str) -> Iterator[Any]:
    """Opens a `.safetensors` file by its library, which checks the header; maps the file."""
    from safetensors import SafetensorError, safe_open
    try:
        with safe_open(path, 'np') as source:
            yield source
    except SafetensorError as error:
        raise ValueError(error) from error


def _safetensors(name: str, path: str, file: BinaryIO) -> Iterator[tuple[str, Column]]:
    kinds = {short: kind for kind, short in SAFETENSORS_KINDS.items()}
    with _with_safetensors(path) as source:
        for key in source.keys():
            tensor = source.get_slice(key)
            kind = tensor.get_dtype()
            yield key, Column(name, path, kinds.get(kind, kind), tuple(tensor.get_shape()),
                              functools.partial(_read_safetensors, key, path))


def _read_safetensors(key: str, path: str, file: BinaryIO, step: int) -> Iterator[np.ndarray]:
    """Yields rows of a tensor; opens the file for each part, as mapped pages count as memory."""
    first = count = 0
    while not first or first < count:
        with _with_safetensors(path) as source:
            tensor = source.get_slice(key)
            count = tensor.get_shape()[0]
            yield tensor[first:min(first + step, count)]
        first += step


def _parquet(name: str, path: str, file: BinaryIO) -> Iterator[tuple[str, Column]]:
    """Yields the columns of a `.parquet` file that hold numbers, or lists of them."""
    from pyarrow import parquet, types
    source = parquet.ParquetFile(file, buffer_size=_BUFFER)
    for field in source.schema_arrow:
        is_list = (types.is_fixed_size_list(field.type) or types.is_list(field.type)
                   or types.is_large_list(field.type))
        number = field.type.value_type if is_list else field.type
        if not types.is_integer(number) and not types.is_floating(number):
            continue
        kind, shape = np.dtype(number.to_pandas_dtype()).name, [source.metadata.num_rows]
        if is_list:  # The first tells the length; all are compared with it when they are read.
            first = next(source.iter_batches(1, columns=[field.name]), None)
            shape.append(len(first.column(0)[0].as_py() or ()) if first is not None else 0)
        yield field.name, Column(name, path, kind, tuple(shape), functools.partial(
            _read_parquet, field.name, kind, shape[1:]))


def _read_parquet(name: str, kind: str, sizes: Sequence[int], file: BinaryIO, step: int
                  ) -> Iterator[np.ndarray]:
    from pyarrow import parquet
    source = parquet.ParquetFile(file, buffer_size=_BUFFER)
    # One row group after the other: pyarrow would keep all of them in memory.
    for group in range(source.num_row_groups):
        for batch in source.iter_batches(step, row_groups=[group], columns=[name],
                                         use_threads=False):
            yield _numbers(name, batch.column(0), kind, sizes)


def _numbers(name: str, column: Any, kind: str, sizes: Sequence[int]) -> np.ndarray:
    """Returns the numbers of a part of a column: ValueError if it lacks some, or a list differs."""
    from pyarrow import compute
    empty = column.null_count
    if sizes and not empty:
        if not compute.all(compute.equal(compute.list_value_length(column), sizes[0])).as_py():
            raise ValueError(f'lists of different lengths in column "{name}"')
        column = column.flatten()
        empty = column.null_count
    numbers = column.to_numpy(zero_copy_only=False)
    if empty or numbers.dtype.name != kind:
        raise ValueError(f'{empty:,} empty cells in column "{name}"' if empty else
                         f'{numbers.dtype.name} where {kind} was announced')
    return np.asarray(numbers)
