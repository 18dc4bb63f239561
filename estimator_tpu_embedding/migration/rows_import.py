"""Makes a checkpoint of tables from elsewhere: matrices of rows, and their ids, in files.

Everything is checked before a checkpoint is written, and all problems come at once. Rows are read
a few MB at a time. Ids are kept in memory, 8 bytes each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..checkpoint import commit, file_names, model_dir
from ..checkpoint.bundle_writer import BundleWriter, Part
from ..checkpoint.manifest import Manifest, StoredFile, StoredTable
from ..checkpoint.storage import Storage
from ..core import limits
from ..core.names import name_problems
from ..errors import CheckpointError, ConfigError, EteError, Problem, shown
from ..version import VERSION
from .checkpoint_contents import FLOAT32, INT64
from .from_tf1 import STEP
from .migrate_checkpoint import checkpoints_in
from .new_names import some
from .row_files import ID, Column, bad_file, columns_of
from .rows_export import require_free

FLOAT = 'float32'
WINDOW = 2**28
"""The most bytes of a table that are in memory at once, where rows come in another order."""
_MOST_NAMED = 5
_MOST_COLUMNS = 20


class NamedFile(NamedTuple):
    """What the user named for a table: a file in the directory; its column, `''` in `.npy`."""

    table: str
    file: str
    column: str


class Incoming(NamedTuple):
    """A table whose rows have been checked."""

    name: str  # Of its variable.
    column: Column  # Float32 `[n, width]`.
    ids: np.ndarray | None  # Of rows, int64 `[n]`; `None` if they come in the order of ids.


def checked(directory: str, tables: Sequence[NamedFile], ids: Sequence[NamedFile]
            ) -> list[Incoming]:
    """Opens and checks files of a directory that another program wrote: rows and ids of tables.

    Raises:
      CheckpointError: E663 and E665 to E668, with all problems.
      ConfigError: E669 if the arguments contradict one another.
    """
    by_table, ids_by_table = [{one.table: one for one in named} for named in (tables, ids)]
    found, problems = [], []
    for name, file in by_table.items():
        try:
            found.append(_table(directory, file, ids_by_table.get(name)))
        except EteError as error:
            problems += error.problems
    if len(by_table) < len(tables) or len(ids_by_table) < len(ids) or STEP in by_table:
        problems.append(Problem('E669', '--table', 'each table must have one file of rows, and at '
                                f'most one of ids, and none is {STEP}', STEP if (
                                    STEP in by_table) else 'several',
                                'Put them together into one, under another name.'))
    if lost := ids_by_table.keys() - by_table.keys():
        problems.append(Problem('E669', '--ids', 'each table must have rows by --table too',
                                some(sorted(lost))))
    if problems:  # They are about arguments only if all are.
        raise (ConfigError if {problem.code for problem in problems} == {'E669'}
               else CheckpointError)(*problems)
    return found


def _table(directory: str, named: NamedFile, ids: NamedFile | None) -> Incoming:
    name, where = named.table, f'table "{shown(named.table, 200)}"'
    if problems := list(name_problems('table', name)):
        raise ConfigError(*problems)
    columns = columns_of(directory, named.file)
    rows = _column(columns, named)
    places = columns.get(ID) if ids is None else _column(columns_of(directory, ids.file), ids)
    if problems := list(_misshapen(where, rows, places)):
        raise CheckpointError(*problems)
    found = Incoming(name, rows, None)
    if places is not None:
        # An id that is too large for int64 becomes a negative one, which is no id either.
        come = np.concatenate([ids.astype(np.int64, copy=False) for ids in places.chunks()])
        found = found._replace(ids=come)
        problems = list(_wrong_ids(where, come))
    problems += _not_finite(where, found)
    if problems:
        raise CheckpointError(*problems)
    return found


def _column(columns: Mapping[str, Column], named: NamedFile) -> Column:
    if named.column not in columns:
        listed = ', '.join(f'"{shown(name, 100)}" {one.kind} {list(one.shape)}'
                           for name, one in list(columns.items())[:_MOST_COLUMNS])
        raise bad_file(named.file, f'it must have a column "{shown(named.column)}"' if named.column
                       else 'a column of it must be named', listed or 'no columns of numbers',
                       f'Name one: {shown(named.file, 255)}:COLUMN. A .npy file has none.')
    return columns[named.column]


def _misshapen(where: str, rows: Column, ids: Column | None) -> Iterator[Problem]:
    if len(rows.shape) != 2:
        yield Problem('E666', where, 'its rows must be a matrix [ids, width]', str(rows))
    elif not 1 <= rows.shape[0] <= limits.MAX_VOCABULARY_SIZE or (
            not 1 <= rows.shape[1] <= limits.MAX_DIMENSION):
        yield Problem('E666', where, f'it must have rows, at most {limits.MAX_VOCABULARY_SIZE:,}, '
                      f'of a width in [1, {limits.MAX_DIMENSION}]', str(rows))
    if rows.kind != FLOAT:
        yield Problem('E666', where, 'its rows must be float32', str(rows),
                      'Convert them where they come from.')
    if ids is not None and (len(ids.shape) != 1 or 'int' not in ids.kind):
        yield Problem('E666', where, 'its ids must be a vector of integers', str(ids),
                      'Number the rows from 0 on, and store the numbers as int64.')
    elif ids is not None and ids.shape[:1] != rows.shape[:1]:
        yield Problem('E666', where, 'each of its rows must have an id', f'{ids} for {rows}')


def _wrong_ids(where: str, ids: np.ndarray) -> Iterator[Problem]:
    """Yields a problem if ids are unknown, or come twice: n rows have the ids from 0 to n - 1."""
    inside = np.sort(ids[(ids >= 0) & (ids < len(ids))])
    if len(inside) < len(ids):
        yield Problem('E667', where, f'ids must be in [0, {len(ids):,}), as there are so many rows',
                      _some(ids[(ids < 0) | (ids >= len(ids))]),
                      'Number the rows from 0 on; add rows for ids that are missing.')
    again = inside[1:][inside[1:] == inside[:-1]]
    if len(again):
        yield Problem('E667', where, 'an id must come once', f'again {_some(again)}',
                      'Keep one row for each id.')


def _some(ids: np.ndarray) -> str:
    """Returns how many ids there are, and the first of them."""
    count = len(ids)
    return (f'{count:,} {"id" if count == 1 else "ids"}: '
            f'{", ".join(map(str, ids[:_MOST_NAMED]))}{", ..." if count > _MOST_NAMED else ""}')


def _not_finite(where: str, table: Incoming) -> Iterator[Problem]:
    bad, first = [np.zeros(0, np.int64)], 0
    for rows in table.column.chunks():
        bad.append(first + np.flatnonzero(~np.isfinite(rows).all(axis=1)))
        first += len(rows)
    ids = np.concatenate(bad)
    if len(ids):
        yield Problem('E668', where, 'all numbers of rows must be finite',
                      'NaN or infinity in the rows of '
                      f'{_some(ids if table.ids is None else table.ids[ids])}',
                      'A job cannot learn from such rows: correct them, or leave them out.')


def write(path: str, tables: Sequence[Incoming]) -> tuple[str, int]:
    """Writes and commits a checkpoint of tables of different names and of the global step.

    The path is a directory, for step 0, or a checkpoint such as `dir/model.ckpt-7`.

    Returns:
      Its prefix, and how many saves or imports that did not end had left something in its
      directory.

    Raises:
      CheckpointError: E661 if there are checkpoints in its directory, or no room; E622 if a job
        trains there.
      CheckpointWriteError: if it cannot be written; then it is not there.
    """
    folder, name = os.path.split(path)
    step = file_names.step_of(name) if file_names.is_of_a_job(name) else None
    folder, step = (path, 0) if step is None else (folder or '.', step)
    size = sum(4 * one.column.shape[0] * one.column.shape[1] for one in tables)
    _require_none(folder)
    with model_dir.claimed(folder) as cleaned, Storage(folder) as storage:
        _require_none(folder)
        require_free(folder, f'directory {shown(folder, 300)}', size)

        def write_files(prefix: str) -> None:
            with BundleWriter(prefix) as writer:
                for table in tables:
                    part, = writer.rows(table.name, FLOAT32, table.column.shape)
                    _write_rows(part, table)
                writer.rows(STEP, INT64, ())[0].append(np.array(step, np.int64))
                writer.finish()

        def manifest(files: dict[str, StoredFile]) -> Manifest:
            return Manifest(
                step=step, files=files, created=time.time(),
                created_by=f'estimator_tpu_embedding {VERSION}', tables={one.name: StoredTable(
                    rows=one.column.shape[0], width=one.column.shape[1], strategy='div', hosts=1,
                    slots=()) for one in tables})

        commit.publish(storage, commit.stage(storage, step, write_files), manifest)
    return os.path.join(folder, file_names.name_of(file_names.BASE, step)), cleaned


def _write_rows(part: Part, table: Incoming) -> None:
    """Writes rows in the order of ids; in another order all are read for each part in memory."""
    column, ids = table.column, table.ids
    if ids is None:
        for rows in column.chunks():
            part.append(np.ascontiguousarray(rows))
        return
    count, width = column.shape
    step = max(WINDOW // (4 * width), 1)
    for first in range(0, count, step):
        window = np.zeros((min(step, count - first), width), np.float32)
        begin = 0
        for rows in column.chunks():
            places, begin = ids[begin:begin + len(rows)] - first, begin + len(rows)
            inside = (places >= 0) & (places < len(window))
            window[places[inside]] = rows[inside]
        part.append(window)


def _require_none(path: str) -> None:
    """Makes sure that a directory has no checkpoint, which a new one could displace."""
    there = sorted(checkpoints_in(path))
    if there:
        raise CheckpointError(Problem(
            'E661', f'directory {shown(path, 300)}', 'it must be missing, or hold no checkpoint',
            ', '.join(shown(name, 255) for name in there[:5]),
            'Name a directory without checkpoints.'))
