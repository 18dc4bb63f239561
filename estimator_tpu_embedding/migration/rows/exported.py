"""Checks the files that `etpe checkpoint export` wrote, and reads the tables in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ...errors import CheckpointError, EteError, Problem, shown
from . import ids as ids_of_rows
from . import writers
from .files import Column, bad_file, columns_of
from .incoming import CHUNK, Feed, Incoming, table_text
from .listing import RowFile, RowsIndex, RowsOfTable, Shard
from .outgoing import hashed
from .parquet import ID


def from_export(directory: str, index: RowsIndex) -> list[Incoming]:
    """Checks all files of an export, and returns its tables.

    Args:
      directory: of the files.
      index: its `rows.json`.

    Raises:
      CheckpointError: with all problems. E665 if a file is missing or was changed, E666 if it
        holds other rows than `rows.json` says, E667 if ids are missing or come twice.
    """
    found: list[Incoming] = []
    problems: list[Problem] = []
    for table in index.tables:
        problems += _wrong_ranges(table)
        feeds: dict[str, list[Column]] = {tensor.name: [] for tensor in table.tensors}
        for shard in sorted(table.shards, key=lambda one: one.first_id):
            for file in shard.files:
                try:
                    columns = _checked(directory, index.kind, table, shard, file)
                    for name, column in columns.items():
                        feeds[name].append(column)
                except EteError as error:
                    problems += error.problems
        found.append(Incoming(table.name, table.rows, table.width, {
            tensor.slot: Feed(tensor.dtype, feeds[tensor.name]) for tensor in table.tensors}, None))
    if problems:
        raise CheckpointError(*problems)
    return found


class _Range(NamedTuple):
    first: int
    stop: int


def _wrong_ranges(table: RowsOfTable) -> Iterator[Problem]:
    """Yields a problem if the ids of the shards leave some out, or overlap."""
    end, missing, twice = 0, [], []
    ranges = sorted(_Range(one.first_id, one.first_id + one.rows) for one in table.shards)
    for one in [*ranges, _Range(table.rows, table.rows)]:
        if one.first > end:
            missing.append(_Range(end, one.first))
        elif min(one.stop, end) > one.first:
            twice.append(_Range(one.first, min(one.stop, end)))
        end = max(end, one.stop)
    beyond = [_Range(table.rows, end)] if end > table.rows else []
    for what, wrong in (('missing', missing), ('twice', twice), ('too large', beyond)):
        if wrong:
            count = sum(one.stop - one.first for one in wrong)
            yield Problem('E667', table_text(table.name), f'each id in [0, {table.rows:,}) must '
                          'come once', f'{count:,} {what}: {wrong[0].first:,} to '
                          f'{wrong[0].stop - 1:,}{", ..." if len(wrong) > 1 else ""}',
                          'Export again.')


def _checked(directory: str, kind: str, table: RowsOfTable, shard: Shard, file: RowFile
             ) -> Mapping[str, Column]:
    """Returns the columns of a file by the names of their tensors, after verifying it."""
    where = shown(file.name, 255)
    try:
        size, digest = hashed(os.path.join(directory, file.name))
    except OSError as error:
        raise bad_file(where, 'it must be a regular file that can be read',
                       shown(error.strerror or error), 'Export again.') from error
    if (size, digest) != (file.size, file.sha256):
        raise bad_file(where, f'it must be as it was written: {file.size:,} bytes, SHA-256 '
                       f'{file.sha256[:12]}...', f'{size:,} bytes, {digest[:12]}...',
                       'Export again, or restore the file from a copy.')
    columns = columns_of(directory, file.name)
    found = {}
    for tensor in table.tensors:
        if tensor.name in file.tensors:
            column = columns.get(writers.column_of(kind, tensor.name))
            want = writers.stored_kind(kind, tensor.dtype), (shard.rows, table.width)
            if column is None or (column.kind, column.shape) != want:
                got = 'no column for it' if column is None else (
                    f'{column.kind} {list(column.shape)}')
                raise CheckpointError(Problem(
                    'E666', f'tensor "{shown(tensor.name, 200)}"',
                    f'file {where} must hold {want[0]} {list(want[1])}', got, 'Export again.'))
            found[tensor.name] = column
    if kind == 'parquet':
        _check_ids(where, columns.get(ID), shard)
    return found


def _check_ids(where: str, column: Column | None, shard: Shard) -> None:
    """Makes sure that a column has the ids that `rows.json` says."""
    first = shard.first_id
    is_so = column is not None and column.shape == (shard.rows,)
    for ids in ids_of_rows.chunks_of(column, CHUNK) if column is not None and is_so else ():
        is_so = is_so and bool((ids == np.arange(first, first + len(ids))).all())
        first += len(ids)
    if not is_so:
        raise bad_file(where, f'its column {ID} must count from {shard.first_id:,}',
                       'other numbers', 'Export again.')
