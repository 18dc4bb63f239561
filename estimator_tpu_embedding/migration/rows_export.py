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
from ..checkpoint.stored_rows import Ordered, batches
from ..checkpoint.tensors import Tensor
from ..core.partition import Partition
from ..errors import CheckpointError, ConfigError, Problem, shown
from .checkpoint_contents import is_tf2
from .new_names import some
from .row_files import ID, SAFETENSORS_KINDS

PROJECTOR = 'projector'
_EACH = {'npy': 'npy', PROJECTOR: 'tsv'}
"""Formats in which each tensor has a file of its own: their suffixes."""
_BYTES_OF_TEXT = 4
"""A float32 takes at most so many times its bytes as text."""


class Chosen(NamedTuple):
    """A table to export."""

    name: str  # Of its variable.
    slots: Sequence[str]  # Those to export, which are tensors `<name>/<slot>`.
    partition: Partition | None  # Of rows and slots; `None` if they are in the order of ids.

    @property
    def tensors(self) -> list[tuple[str, str]]:
        """(slot, name of the tensor) of the table, whose slot is `''`, and of its slots."""
        return [('', self.name), *((slot, f'{self.name}/{slot}') for slot in self.slots)]


class Exported(NamedTuple):
    """A table, whose slot is `''`, or one of its slots, in the file of that name."""

    slot: str
    tensor: Tensor
    file: str


def candidates(bundle: Bundle, tables: Mapping[str, StoredTable], manifest: Manifest | None
               ) -> dict[str, Chosen]:
    """Returns all tables of a checkpoint, with all their slots, by name.

    Without a manifest, `tables` are tensors whose order the user stated. Of TF2 the result has the
    variables with the shape of a table, by their keys; their rows are in the order of ids.
    """
    matrices = {key for key, one in bundle.tensors.items() if one.is_table and key.isprintable()}
    if not tables and is_tf2(bundle):
        return {key: Chosen(key, [], None) for key in bundle.tensors if key in matrices
                and (place := Place.of_key(key)) is not None and not place.slot}
    opened = Opened(bundle, manifest)
    return {name: Chosen(
        name, sorted(stored_slots(opened, name, bundle.tensors[name].shape)), table.partition)
        for name, table in tables.items()
        if manifest is not None or name in matrices and not is_slot(name, tables)}


def chosen(names: Sequence[str], found: Mapping[str, Chosen], with_slots: bool) -> list[Chosen]:
    """Returns the tables that names mean, in their order; without names, all that are known to be.

    Names are in full, or parts, as `CheckpointOptions` take them; `found` is of `candidates`.

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


def export(bundle: Bundle, tables: Sequence[Chosen], format: str, directory: str
           ) -> list[list[Exported]]:
    """Writes rows of tables into files of a directory, which is made, or must be empty.

    Returns:
      For each table what is in which file: its rows, and then its slots.

    Raises:
      CheckpointError: E661 if the directory is not empty, or cannot be written.
      CorruptCheckpointError: if the checkpoint cannot be read.
      Then there are no new files.
    """
    found = []
    for number, table in enumerate(tables):
        begin = f'{number}-{_plain(table.name)}'
        found.append([Exported(
            slot, bundle.tensors[name],
            f'{begin}.{_plain(slot or "rows")}.{_EACH[format]}' if format in _EACH
            else f'{begin}.{format}') for slot, name in table.tensors])
    id_bytes = 8 if format == 'parquet' else 0
    size = sum(of_table[0].tensor.rows * id_bytes + sum(one.tensor.size for one in of_table)
               for of_table in found) * (_BYTES_OF_TEXT if format == PROJECTOR else 1)
    with _published(directory, size) as (storage, stage):
        for table, of_table in zip(tables, found):
            by_file = collections.defaultdict(list)
            for one in of_table:
                by_file[one.file].append(Ordered(bundle, one.tensor.name, table.partition))
            for file, sources in by_file.items():
                with created(storage.path(f'{stage}/{file}')) as opened:
                    _WRITERS[format](opened, sources)
                storage.sync(f'{stage}/{file}')
        if format == PROJECTOR:
            _describe(storage, stage, [one for of_table in found for one in of_table])
    return found


def _describe(storage: Storage, stage: str, written: Sequence[Exported]) -> None:
    """Writes the labels of rows, which are ids, and what the embedding projector opens."""
    config = []
    for one in written:
        labels = f'{one.file}.ids'
        with created(storage.path(f'{stage}/{labels}')) as file:
            for ids in batches(one.tensor):
                file.write(''.join(f'{id}\n' for id in ids).encode())
        storage.sync(f'{stage}/{labels}')
        config.append(f'embeddings {{\n  tensor_name: {json.dumps(one.tensor.name)}\n'
                      f'  tensor_path: "{one.file}"\n  metadata_path: "{labels}"\n}}\n')
    storage.create(f'{stage}/projector_config.pbtxt', ''.join(config).encode())


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


def _write_npy(file: BinaryIO, sources: Sequence[Ordered]) -> None:
    tensor = sources[0].tensor
    np.lib.format.write_array_header_1_0(file, {
        'descr': np.dtype(tensor.code).str, 'fortran_order': False, 'shape': tensor.shape})
    _write_rows(file, sources)


def _write_tsv(file: BinaryIO, sources: Sequence[Ordered]) -> None:
    for source in sources:
        for ids in batches(source.tensor):
            np.savetxt(file, source.read(ids), '%.9g', '\t')


def _write_rows(file: BinaryIO, sources: Sequence[Ordered]) -> None:
    for source in sources:
        for ids in batches(source.tensor):
            file.write(np.ascontiguousarray(source.read_bytes(ids)).data)


def _write_safetensors(file: BinaryIO, sources: Sequence[Ordered]) -> None:
    """Writes the table and its slots. The library of that format would take all rows in memory."""
    header, end = {}, 0
    for source in sources:
        tensor = source.tensor
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
    """Writes a column `id` of int64, and for each tensor one of lists of one length.

    Types that NumPy lacks, such as bfloat16, are unsigned integers of their size.
    """
    import pyarrow
    from pyarrow import parquet
    fields = [pyarrow.field(ID, pyarrow.int64(), nullable=False)]
    for one in sources:
        number = pyarrow.from_numpy_dtype(np.dtype(one.tensor.code))
        fields.append(pyarrow.field(
            _column(one.name), pyarrow.list_(pyarrow.field(
                'element', number, nullable=False), one.tensor.shape[1]), nullable=False))
    # Trained rows hardly compress, and a dictionary of floats is as large as they are.
    with parquet.ParquetWriter(file, pyarrow.schema(fields), compression='none',
                               use_dictionary=False, write_statistics=[ID]) as writer:
        for ids in batches(max((one.tensor for one in sources), key=lambda one: one.row_bytes)):
            writer.write_table(pyarrow.Table.from_arrays([
                pyarrow.array(ids), *(pyarrow.FixedSizeListArray.from_arrays(
                    pyarrow.array(one.read_bytes(ids).view(one.tensor.code).reshape(-1)),
                    type=field.type) for field, one in zip(fields[1:], sources))],
                schema=writer.schema))


_WRITERS = {'npy': _write_npy, 'safetensors': _write_safetensors, 'parquet': _write_parquet,
            PROJECTOR: _write_tsv}
