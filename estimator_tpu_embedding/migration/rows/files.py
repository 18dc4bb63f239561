"""Reads matrices of rows and vectors of ids from `.npy`, `.safetensors` and `.parquet` files.

Strangers write these files, so nothing in them is trusted. Rows are read in chunks. Files of the
first two kinds hold plain bytes after a header, and are read without other packages.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

import numpy as np

from ...checkpoint.tensors import KINDS
from ...errors import CheckpointError, Problem, shown
from ...proto import files, json_objects
from ...proto.wire import Malformed

ROWS = 'rows'
"""The name of the only column of a `.npy` file."""
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
_MAX_NPY_HEADER = 10_000
_MAX_RANK = 8
_MOST_LISTED = 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Rows or ids in a file.

    Attributes:
      where: the file, as messages call it.
      name: of the column; `'rows'` in a `.npy` file.
      kind: the name of its type, such as `'float32'`. A column of another type than `CODES` has,
        such as `'string'`, can be listed and not read.
      shape: `(n, width)` of rows and `(n,)` of ids; other shapes are the caller's to refuse.
      read: yields its rows from the first on, in arrays of `step` rows but for the last. Each
        is of the code `CODES[kind]`. It raises CheckpointError E665 if the file has changed.
    """

    where: str
    name: str
    kind: str
    shape: tuple[int, ...]
    read: Callable[[int], Iterator[np.ndarray]]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) * int(CODES[self.kind][1:])


def columns_of(directory: str, name: str) -> dict[str, Column]:
    """Returns what a file holds, by the names of its columns.

    Args:
      directory: of the file.
      name: of the file, without a directory; its suffix tells its kind.

    Raises:
      CheckpointError: E665 if the file is missing, no regular file, truncated, or of another kind.
        E663 if it is a `.parquet` file and pyarrow is missing.
    """
    where = shown(name, 255)
    if name.endswith('.parquet'):
        from . import parquet
        parquet.require_pyarrow()
        readers: Callable[[str, str, BinaryIO], dict[str, Column]] = parquet.columns
    elif name.endswith('.safetensors'):
        readers = _safetensors
    elif name.endswith('.npy'):
        readers = _npy
    else:
        raise bad_file(where, 'its name must end with .npy, .safetensors or .parquet', '',
                       'Convert the file to one of these kinds.')
    if not _NAME.fullmatch(name) or name in ('.', '..'):
        raise bad_file(where, 'it must be a name of a file in DIR, without a directory', '',
                       'Give its directory as DIR.')
    path = os.path.join(directory, name)
    with opened(path, where) as file:
        return readers(path, where, file)


def bad_file(where: str, rule: str, got: str, remedy: str = 'Write the file anew.'
             ) -> CheckpointError:
    """Returns the error for a file that cannot be used."""
    return CheckpointError(Problem('E665', f'file {where}', rule, got, remedy))


@contextlib.contextmanager
def opened(path: str, where: str) -> Iterator[BinaryIO]:
    """Opens a file; its content, and errors of the system, raise E665 in the body.

    Raises:
      CheckpointError: E665.
    """
    try:
        with contextlib.closing(files.open_regular(path, follow=False)) as file:
            yield file
    except OSError as error:
        raise bad_file(where, 'it must be a regular file that can be read',
                       shown(error.strerror or error)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError,
            SyntaxError, MemoryError, tokenize.TokenError) as error:
        raise bad_file(where, 'it must be readable', shown(error, 200)) from error


def _npy(path: str, where: str, file: BinaryIO) -> dict[str, Column]:
    """Returns the array of a `.npy` file, whose header is a Python literal in bytes."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise Malformed(f'a header of version {version}')
    read = (np.lib.format.read_array_header_1_0 if version == (1, 0)
            else np.lib.format.read_array_header_2_0)
    shape, is_fortran, dtype = read(file, max_header_size=_MAX_NPY_HEADER)
    if dtype.hasobject:
        raise bad_file(where, 'it must hold numbers', 'Python objects, which are never read here',
                       'Save an array of float32.')
    if dtype.name not in CODES:
        raise bad_file(where, 'it must hold numbers of a type of TensorFlow', shown(dtype),
                       'Save an array of float32, or of int64 for ids.')
    if is_fortran:
        raise bad_file(where, 'its rows must lie one after another', 'columns: Fortran order',
                       'Save numpy.ascontiguousarray(array).')
    return {ROWS: _plain(path, where, ROWS, dtype.name, shape, (
        file.tell(), files.size_of(file)), dtype.str)}


def _safetensors(path: str, where: str, file: BinaryIO) -> dict[str, Column]:
    """Returns the tensors of a `.safetensors` file: eight bytes of length, JSON, and numbers."""
    size = files.size_of(file)
    length = int.from_bytes(files.read_at_most(file, 8), 'little')
    if not 2 <= length <= min(_MAX_HEADER, size - 8):
        raise Malformed(f'a header of {length:,} bytes in a file of {size:,}')
    content = files.read_at_most(file, length)
    fields = json_objects.parsed(content, _MAX_HEADER_VALUES)
    fields.pop('__metadata__', None)
    found = {}
    for name, entry in fields.items():
        kind = _IN_SAFETENSORS.get(entry['dtype'])
        begin, end = (_count(number) for number in entry['data_offsets'])
        if kind is not None and isinstance(entry['shape'], list):
            found[name] = _plain(path, where, name, kind, tuple(entry['shape']), (
                8 + length + begin, 8 + length + end), CODES[kind])
        if not begin <= end <= size - 8 - length:
            raise Malformed(f'tensor "{shown(name)}" at {begin:,} to {end:,} of '
                            f'{size - 8 - length:,} bytes')
    return found


def _count(number: object) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise Malformed(f'{shown(number)} where a number of bytes or rows must be')
    return number


def _plain(path: str, where: str, name: str, kind: str, shape: tuple[int, ...],
           span: tuple[int, int], code: str) -> Column:
    """Returns a column of numbers that lie one after another.

    Args:
      path: of the file.
      where: the file, as messages call it.
      name: of the column.
      kind: of its numbers.
      shape: of it.
      span: where its bytes begin and end.
      code: NumPy's code of the numbers there, which may have another order of bytes.

    Raises:
      ValueError: if the bytes are not those of the shape.
    """
    if len(shape) > _MAX_RANK:
        raise Malformed(f'{len(shape)} dimensions')
    items = 1
    for size in shape:
        items *= _count(size)
    (begin, end), item = span, np.dtype(code).itemsize
    if end - begin != items * item:
        raise Malformed(f'{end - begin:,} bytes for {kind} {list(shape)}: it was cut off, or '
                        'something follows')
    row_items = items // shape[0] if shape and shape[0] else 0

    def read(step: int) -> Iterator[np.ndarray]:
        with opened(path, where) as file:
            file.seek(begin)
            for first in range(0, shape[0] if shape else 0, step):
                count = min(step, shape[0] - first)
                raw = np.empty(count * row_items * item, np.uint8)
                if file.readinto(raw.data) != raw.nbytes:  # type: ignore[attr-defined]
                    raise Malformed('it became shorter while it was read')
                yield raw.view(code).astype(CODES[kind], copy=False).reshape(count, *shape[1:])

    return Column(where=where, name=name, kind=kind, shape=shape, read=read)


def one_column(columns: Mapping[str, Column], key: str, where: str, fits: Callable[[Column], bool],
               rule: str) -> Column:
    """Returns the column of a name, or the only one that fits.

    Args:
      columns: of a file.
      key: the name that the user gave; `''` if none.
      where: the file, as messages call it.
      fits: whether a column may be meant.
      rule: for the message.

    Raises:
      CheckpointError: E665 if there is none of that name, or several fit.
    """
    found = [columns[key]] if key in columns else [
        column for column in columns.values() if fits(column)] if not key else []
    if len(found) != 1:
        listed = ', '.join(f'"{shown(name, 100)}" {shown(one.kind, 100)} {list(one.shape)}'
                           for name, one in list(columns.items())[:_MOST_LISTED])
        more = ', ...' if len(columns) > _MOST_LISTED else ''
        raise bad_file(where, rule if not key else f'it must have "{shown(key)}"',
                       f'{listed or "no columns"}{more}', f'Name one: {where}:NAME.' if (
                           found or key) else 'Write the file anew.')
    return found[0]
