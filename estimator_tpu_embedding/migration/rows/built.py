"""Writes a new checkpoint whose tables come from files of rows.

Without a base it holds these tables and the global step. With a base it holds everything that the
base holds, in the same order, with other rows for the ids that came.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...checkpoint import commit, file_names, model_dir
from ...checkpoint.bundle import Bundle
from ...checkpoint.bundle_writer import BundleWriter, Part
from ...checkpoint.manifest import Manifest, StoredFile, StoredTable
from ...checkpoint.storage import Storage, free_bytes
from ...checkpoint.tensors import KINDS, NO_ROW, Tensor
from ...core.partition import Partition
from ...errors import CheckpointError, ConfigError, Problem, shown
from ...version import VERSION
from .files import CODES
from .incoming import Incoming

STEP = 'global_step'
WINDOW = 2**28
"""The most bytes of a table that are in memory at once, where rows come in another order."""
_TYPES = {name: number for number, (name, _) in KINDS.items()}
_INT64 = _TYPES['int64']


class Base(NamedTuple):
    """The checkpoint to begin from."""

    bundle: Bundle
    manifest: Manifest


class NewCheckpoint:
    """A checkpoint that can be written.

    Attributes:
      prefix: its path without a suffix.
    """

    def __init__(self, path: str, step: int, tables: Sequence[Incoming], base: Base | None):
        """Plans it.

        Args:
          path: a directory, or a checkpoint such as `dir/model.ckpt-7`.
          step: of the checkpoint, if the path is a directory.
          tables: whose rows came; with a base, tables of it.
          base: whose tensors it also holds, or `None`.

        Raises:
          ConfigError: E669 with all contradictions.
        """
        folder, name = os.path.split(path)
        said = file_names.step_of(name) if file_names.is_of_a_job(name) else None
        self._directory, self._step = (path, step) if said is None else (folder or '.', said)
        self.prefix = os.path.join(
            self._directory, file_names.name_of(file_names.BASE, self._step))
        self._tables, self._base = tables, base
        self._by_tensor = {_tensor(table, slot): (table, slot)
                           for table in tables for slot in table.feeds}
        if problems := list(self._problems()):
            raise ConfigError(*problems)

    @property
    def bytes(self) -> int:
        """Bytes of all its tensors."""
        new = [table.rows * _row_bytes(table, slot) for table, slot in self._by_tensor.values()]
        kept = [] if self._base is None else [
            tensor.size for name, tensor in self._base.bundle.tensors.items()
            if name not in self._by_tensor]
        return sum(new) + sum(kept)

    def commit(self) -> int:
        """Writes and commits it.

        Returns:
          How many saves or imports that did not end had left something in its directory.

        Raises:
          CheckpointError: E661 if there are checkpoints in its directory, or no room; E622 if a
            job trains there.
          CheckpointWriteError: if it cannot be written; then it is not there.
          NonFiniteCheckpointError: if a number of it is not finite.
        """
        where = self._directory
        _require_free(where)
        with model_dir.claimed(where) as cleaned, Storage(where) as storage:
            _require_free(where)
            free = free_bytes(where)
            if free < self.bytes:
                raise CheckpointError(Problem(
                    'E661', f'directory {shown(where, 300)}',
                    f'the disk must have room for {self.bytes:,} bytes', f'{free:,} bytes free',
                    'Make room, or name a directory on another disk.'))
            commit.commit(storage, self._step, self._write, self._manifest)
        return cleaned

    def _problems(self) -> Iterator[Problem]:
        count = sum(len(table.feeds) for table in self._tables)
        if len(self._by_tensor) < count or self._base is None and STEP in self._by_tensor:
            yield Problem('E669', 'tables', 'their variables and slots must have different names, '
                          f'and none may be {STEP}', f'a table {STEP}' if (
                              STEP in self._by_tensor) else 'a name that comes twice',
                          'Use --rename for tables of an export; else give --table another name.')
        if self._base is None:
            return
        manifest, tensors = self._base.manifest, self._base.bundle.tensors
        if self._step != manifest.step:
            yield Problem('E669', 'CKPT', f'its step must be {manifest.step}, as that of --base',
                          f'{self._step}', 'Name the directory alone.')
        for name, tensor in tensors.items():
            if len(tensor.pieces) > 1 and any(one.first_row == NO_ROW for one in tensor.pieces):
                yield Problem('E669', f'tensor "{shown(name)}" of --base', 'it must be stored in '
                              'whole rows to be copied', 'slices of columns')
        for table in self._tables:
            for slot, feed in table.feeds.items():
                old = tensors.get(_tensor(table, slot))
                got = f'{feed.kind} {[table.rows, table.width]}'
                if old is None or got != f'{old.kind} {list(old.shape)}':
                    yield Problem(
                        'E669', f'tensor "{shown(_tensor(table, slot), 200)}"', 'it must have the '
                        'type and shape as in --base: ' + (
                            'no such tensor' if old is None else f'{old.kind} {list(old.shape)}'),
                        got, 'Import the table without --base; or make it fit.')

    def _partition(self, table: Incoming) -> Partition:
        """Returns the order of the rows of a table in the new checkpoint."""
        return (Partition.by_id(table.rows) if self._base is None
                else self._base.manifest.tables[table.name].partition)

    def _in_order(self, table: Incoming) -> bool:
        return table.ids is None and self._partition(table).stores_by_id

    def _write(self, prefix: str) -> None:
        """Writes the files of the checkpoint; they hold what is kept, then the tables."""
        with BundleWriter(prefix) as writer:
            if self._base is not None:
                for name, tensor in self._base.bundle.tensors.items():
                    if name not in self._by_tensor:
                        _copy(self._base, tensor, writer)
            for name, (table, slot) in self._by_tensor.items():
                feed = table.feeds[slot]
                part, = writer.rows(name, _TYPES[feed.kind], (table.rows, table.width))
                if self._in_order(table):
                    for rows in feed.column.chunks():
                        part.append(np.ascontiguousarray(rows))
                else:
                    self._put_in_order(part, table, slot)
            if self._base is None:
                writer.rows(STEP, _INT64, ())[0].append(np.array(self._step, np.int64))
            writer.finish()

    def _put_in_order(self, part: Part, table: Incoming, slot: str) -> None:
        """Writes rows that come in another order, and those of the base in the other places.

        All rows are read for each part of the table that is in memory at once.
        """
        partition, feed = self._partition(table), table.feeds[slot]
        step = max(WINDOW // _row_bytes(table, slot), 1)
        for first in range(0, table.rows, step):
            window = np.zeros((min(step, table.rows - first), table.width), CODES[feed.kind])
            if self._base is not None:
                window.view(np.uint8)[:] = self._base.bundle.read_bytes(
                    _tensor(table, slot), first, first + len(window))
            begin = 0
            for rows in feed.column.chunks():
                ids = (np.arange(begin, begin + len(rows)) if table.ids is None
                       else table.ids[begin:begin + len(rows)])
                places, begin = partition.stored_row(ids) - first, begin + len(rows)
                inside = (places >= 0) & (places < len(window))
                window[places[inside]] = rows[inside]
            part.append(window)

    def _manifest(self, files: dict[str, StoredFile]) -> Manifest:
        begun = self._base.manifest if self._base is not None else Manifest(
            step=self._step, created_by='', tables={table.name: StoredTable(
                rows=table.rows, width=table.width, strategy=self._partition(table).strategy,
                hosts=1, slots=tuple(slot for slot in table.feeds if slot))
                for table in self._tables})
        return dataclasses.replace(begun, files=files, created=time.time(),
                                   created_by=f'estimator_tpu_embedding {VERSION}')


def _require_free(path: str) -> None:
    """Makes sure that a directory has no checkpoint, which a new one could displace."""
    names = os.listdir(path) if os.path.isdir(path) else []
    there = [name for name in file_names.by_checkpoint(names)
             if file_names.partial_of(name) not in names]
    if there:
        raise CheckpointError(Problem(
            'E661', f'directory {shown(path, 300)}', 'it must be missing, or hold no checkpoint',
            ', '.join(shown(name, 255) for name in there[:5]),
            'Name a directory without checkpoints.'))


def _tensor(table: Incoming, slot: str) -> str:
    return f'{table.name}/{slot}' if slot else table.name


def _row_bytes(table: Incoming, slot: str) -> int:
    return table.width * int(CODES[table.feeds[slot].kind][1:])


def _copy(base: Base, tensor: Tensor, writer: BundleWriter) -> None:
    """Writes a tensor of the base as it is."""
    if len(tensor.pieces) == 1:
        piece = tensor.pieces[0]
        part = writer.copied(tensor.name, tensor.dtype, tensor.shape, piece.size, piece.crc)
    else:
        part, = writer.rows(tensor.name, tensor.dtype, tensor.shape)
    for piece in tensor.pieces:
        for content in base.bundle.content(piece):
            part.append(content)
