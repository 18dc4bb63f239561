"""Writes the rows of tables of a checkpoint into files, in the order of ids, a few MB at a time.

They are written into a directory of another name, which takes its name when they are durable. So
a directory of that name holds a whole export.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

from ..checkpoint.bundle import Bundle
from ..checkpoint.manifest import Manifest, StoredTable
from ..checkpoint.object_graph import Place
from ..checkpoint.options import meant
from ..checkpoint.recover import Opened
from ..checkpoint.restore_plan import is_slot, stored_slots
from ..checkpoint.storage import Storage, created, free_bytes
from ..checkpoint.stored_rows import Ordered
from ..checkpoint.tensors import NO_ROW, Tensor
from ..core.partition import Partition
from ..errors import CheckpointError, ConfigError, Problem, shown
from .checkpoint_contents import is_tf2
from .new_names import some
from .row_files import ID, SAFETENSORS_KINDS, step_of


class Chosen(NamedTuple):
    """A table to export.

    Attributes:
      name: of its variable.
      slots: those to export, which are tensors `<name>/<slot>`.
      partition: of its rows and slots; `None` if they are in the order of ids.
    """

    name: str
    slots: Sequence[str]
    partition: Partition | None

    @property
    def tensors(self) -> list[tuple[str, str]]:
        """(slot, name of the tensor) of the table, whose slot is `''`, and of its slots."""
        return [('', self.name), *((slot, f'{self.name}/{slot}') for slot in self.slots)]


class Exported(NamedTuple):
    """A table or a slot in a file.

    Attributes:
      table: its name.
      slot: `''` for the table itself.
      tensor: what the checkpoint says of it.
      file: the name of the file.
    """

    table: str
    slot: str
    tensor: Tensor
    file: str


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
    opened = Opened(bundle, manifest)
    return {name: Chosen(
        name, sorted(stored_slots(opened, name, bundle.tensors[name].shape)), table.partition)
        for name, table in tables.items()
        if manifest is not None or _is_matrix(bundle, name) and not is_slot(name, tables)}


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
            problems.append(Problem(
                'E662', f'--table {shown(name, 200)}', 'it must name one table, in full or by '
                'parts of its name that no other has', 'several' if several else
                'none of that name', f'There: {some(sorted(several or found), 5)}.'))
    if not picked and not problems:
        problems.append(Problem(
            'E662', '--table', 'it must say which variables are tables, as nothing else does here',
            'nothing', f'There: {some(sorted(found), 5)}.'))
    if problems:
        raise ConfigError(*problems)
    return list(picked.values())


def _is_matrix(bundle: Bundle, key: str) -> bool:
    tensor = bundle.tensors[key]
    return (len(tensor.shape) == 2 and min(tensor.shape) > 0 and tensor.is_float
            and key.isprintable()
            and all(piece.first_row != NO_ROW for piece in tensor.pieces))


def export(bundle: Bundle, tables: Sequence[Chosen], format: str, directory: str
           ) -> list[Exported]:
    """Writes rows of tables into files.

    Args:
      bundle: the checkpoint.
      tables: to export.
      format: of the files, `'npy'`, `'safetensors'` or `'parquet'`.
      directory: which is made, or must be empty.

    Returns:
      What is in which file: the tables, each followed by its slots.

    Raises:
      CheckpointError: E661 if the directory is not empty, or cannot be written.
      CorruptCheckpointError: if the checkpoint cannot be read.
      Then there are no new files.
    """
    found = [_in_files(bundle, table, f'{number}-{_plain(table.name)}', format)
             for number, table in enumerate(tables)]
    id_bytes = 8 if format == 'parquet' else 0
    size = sum(of_table[0].tensor.rows * id_bytes + sum(one.tensor.size for one in of_table)
               for of_table in found)
    with _published(directory, size) as (storage, stage):
        for table, of_table in zip(tables, found):
            by_file = collections.defaultdict(list)
            for (_, name), one in zip(table.tensors, of_table):
                by_file[one.file].append(Ordered(bundle, name, table.partition))
            for file, sources in by_file.items():
                with created(storage.path(f'{stage}/{file}')) as opened:
                    _WRITERS[format](opened, sources)
                storage.sync(f'{stage}/{file}')
    return [one for of_table in found for one in of_table]


def _in_files(bundle: Bundle, table: Chosen, begin: str, format: str) -> list[Exported]:
    """Returns the files of a table: one, or in `.npy` one for each tensor."""
    return [Exported(
        table.name, slot, bundle.tensors[name],
        f'{begin}.{_plain(slot or "rows")}.npy' if format == 'npy' else f'{begin}.{format}')
        for slot, name in table.tensors]


def _plain(name: str) -> str:
    """Returns a part of a file's name that is like the name of a table or slot."""
    return re.sub(r'[^A-Za-z0-9_.]+', '-', name).strip('-.')[-80:] or '-'


def require_free(directory: str, where: str, size: int) -> None:
    """Makes sure that the disk of a directory has so many bytes free: E661 otherwise."""
    free = free_bytes(directory)
    if free < size:
        raise CheckpointError(Problem(
            'E661', where, f'the disk must have room for {size:,} bytes of rows',
            f'{free:,} bytes free', 'Make room, or name a directory on another disk.'))


@contextlib.contextmanager
def _published(directory: str, size: int) -> Iterator[tuple[Storage, str]]:
    """Makes a folder `DIRECTORY~`, which takes the other name if the body raises no error.

    Yields the storage that has it, and its name there.
    """
    where = f'directory {shown(directory, 300)}'
    parent, name = os.path.split(os.path.abspath(directory))
    stage = f'{name}~'
    try:
        if os.path.lexists(directory) and os.listdir(directory):
            raise CheckpointError(Problem(
                'E661', where, 'it must be empty or missing',
                f'{some(sorted(os.listdir(directory)), 5)} there', 'Name another one.'))
        os.makedirs(parent, exist_ok=True)
        with Storage(parent) as storage:
            if storage.status(stage) is not None:
                raise CheckpointError(Problem(
                    'E661', where, 'no other export may write it', f'{shown(stage, 255)} beside it',
                    'Wait for its end. If nothing writes it, delete it.'))
            require_free(parent, where, size)
            storage.make_folder(stage)
            try:
                yield storage, stage
                storage.sync(stage)
                storage.rename(stage, name)
                storage.sync()
            except BaseException:
                if storage.status(stage) is not None:
                    storage.remove_folder(stage)
                raise
    except OSError as error:
        raise CheckpointError(Problem(
            'E661', where, 'it must be a directory in which rows can be written',
            f'{shown(error, 300)}; {size:,} bytes are needed', 'Name another one, or make room.'
            )) from error


def _read(rows: Ordered, step: int) -> Iterator[np.ndarray]:
    """Yields all rows in the order of ids, bit for bit.

    Types that NumPy lacks, such as bfloat16, are unsigned integers of their size.
    """
    tensor = rows.bundle.tensors[rows.name]
    for first in range(0, tensor.rows, step):
        ids = np.arange(first, min(first + step, tensor.rows), dtype=np.int64)
        yield np.ascontiguousarray(rows.read_bytes(ids).view(tensor.code))


def _write_npy(file: BinaryIO, sources: Sequence[Ordered]) -> None:
    """Writes the one tensor of a file."""
    tensor = sources[0].bundle.tensors[sources[0].name]
    np.lib.format.write_array_header_1_0(file, {
        'descr': np.dtype(tensor.code).str, 'fortran_order': False, 'shape': tensor.shape})
    _write_rows(file, sources)


def _write_rows(file: BinaryIO, sources: Sequence[Ordered]) -> None:
    for source in sources:
        for rows in _read(source, step_of(source.bundle.tensors[source.name].row_bytes)):
            file.write(rows.data)


def _write_safetensors(file: BinaryIO, sources: Sequence[Ordered]) -> None:
    """Writes the table and its slots. The library of that format would take all rows in memory."""
    header, end = {}, 0
    for source in sources:
        tensor = source.bundle.tensors[source.name]
        begin, end = end, end + tensor.size
        header[_column(source.name)] = {'dtype': SAFETENSORS_KINDS[tensor.kind],
                                        'shape': tensor.shape, 'data_offsets': [begin, end]}
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)  # So that numbers lie at multiples of their size.
    file.write(len(text).to_bytes(8, 'little') + text)
    _write_rows(file, sources)


def _column(name: str) -> str:
    """Returns what a file of several columns calls a tensor; `id` means ids there."""
    return f'{ID}_rows' if name == ID else name


def _write_parquet(file: BinaryIO, sources: Sequence[Ordered]) -> None:
    """Writes a column `id` of int64, and for each tensor one of lists of one length."""
    import pyarrow
    from pyarrow import parquet
    fields = [pyarrow.field(ID, pyarrow.int64(), nullable=False)]
    tensors = [one.bundle.tensors[one.name] for one in sources]
    for one in tensors:
        number = pyarrow.from_numpy_dtype(np.dtype(one.code))
        fields.append(pyarrow.field(
            _column(one.name), pyarrow.list_(pyarrow.field(
                'element', number, nullable=False), one.shape[1]), nullable=False))
    step = min(step_of(one.row_bytes) for one in tensors)
    # Trained rows hardly compress, and a dictionary of floats is as large as they are.
    with parquet.ParquetWriter(file, pyarrow.schema(fields), compression='none',
                               use_dictionary=False, write_statistics=[ID]) as writer:
        first = 0
        for parts in zip(*[_read(one, step) for one in sources]):
            count = len(parts[0])
            writer.write_table(pyarrow.Table.from_arrays([
                pyarrow.array(np.arange(first, first + count, dtype=np.int64)),
                *(pyarrow.FixedSizeListArray.from_arrays(
                    pyarrow.array(rows.reshape(-1)), type=field.type)
                  for field, rows in zip(fields[1:], parts))], schema=writer.schema))
            first += count


_WRITERS = {'npy': _write_npy, 'safetensors': _write_safetensors, 'parquet': _write_parquet}
