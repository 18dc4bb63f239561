"""Writes the rows of tables of a checkpoint into files, in the order of ids, a few MB at a time.

`rows.json`, which says what the files hold, comes last, when they are durable. So a directory
without `rows.json` holds no whole export.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ...checkpoint.bundle import Bundle
from ...checkpoint.compare import is_slot, stored_slots
from ...checkpoint.held import Held
from ...checkpoint.manifest import Manifest, StoredTable
from ...checkpoint.object_graph import Place
from ...checkpoint.options import meant
from ...checkpoint.storage import Storage, created, free_bytes
from ...checkpoint.stored_rows import Ordered
from ...checkpoint.tensors import NO_ROW, Tensor
from ...core.partition import Partition
from ...errors import CheckpointError, ConfigError, Problem, quoted, shown
from ...version import VERSION
from ..contents import is_tf2
from .files import FORMAT, ID, LISTING, ROWS, SAFETENSORS_KINDS, hashed, step_of

_UNFINISHED = f'{LISTING}~'
_RESERVED = (ID, '__metadata__')
"""Names that mean something else in a file."""
_MOST_NAMED = 5


class Chosen(NamedTuple):
    """A table to export.

    Attributes:
      name: of its variable.
      slots: its slots to export: (slot, name of the tensor).
      partition: of its rows and slots; `None` if they are in the order of ids.
    """

    name: str
    slots: Sequence[tuple[str, str]]
    partition: Partition | None

    @property
    def tensors(self) -> list[tuple[str, str]]:
        """(slot, name of the tensor) of the table, whose slot is `''`, and of its slots."""
        return [('', self.name), *self.slots]


def candidates(bundle: Bundle, tables: Mapping[str, StoredTable], manifest: Manifest | None
               ) -> dict[str, Chosen]:
    """Returns all tables, with all their slots, by name.

    Args:
      bundle: the checkpoint.
      tables: of its manifest; without one, tensors whose order the user stated.
      manifest: of the checkpoint.

    Returns:
      Of a checkpoint of TF2 the variables that have the shape of a table, by their keys. TF2 always
      stores rows in the order of ids, so these have no partition.
    """
    if not tables and is_tf2(bundle):
        return {key: Chosen(key, [], None) for key in bundle.tensors if _is_matrix(bundle, key)
                and (place := Place.of_key(key)) is not None and not place.slot}
    if manifest is not None:
        return {name: Chosen(name, [(slot, f'{name}/{slot}') for slot in table.slots],
                             table.partition) for name, table in tables.items()}
    held = Held(bundle, None)
    return {name: Chosen(name, [(slot, f'{name}/{slot}') for slot in sorted(stored_slots(
        held, name, bundle.tensors[name].shape))], table.partition)
        for name, table in tables.items()
        if _is_matrix(bundle, name) and not is_slot(name, tables)}


def chosen(names: Sequence[str], found: Mapping[str, Chosen], with_slots: bool) -> list[Chosen]:
    """Returns the tables that names mean, in their order; without names, all that are known to be.

    Args:
      names: in full, or parts of names, as `CheckpointOptions` take them.
      found: by `candidates`.
      with_slots: whether slots are wanted too.

    Raises:
      ConfigError: E662 if a name means no table, or several; or if no table is known.
    """
    picked: dict[str, Chosen] = {}
    problems: list[Problem] = []
    for name in names or [name for name, one in found.items() if one.partition is not None]:
        several = meant(name, found)
        if len(several) == 1:
            one = found[several[0]]
            picked[one.name] = one if with_slots else one._replace(slots=[])
        else:
            problems += _unknown(name, several, found)
    if not picked and not problems:
        problems.append(Problem(
            'E662', '--table', 'it must say which variables are tables, as nothing else does here',
            'nothing', f'There: {quoted(shown(name, 200) for name in sorted(found)[:5])}.'))
    if problems:
        raise ConfigError(*problems)
    return list(picked.values())


def _unknown(name: str, several: Sequence[str], known: Collection[str]) -> Iterator[Problem]:
    there = quoted(shown(one, 200) for one in several[:5] or sorted(known)[:5])
    yield Problem(
        'E662', f'--table {shown(name, 200)}', 'it must name one table, in full or by parts of '
        'its name that no other has', 'several' if several else 'none of that name',
        f'There: {there}.')


def _is_matrix(bundle: Bundle, key: str) -> bool:
    tensor = bundle.tensors[key]
    return (len(tensor.shape) == 2 and min(tensor.shape) > 0 and tensor.is_float
            and key.isprintable()
            and all(piece.first_row != NO_ROW for piece in tensor.pieces))


def export(bundle: Bundle, tables: Sequence[Chosen], format: str, directory: str, *, name: str,
           step: int | None) -> list[dict[str, Any]]:
    """Writes rows of tables into files.

    Args:
      bundle: the checkpoint.
      tables: to export.
      format: of the files, one of `files.FORMATS`.
      directory: which is made, or must be empty.
      name: of the checkpoint, for `rows.json`.
      step: of the checkpoint; `None` if it is unknown.

    Returns:
      The tables in `rows.json`.

    Raises:
      CheckpointError: E661 if the directory is not empty, or cannot be written.
      CorruptCheckpointError: if the checkpoint cannot be read.
      Then it leaves no file in the directory.
    """
    sources = [[_source(format, Ordered(bundle, tensor, table.partition))
                for _, tensor in table.tensors] for table in tables]
    id_bytes = 8 if format == 'parquet' else 0
    size = sum(of_table[0].tensor.rows * (id_bytes + sum(
        one.tensor.row_bytes for one in of_table)) for of_table in sources)
    with _opened(directory, size) as (storage, made):
        listed = [_write_table(storage, made, f'{number}-{_plain(table.name)}', format, table, rows)
                  for number, (table, rows) in enumerate(zip(tables, sources))]
        text = json.dumps({
            'format': FORMAT, 'created_by': f'estimator_tpu_embedding {VERSION}', 'kind': format,
            'checkpoint': {'name': name, 'step': step}, 'tables': listed}, indent=1)
        made += [_UNFINISHED, LISTING]
        storage.create(_UNFINISHED, f'{text}\n'.encode())
        storage.sync(_UNFINISHED)
        storage.sync()
        storage.rename(_UNFINISHED, LISTING)
        storage.sync()
    return listed


def _write_table(storage: Storage, made: list[str], begin: str, format: str, table: Chosen,
                 sources: Sequence[_Source]) -> dict[str, Any]:
    """Writes the files of a table: in `.npy` one for each tensor; adds their names to `made`."""
    tensors = []
    for (slot, name), source in zip(table.tensors, sources):
        which = f'.{_plain(slot or "rows")}' if format == 'npy' else ''
        file = f'{begin}{which}.{format}'
        if which or not slot:
            path = storage.path(file)
            with created(path) as opened:
                made.append(file)
                _write(format, opened, [source] if which else sources)
            storage.sync(file)
            digest = hashed(path)
        tensors.append({'name': name, 'slot': slot, 'dtype': source.tensor.kind, 'file': file,
                        'column': source.column, 'sha256': digest})
    return {'name': table.name, 'tensors': tensors}


def _plain(name: str) -> str:
    """Returns a part of a file's name that is like the name of a table or slot."""
    return re.sub(r'[^A-Za-z0-9_.]+', '-', name).strip('-.')[-80:] or '-'


@contextlib.contextmanager
def _opened(directory: str, size: int) -> Iterator[tuple[Storage, list[str]]]:
    """Makes a directory; the files in it that the body lists are removed if it fails."""
    where = f'directory {shown(directory, 300)}'
    if '://' in directory:
        raise CheckpointError(Problem('E661', where, 'it must be a directory of this machine', '',
                                      'Write into a local directory, and copy it.'))
    made: list[str] = []
    try:
        was_there = os.path.isdir(directory)
        os.makedirs(directory, exist_ok=True)
        with Storage(directory) as storage:
            _require_empty(storage, where)
            try:
                free = free_bytes(directory)
                if free < size:
                    raise CheckpointError(Problem(
                        'E661', where, f'the disk must have room for {size:,} bytes of rows',
                        f'{free:,} bytes free', 'Make room, or name a directory on another disk.'))
                yield storage, made
            except BaseException:
                with contextlib.suppress(OSError):
                    for name in reversed(made):
                        if storage.status(name) is not None:
                            storage.remove(name)
                    if not was_there:
                        os.rmdir(directory)  # Only if it is empty.
                raise
    except OSError as error:
        raise CheckpointError(Problem(
            'E661', where, 'it must be a directory in which rows can be written',
            f'{shown(error, 300)}; {size:,} bytes are needed', 'Name another one, or make room.'
            )) from error


def _require_empty(storage: Storage, where: str) -> None:
    names = storage.names()
    if names:
        raise CheckpointError(Problem(
            'E661', where, 'it must be empty or missing', 'rows of an earlier export'
            if LISTING in names else f'{len(names):,} files, perhaps of an export that did not end '
            f'or still writes: {", ".join(map(shown, names[:_MOST_NAMED]))}', 'Name another one.'))


class _Source(NamedTuple):
    """A table or a slot: the name of its column in a file, and its rows."""

    column: str
    rows: Ordered

    @property
    def tensor(self) -> Tensor:
        """What the checkpoint says of it."""
        return self.rows.bundle.tensors[self.rows.name]

    def read(self, step: int) -> Iterator[np.ndarray]:
        """Yields all rows in the order of ids, bit for bit: of the code `CODES` has for the type.
        """
        for first in range(0, self.tensor.rows, step):
            ids = np.arange(first, min(first + step, self.tensor.rows), dtype=np.int64)
            yield self.rows.read_bytes(ids).view(self.tensor.code)


def _source(format: str, rows: Ordered) -> _Source:
    """Returns a tensor with the name of the column that holds it in a file."""
    if format == 'npy':
        return _Source(ROWS, rows)
    return _Source(f'{rows.name}_rows' if rows.name in _RESERVED else rows.name, rows)


def _write(format: str, file: BinaryIO, sources: Sequence[_Source]) -> None:
    """Writes a file.

    Args:
      format: one of `files.FORMATS`.
      file: which is written.
      sources: what it will hold; in a `.npy` file one.
    """
    if format == 'parquet':
        _write_parquet(file, sources)
        return
    if format == 'npy':
        tensor = sources[0].tensor
        np.lib.format.write_array_header_1_0(file, {
            'descr': np.dtype(tensor.code).str, 'fortran_order': False, 'shape': tensor.shape})
    else:
        file.write(_header([(one.column, one.tensor) for one in sources]))
    for one in sources:
        for rows in one.read(step_of(one.tensor.row_bytes)):
            file.write(np.ascontiguousarray(rows).data)


def _header(tensors: Sequence[tuple[str, Tensor]]) -> bytes:
    """Returns the beginning of a `.safetensors` file; its library would hold all rows in memory."""
    header, end = {}, 0
    for name, tensor in tensors:
        begin, end = end, end + tensor.rows * tensor.row_bytes
        header[name] = {'dtype': SAFETENSORS_KINDS[tensor.kind], 'shape': tensor.shape,
                        'data_offsets': [begin, end]}
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)  # So that numbers lie at multiples of their size.
    return len(text).to_bytes(8, 'little') + text


def _write_parquet(file: BinaryIO, sources: Sequence[_Source]) -> None:
    """Writes a column `id` of int64, and for each tensor one of lists of one length."""
    import pyarrow
    from pyarrow import parquet
    fields = [pyarrow.field(ID, pyarrow.int64(), nullable=False)]
    for one in sources:
        number = pyarrow.from_numpy_dtype(np.dtype(one.tensor.code))
        fields.append(pyarrow.field(one.column, pyarrow.list_(pyarrow.field(
            'element', number, nullable=False), one.tensor.shape[1]), nullable=False))
    step = min(step_of(one.tensor.row_bytes) for one in sources)
    # Trained rows hardly compress, and a dictionary of floats is as large as they are.
    with parquet.ParquetWriter(file, pyarrow.schema(fields), compression='none',
                               use_dictionary=False, write_statistics=[ID]) as writer:
        first = 0
        for parts in zip(*[one.read(step) for one in sources]):
            count = len(parts[0])
            writer.write_table(pyarrow.Table.from_arrays([
                pyarrow.array(np.arange(first, first + count, dtype=np.int64)),
                *(pyarrow.FixedSizeListArray.from_arrays(
                    pyarrow.array(np.ascontiguousarray(rows).reshape(-1)), type=field.type)
                  for field, rows in zip(fields[1:], parts))], schema=writer.schema))
            first += count
