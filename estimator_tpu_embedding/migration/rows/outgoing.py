"""Writes the rows of tables of a checkpoint into files, in the order of ids, a few MB at a time.

The files are staged in a folder of the directory. They are renamed when all are durable, and
`rows.json` comes last. So a directory without `rows.json` holds no whole export.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...checkpoint.bundle import Bundle
from ...checkpoint.files import Storage, created, free_bytes
from ...checkpoint.rows import Ordered
from ...core.partition import Partition
from ...errors import CheckpointError, ConfigError, Problem, shown
from ...proto import files
from . import listing, writers
from .listing import RowFile, RowsIndex, RowsOfTable, Shard, TensorOfRows
from .writers import Described

STAGE = '.rows-stage'
SHARD_BYTES = 256 * 10**6
_CHUNK = 2**22
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


class Export:
    """An export that can be carried out."""

    def __init__(self, bundle: Bundle, tables: Sequence[Chosen], format: str, shard_bytes: int):
        """Plans it.

        Args:
          bundle: the checkpoint.
          tables: to export.
          format: of the files, one of `writers.FORMATS`.
          shard_bytes: most bytes of numbers and ids in each file, >= 1, but at least a row.

        Raises:
          CheckpointError: E663 if a package is missing.
          ConfigError: E669 if there would be too many files.
        """
        writers.require(format)
        self._bundle, self._format = bundle, format
        self._tables = [_Table(bundle, number, table, format, shard_bytes)
                        for number, table in enumerate(tables)]
        count = sum(len(table.groups) * table.shards for table in self._tables)
        if count > listing.MAX_FILES:
            raise ConfigError(Problem(
                'E669', '--shard-size', f'it must give at most {listing.MAX_FILES:,} files',
                f'{count:,}', 'Make it larger.'))

    @property
    def bytes(self) -> int:
        """Bytes of all numbers that are written."""
        return sum(table.rows * (writers.id_bytes(self._format) + sum(
            tensor.row_bytes for tensor in table.tensors)) for table in self._tables)

    def carry_out(self, directory: str, checkpoint: listing.CheckpointOfRows) -> RowsIndex:
        """Writes the files.

        Args:
          directory: which is made, or must be empty.
          checkpoint: for `rows.json`.

        Returns:
          The content of `rows.json`.

        Raises:
          CheckpointError: E661 if the directory is not empty, or cannot be written.
          CorruptCheckpointError: if the checkpoint cannot be read.
          Then it leaves no file in the directory.
        """
        with _staged(directory, self.bytes) as storage:
            index = RowsIndex(kind=self._format, checkpoint=checkpoint, tables=tuple(
                table.write(storage) for table in self._tables))
            storage.create(f'{STAGE}/{listing.NAME}', index.to_json())
            _publish(storage, index)
        return index


class _Table:
    """A table whose rows are being written."""

    def __init__(self, bundle: Bundle, number: int, chosen: Chosen, format: str, shard_bytes: int):
        tensor = bundle.tensors[chosen.name]
        self.rows, self._width = tensor.rows, tensor.shape[1]
        self.tensors = [Described(name, bundle.tensors[name].kind, self._width)
                        for _, name in chosen.tensors]
        self.groups = writers.files_of(format, self.tensors)
        widest = writers.id_bytes(format) + max(
            sum(tensor.row_bytes for tensor in group) for group in self.groups)
        self._per_shard = max(shard_bytes // max(widest, 1), 1)
        self.shards = -(-self.rows // self._per_shard)
        self._step = max(_CHUNK // max(widest, 1), 1)
        self._format, self._chosen = format, chosen
        self._begin = f'{number}-{_plain(chosen.name)}'
        self._slot_of = {name: slot for slot, name in chosen.tensors}
        self._sources = {name: Ordered(bundle, name, chosen.partition)
                         for name in self._slot_of}

    def write(self, storage: Storage) -> RowsOfTable:
        """Writes all shards into the stage."""
        return RowsOfTable(
            name=self._chosen.name, rows=self.rows, width=self._width,
            tensors=tuple(TensorOfRows(name=tensor.name, slot=self._slot_of[tensor.name],
                                       dtype=tensor.kind) for tensor in self.tensors),
            shards=tuple(self._shard(storage, number) for number in range(self.shards)))

    def _shard(self, storage: Storage, number: int) -> Shard:
        first = number * self._per_shard
        count = min(self._per_shard, self.rows - first)
        return Shard(first_id=first, rows=count, files=tuple(
            self._file(storage, group, number, first, count) for group in self.groups))

    def _file(self, storage: Storage, group: Sequence[Described], number: int, first: int,
              count: int) -> RowFile:
        which = f'.{_plain(self._slot_of[group[0].name] or "rows")}' if (
            self._format == 'npy') else ''
        name = f'{self._begin}{which}-{number:05d}-of-{self.shards:05d}.{self._format}'
        path = storage.path(f'{STAGE}/{name}')
        with created(path) as file:
            writer = writers.writer(self._format, file, group, first, count)
            for begin in range(first, first + count, self._step):
                ids = np.arange(begin, min(begin + self._step, first + count), dtype=np.int64)
                writer.append([_rows(self._sources[tensor.name], ids) for tensor in group])
            writer.finish()
        storage.sync(f'{STAGE}/{name}')
        size, digest = hashed(path)
        return RowFile(name=name, size=size, sha256=digest,
                       tensors=tuple(tensor.name for tensor in group))


def hashed(path: str) -> tuple[int, str]:
    """Returns the size and the SHA-256 of a regular file.

    Raises:
      OSError: if it cannot be read.
    """
    digest, size = hashlib.sha256(), 0
    with contextlib.closing(files.open_regular(path, follow=False)) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def _rows(source: Ordered, ids: np.ndarray) -> np.ndarray:
    """Returns rows bit for bit; `Ordered.read` would give bfloat16 as float32."""
    return source.read_bytes(ids).view(source.bundle.tensors[source.name].code)


def _plain(name: str) -> str:
    """Returns a part of a file's name that is like the name of a table or slot."""
    return re.sub(r'[^A-Za-z0-9_.]+', '-', name).strip('-.')[-80:] or '-'


@contextlib.contextmanager
def _staged(directory: str, size: int) -> Iterator[Storage]:
    """Makes a directory and a stage in it; removes what it made if the body fails."""
    where = f'directory {shown(directory, 300)}'
    if '://' in directory:
        raise CheckpointError(Problem('E661', where, 'it must be a directory of this machine', '',
                                      'Write into a local directory, and copy it.'))
    try:
        was_there = os.path.isdir(directory)
        os.makedirs(directory, exist_ok=True)
        with Storage(directory) as storage:
            _require_empty(storage, where)
            try:
                with _stage(storage):
                    _require_room(directory, where, size)
                    yield storage
            except BaseException:
                if not was_there:
                    with contextlib.suppress(OSError):
                        os.rmdir(directory)  # Only if it is empty.
                raise
    except OSError as error:
        raise CheckpointError(Problem(
            'E661', where, 'it must be a directory in which rows can be written',
            f'{shown(error, 300)}; {size:,} bytes are needed', 'Name another one, or make room.'
            )) from error


@contextlib.contextmanager
def _stage(storage: Storage) -> Iterator[None]:
    """Makes the stage, and removes it if the body fails; another export may have made it first."""
    storage.make_folder(STAGE)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            storage.remove_folder(STAGE)
        raise


def _require_empty(storage: Storage, where: str) -> None:
    names = storage.names()
    if not names:
        return
    got, remedy = f'{len(names):,} files: {", ".join(map(shown, names[:_MOST_NAMED]))}', (
        'Name another one.')
    if listing.NAME in names:
        got = 'rows of an earlier export'
    elif STAGE in names:
        got = f'{STAGE}: an export that did not end, or still writes'
        remedy = 'If none runs there, remove the directory; or name another one.'
    raise CheckpointError(Problem('E661', where, 'it must be empty or missing', got, remedy))


def _require_room(directory: str, where: str, size: int) -> None:
    free = free_bytes(directory)
    if free < size:
        raise CheckpointError(Problem(
            'E661', where, f'the disk must have room for {size:,} bytes of rows',
            f'{free:,} bytes free', 'Make room, or name a directory on another disk.'))


def _publish(storage: Storage, index: RowsIndex) -> None:
    """Moves the files out of the stage, `rows.json` last, each durable; none if that fails."""
    storage.sync(f'{STAGE}/{listing.NAME}')
    storage.sync(STAGE)
    moved: list[str] = []
    try:
        for name in (*index.file_names, listing.NAME):
            if name == listing.NAME:
                storage.sync()
            storage.rename(f'{STAGE}/{name}', name)
            moved.append(name)
    except BaseException:
        with contextlib.suppress(OSError):
            for name in moved:
                storage.remove(name)
        raise
    storage.remove_folder(STAGE)
    storage.sync()
