"""Reads matrices of rows and vectors of ids from `.npy`, `.safetensors` and `.parquet` files.

Strangers write these files, so nothing in them is trusted. Rows are read a few MB at a time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.util
import math
import os
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from ...checkpoint.tensors import KINDS
from ...core.specs import is_count
from ...errors import CheckpointError, Problem, shown
from ...proto import files
from ...proto.files import Malformed

FORMATS = ('npy', 'safetensors', 'parquet')
ROWS, ID = 'rows', 'id'
"""The names of the only column of a `.npy` file, and of the column with ids in others."""
LISTING, FORMAT = 'rows.json', 2
"""The file beside them that says what they hold, and the number of its form.

It is one JSON object with these members:

- `format`: 2. `created_by`: the writer. `kind`: `"npy"`, `"safetensors"` or `"parquet"`.
- `checkpoint`: its `name`, and its `step`, or `null`.
- `tables`: each with its `name`, and `tensors`: the table itself, then its slots. Each of these has
  `name`, `slot` (`""` is the table), `dtype`, `file`, `column` in it, and `sha256` of the file.
"""
CODES = {name: code for name, code in KINDS.values() if code}
"""NumPy's codes of types by their names; of integers of that size for types that NumPy lacks."""
SAFETENSORS_KINDS = {
    'float64': 'F64', 'float32': 'F32', 'float16': 'F16', 'bfloat16': 'BF16',
    'float8_e5m2': 'F8_E5M2', 'float8_e4m3fn': 'F8_E4M3', 'int64': 'I64', 'int32': 'I32',
    'int16': 'I16', 'int8': 'I8', 'uint64': 'U64', 'uint32': 'U32', 'uint16': 'U16', 'uint8': 'U8',
    'bool': 'BOOL'}
"""What `.safetensors` files call types."""

_IN_SAFETENSORS = {short: name for name, short in SAFETENSORS_KINDS.items()}
_NAME = re.compile(r'[^\x00-\x1f\x7f/\\]{1,255}', re.DOTALL)
_MAX_HEADER = 2**24
_MAX_HEADER_VALUES = 1_000_000
_MAX_ROWS, _MAX_RANK = 2**63 - 1, 8
_MOST_LISTED = 20
_STEP_BYTES = 2**22
_BUFFER = 2**20


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """Rows or ids in a file.

    Attributes:
      path: of the file.
      name: of the column; `'rows'` in a `.npy` file.
      kind: the name of its type, such as `'float32'`. A column of another type than `CODES` has,
        such as `'string'`, can be listed and not read.
      shape: `(n, width)` of rows and `(n,)` of ids; other shapes are the caller's to refuse.
      read: takes the opened file and a number of rows; yields the rows from the first on, so many
        at a time or fewer.
    """

    path: str
    name: str
    kind: str
    shape: tuple[int, ...]
    read: Callable[[BinaryIO, int], Iterator[np.ndarray]]

    def __str__(self) -> str:
        return f'{self.kind} {list(self.shape)} in file {where_of(self.path)}'

    def chunks(self) -> Iterator[np.ndarray]:
        """Yields all rows of the code `CODES[kind]`, a few MB at a time.

        Raises:
          CheckpointError: E665 if the file has changed.
        """
        row_bytes = math.prod(self.shape[1:]) * int(CODES[self.kind][1:])
        with opened(self.path) as file:
            for rows in self.read(file, step_of(row_bytes)):
                yield rows.astype(CODES[self.kind], copy=False).reshape(-1, *self.shape[1:])


def step_of(row_bytes: int) -> int:
    """Returns how many rows are read at once."""
    return max(_STEP_BYTES // max(row_bytes, 1), 1)


def columns_of(directory: str, name: str) -> dict[str, Column]:
    """Returns what a file holds, by the names of its columns.

    Args:
      directory: of the file.
      name: of the file, without a directory; its suffix tells its kind.

    Raises:
      CheckpointError: E665 if the file is missing, no regular file, truncated, or of another kind.
        E663 if it is a `.parquet` file and pyarrow is missing.
    """
    path, suffix = os.path.join(directory, name), name.rpartition('.')[2]
    readers = {'npy': _npy, 'safetensors': _safetensors, 'parquet': _parquet}
    if suffix not in readers:
        raise bad_file(name, 'its name must end with .npy, .safetensors or .parquet', '',
                       'Convert the file to one of these kinds.')
    if not _NAME.fullmatch(name):
        raise bad_file(name, 'it must be a name of a file in DIR, without a directory', '',
                       'Give its directory as DIR.')
    require(suffix)
    with opened(path) as file:
        return {column.name: column for column in readers[suffix](path, file)}


def require(format: str) -> None:
    """Makes sure that files of a format can be read and written.

    Raises:
      CheckpointError: E663 if a package is missing.
    """
    if format == 'parquet' and importlib.util.find_spec('pyarrow') is None:
        raise CheckpointError(Problem(
            'E663', 'Parquet', 'the package pyarrow must be installed', 'no such package',
            'pip install pyarrow, or "estimator_tpu_embedding[rows]"; or use another format.'))


def stored_kind(format: str, kind: str) -> str:
    """Returns the type of the column that holds numbers of a type.

    >>> stored_kind('npy', 'bfloat16'), stored_kind('safetensors', 'bfloat16')
    ('uint16', 'bfloat16')
    """
    return kind if format == 'safetensors' else np.dtype(CODES[kind]).name


def where_of(path: str) -> str:
    """Returns how messages call a file."""
    return shown(os.path.basename(path), 255)


def bad_file(name: str, rule: str, got: str, remedy: str = 'Write the file anew.'
             ) -> CheckpointError:
    """Returns the error for a file that cannot be used."""
    return CheckpointError(Problem('E665', f'file {shown(name, 255)}', rule, got, remedy))


@contextlib.contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Opens a file; its content, and errors of the system, raise E665 in the body.

    Raises:
      CheckpointError: E665.
    """
    name = os.path.basename(path)
    try:
        with contextlib.closing(files.open_regular(path, follow=False)) as file:
            yield file
    except OSError as error:
        raise bad_file(name, 'it must be a regular file that can be read',
                       shown(error.strerror or error)) from error
    # Errors of pyarrow are of these classes too.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError,
            SyntaxError, MemoryError, NotImplementedError, tokenize.TokenError) as error:
        raise bad_file(name, 'it must be readable', shown(error, 200)) from error


def hashed(path: str) -> str:
    """Returns the SHA-256 of a regular file.

    Raises:
      CheckpointError: E665 if it cannot be read.
    """
    digest = hashlib.sha256()
    with opened(path) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def _npy(path: str, file: BinaryIO) -> Iterator[Column]:
    """Yields the array of a `.npy` file."""
    found = np.lib.format.open_memmap(path, 'r')  # It reads the header alone.
    if found.dtype.name not in CODES:
        raise Malformed(f'{found.dtype}, which is no type of TensorFlow')
    if not found.flags.c_contiguous:
        raise Malformed('columns in Fortran order: save numpy.ascontiguousarray(array)')
    yield _plain(path, ROWS, found.dtype.name, found.shape, found.offset, found.dtype)


def _safetensors(path: str, file: BinaryIO) -> Iterator[Column]:
    """Yields the tensors of a `.safetensors` file: eight bytes of length, JSON, and numbers."""
    size = files.size_of(file)
    length = int.from_bytes(files.read_at_most(file, 8), 'little')
    if not 2 <= length <= min(_MAX_HEADER, size - 8):
        raise Malformed(f'a header of {length:,} bytes in a file of {size:,}')
    fields = files.json_object(files.read_at_most(file, length), _MAX_HEADER_VALUES)
    fields.pop('__metadata__', None)
    for name, entry in fields.items():
        kind, shape = _IN_SAFETENSORS.get(entry['dtype']), tuple(entry['shape'])
        begin, end = entry['data_offsets']
        if len(shape) > _MAX_RANK or not all(is_count(one, 0, _MAX_ROWS) for one in (
                *shape, begin, end)) or kind is not None and (
                    end - begin != math.prod(shape) * int(CODES[kind][1:])) or (
                        not begin <= end <= size - 8 - length):
            raise Malformed(f'tensor "{shown(name)}" of {shown(entry["dtype"])} {shown(shape)} at '
                            f'{shown(begin)} to {shown(end)} of {size - 8 - length:,} bytes')
        if kind is not None:
            yield _plain(path, name, kind, shape, 8 + length + begin, np.dtype(CODES[kind]))


def _plain(path: str, name: str, kind: str, shape: tuple[int, ...], begin: int, dtype: np.dtype
           ) -> Column:
    """Returns a column of numbers that lie one after another; `begin` is where."""
    def read(file: BinaryIO, step: int) -> Iterator[np.ndarray]:
        file.seek(begin)
        for first in range(0, shape[0], step):
            count = min(step, shape[0] - first) * math.prod(shape[1:])
            rows = np.fromfile(file, dtype, count)
            if rows.size != count:
                raise Malformed('it became shorter while it was read')
            yield rows

    return Column(path, name, kind, shape, read)


def _parquet(path: str, file: BinaryIO) -> Iterator[Column]:
    """Yields the columns of a `.parquet` file. Those of numbers, or of lists of them, can be read.
    """
    from pyarrow import parquet, types
    source = parquet.ParquetFile(file, buffer_size=_BUFFER)
    for field in source.schema_arrow:
        is_list = (types.is_fixed_size_list(field.type) or types.is_list(field.type)
                   or types.is_large_list(field.type))
        number = field.type.value_type if is_list else field.type
        kind, shape = str(field.type), [source.metadata.num_rows]
        if types.is_integer(number) or types.is_floating(number):
            kind = np.dtype(number.to_pandas_dtype()).name
            if is_list:  # The first tells the length; all are compared with it when they are read.
                first = next(source.iter_batches(1, columns=[field.name]), None)
                shape.append(len(first.column(0)[0].as_py() or ()) if first is not None else 0)
        yield Column(path, field.name, kind, tuple(shape), functools.partial(
            _read_parquet, field.name, kind, shape[1:]))


def _read_parquet(name: str, kind: str, sizes: Sequence[int], file: BinaryIO, step: int
                  ) -> Iterator[np.ndarray]:
    """Yields rows of a column."""
    from pyarrow import parquet
    source = parquet.ParquetFile(file, buffer_size=_BUFFER)
    # One row group after the other: pyarrow would keep all of them in memory.
    for group in range(source.num_row_groups):
        for batch in source.iter_batches(step, row_groups=[group], columns=[name],
                                         use_threads=False):
            yield _numbers(name, batch.column(0), kind, sizes)


def _numbers(name: str, column: Any, kind: str, sizes: Sequence[int]) -> np.ndarray:
    """Returns the numbers of a part of a column.

    Raises:
      ValueError: if some are missing, or a list has another length.
    """
    from pyarrow import compute
    empty = column.null_count
    if sizes and not empty:
        if not compute.all(compute.equal(compute.list_value_length(column), sizes[0])).as_py():
            raise Malformed(f'lists of different lengths in column "{name}"')
        column = column.flatten()
        empty = column.null_count
    numbers = column.to_numpy(zero_copy_only=False)
    if empty or numbers.dtype.name != kind:
        raise Malformed(f'{empty:,} empty cells in column "{name}"' if empty else
                        f'{numbers.dtype.name} where {kind} was announced')
    return np.asarray(numbers)


def one_column(columns: Mapping[str, Column], key: str, file: str, fits: Callable[[Column], bool],
               rule: str) -> Column:
    """Returns the column of a name, or the only one that fits.

    Args:
      columns: of a file.
      key: the name that the user gave; `''` if none.
      file: the name of the file.
      fits: whether a column may be meant.
      rule: for the message.

    Raises:
      CheckpointError: E665 if there is none of that name, or several fit.
    """
    found = [one for name, one in columns.items() if (name == key if key else fits(one))]
    if len(found) != 1:
        listed = ', '.join(f'"{shown(name, 100)}" {shown(one.kind, 100)} {list(one.shape)}'
                           for name, one in list(columns.items())[:_MOST_LISTED])
        raise bad_file(file, rule if not key else f'it must have "{shown(key)}"',
                       listed or 'no columns', f'Name one: {shown(file, 255)}:NAME.' if (
                           found or key) else 'Write the file anew.')
    return found[0]
