"""Reads rows of tables from files: those of an export, or matrices from elsewhere.

Everything is checked before a checkpoint is written, and all problems come at once. Rows are read
a few MB at a time. Ids are kept in memory, 8 bytes each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...core import limits
from ...core.names import name_problems
from ...errors import CheckpointError, ConfigError, EteError, Problem, quoted, shown
from .files import CODES, ID, Column, columns_of, one_column

FLOAT = 'float32'
_CONVERTIBLE = ('float64', 'float16', 'bfloat16')
_MOST_NAMED = 5


class NamedFile(NamedTuple):
    """A column that the user named: the table, the file in the directory, and the column.

    `column` is `''` if the file holds only one that fits.
    """

    table: str
    file: str
    column: str


class Feed(NamedTuple):
    """The rows of a table or of a slot, in the order in which they come.

    Attributes:
      kind: of the numbers to be written.
      columns: of rows `[n, width]`, one after another; of this kind, or to be converted to it.
    """

    kind: str
    columns: Sequence[Column]

    def chunks(self) -> Iterator[np.ndarray]:
        """Yields all rows, converted, a few MB at a time: `[n, width]`."""
        for column in self.columns:
            for rows in column.chunks():
                yield (_as_floats(rows, column.kind)
                       if self.kind == FLOAT and column.kind in _CONVERTIBLE else rows)


def _as_floats(rows: np.ndarray, kind: str) -> np.ndarray:
    """Returns numbers as float32; those that are too large become infinite."""
    if kind == 'bfloat16':
        return (rows.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over='ignore'):
        return rows.astype(np.float32)


class Incoming(NamedTuple):
    """A table whose rows have been checked.

    Attributes:
      name: of its variable.
      rows: of the table, = its vocabulary.
      width: of the table.
      feeds: of the table, whose slot is `''`, and of its slots.
      ids: of the rows that come, int64 `[n]`; `None` if all come, in the order of ids.
    """

    name: str
    rows: int
    width: int
    feeds: Mapping[str, Feed]
    ids: np.ndarray | None

    @property
    def came(self) -> int:
        """The number of its rows that came."""
        return self.rows if self.ids is None else len(self.ids)


def table_text(name: str) -> str:
    """Returns how messages call a table."""
    return f'table "{shown(name, 200)}"'


def from_elsewhere(directory: str, tables: Sequence[NamedFile], ids: Sequence[NamedFile],
                   convert: bool, rows_of: Mapping[str, int] | None) -> list[Incoming]:
    """Opens and checks files that another program wrote.

    Args:
      directory: of the files.
      tables: their rows; several files of one table follow one another.
      ids: of these rows, for each file of a table in the same order.
      convert: whether numbers of other types become float32.
      rows_of: by table, the rows of the checkpoint to which ids belong; `None` if there is none.

    Raises:
      CheckpointError: E663 and E665 to E668, with all problems.
      ConfigError: E669 if the arguments contradict one another, or a file may hold ids that none
        of them names.
    """
    found, problems = [], []
    by_table, ids_by_table = _by_table(tables), _by_table(ids)
    for name, files in by_table.items():
        try:
            found.append(_table(
                directory, name, files, ids_by_table.get(name, []), convert, rows_of))
        except EteError as error:
            problems += error.problems
    if strays := ids_by_table.keys() - by_table.keys():
        problems.append(Problem('E669', '--ids', 'each table must have rows by --table too',
                                quoted(shown(name, 200) for name in sorted(strays))))
    if problems:  # They are about arguments only if all are.
        raise (ConfigError if {problem.code for problem in problems} == {'E669'}
               else CheckpointError)(*problems)
    return found


def _by_table(named: Sequence[NamedFile]) -> dict[str, list[NamedFile]]:
    found: dict[str, list[NamedFile]] = {}
    for one in named:
        found.setdefault(one.table, []).append(one)
    return found


def _table(directory: str, name: str, files: Sequence[NamedFile], ids: Sequence[NamedFile],
           convert: bool, rows_of: Mapping[str, int] | None) -> Incoming:
    """Opens and checks the files of one table."""
    where = table_text(name)
    if problems := list(name_problems('table', name)):
        raise ConfigError(*problems)
    if ids and len(ids) != len(files):
        raise ConfigError(Problem('E669', where, 'each file of rows must have one of ids',
                                  f'{len(files)} of rows and {len(ids)} of ids'))
    opened = [columns_of(directory, one.file) for one in files]
    rows = [one_column(columns, one.column, one.file, _is_matrix,
                       'it must hold one matrix of floats') for columns, one in zip(opened, files)]
    places = [one_column(columns_of(directory, one.file), one.column, one.file, _is_vector,
                         'it must hold one vector of ids') for one in ids] or [
        columns[ID] for columns in opened if ID in columns and columns[ID] not in rows]
    if places and len(places) != len(rows):
        raise ConfigError(Problem('E669', where, 'all of its files must have ids, or none',
                                  f'{len(places)} of {len(rows)} files with ids'))
    if not places and (problems := list(_in_doubt(where, files, rows, opened))):
        raise ConfigError(*problems)
    if problems := list(_misshapen(where, rows, places, convert)):
        raise CheckpointError(*problems)
    found = Incoming(name, sum(column.shape[0] for column in rows), rows[0].shape[1],
                     {'': Feed(FLOAT if convert else rows[0].kind, rows)}, None)
    if places:
        come = np.concatenate([*integers(places)])
        count = (int(come.max()) + 1 if rows_of is None or name not in rows_of
                 else rows_of[name])
        found = found._replace(rows=max(count, 1), ids=come)
        problems = list(_wrong_ids(where, come, count, may_lack=rows_of is not None))
    problems += _not_finite(where, found)
    if problems:
        raise CheckpointError(*problems)
    return found


def _in_doubt(where: str, files: Sequence[NamedFile], rows: Sequence[Column],
              opened: Sequence[Mapping[str, Column]]) -> Iterator[Problem]:
    """Yields a problem for each file that may hold ids which nobody named.

    Such rows would silently become those of other ids. Somebody who names the column of the rows
    has seen the others.
    """
    for one, column, columns in zip(files, rows, opened):
        maybe = [other for other in columns.values()
                 if _is_vector(other) and other.shape == column.shape[:1]]
        if maybe and not one.column:
            file = shown(one.file, 255)
            yield Problem(
                'E669', where, f'somebody must say whether file {file} has the ids of its rows',
                quoted(shown(other.name, 100) for other in maybe[:5]),
                f'If so, add --ids NAME={file}:{shown(maybe[0].name, 100)}. If its rows are in '
                f'the order of ids, name them: --table NAME={file}:{shown(column.name, 100)}.')


def _is_matrix(column: Column) -> bool:
    return len(column.shape) == 2 and column.kind in CODES and 'float' in column.kind


def _is_vector(column: Column) -> bool:
    return len(column.shape) == 1 and column.kind in CODES and 'int' in column.kind


def _misshapen(where: str, rows: Sequence[Column], places: Sequence[Column], convert: bool
               ) -> Iterator[Problem]:
    """Yields what is wrong with the types and shapes of rows and ids."""
    for column in rows:
        shape = str(column)
        if len(column.shape) != 2:
            yield Problem('E666', where, 'its rows must be a matrix [ids, width]', shape)
        elif not column.shape[0] or not 1 <= column.shape[1] <= limits.MAX_DIMENSION:
            yield Problem('E666', where, 'it must have rows, of a width in '
                          f'[1, {limits.MAX_DIMENSION}]', shape)
        elif column.shape[1:] != rows[0].shape[1:]:
            yield Problem('E666', where, 'all of its rows must have one width',
                          f'{shape}, and {rows[0]}')
        if column.kind != FLOAT and not (convert and column.kind in _CONVERTIBLE):
            yield Problem('E666', where, 'its rows must be float32', shape,
                          '--to-float32 rounds them.' if column.kind in _CONVERTIBLE else
                          'Convert them to float32 where they come from.')
    for ids, column in zip(places, rows):
        if not _is_vector(ids):
            yield Problem('E666', where, 'its ids must be a vector of integers', str(ids),
                          'Number the rows from 0 on, and store the numbers as int64.')
        elif ids.shape[:1] != column.shape[:1]:
            yield Problem('E666', where, 'each of its rows must have an id',
                          f'{ids} for {column}')
    if sum(column.shape[0] for column in rows if column.shape) > limits.MAX_VOCABULARY_SIZE:
        yield Problem('E666', where, f'it must have at most {limits.MAX_VOCABULARY_SIZE:,} rows',
                      'more')


def integers(columns: Sequence[Column]) -> Iterator[np.ndarray]:
    """Yields the ids in columns as int64 `[n]`.

    An id that is too large for int64 becomes the largest number, which is no id either.
    """
    for ids in itertools.chain.from_iterable(column.chunks() for column in columns):
        if ids.dtype == np.uint64:
            ids = np.minimum(ids, np.uint64(2**63 - 1))
        yield ids.astype(np.int64, copy=False)


def _wrong_ids(where: str, ids: np.ndarray, rows: int, may_lack: bool) -> Iterator[Problem]:
    """Yields a problem if ids are unknown, come twice, or are missing; the last may be allowed."""
    if rows > limits.MAX_VOCABULARY_SIZE:
        yield Problem('E667', where, f'ids must be < {limits.MAX_VOCABULARY_SIZE:,}',
                      f'{rows - 1:,}', 'Number the rows from 0 on.')
        return
    ids = np.sort(ids)
    inside = ids[(ids >= 0) & (ids < rows)]
    known = np.unique(inside)
    if len(inside) < len(ids):
        yield Problem('E667', where, f'ids must be in [0, {rows:,})',
                      _some(ids[(ids < 0) | (ids >= rows)]),
                      'Leave these rows out, or begin from a larger table.')
    if len(known) < len(inside):
        yield Problem('E667', where, 'an id must come once',
                      f'again {_some(inside[1:][inside[1:] == inside[:-1]])}',
                      'Keep one row for each id.')
    if len(known) < rows and not may_lack:
        first = np.setdiff1d(np.arange(min(rows, len(known) + _MOST_NAMED)), known)
        yield Problem('E667', where, f'all ids in [0, {rows:,}) must come',
                      f'without {_some(first, rows - len(known))}', 'Add their rows; or use --base '
                      'CKPT, whose rows the missing ones keep.')


def _some(ids: np.ndarray, count: int | None = None) -> str:
    """Returns how many ids there are, and the first of them."""
    count = len(ids) if count is None else count
    return (f'{count:,} {"id" if count == 1 else "ids"}: '
            f'{", ".join(map(str, ids[:_MOST_NAMED]))}{", ..." if count > _MOST_NAMED else ""}')


def _not_finite(where: str, table: Incoming) -> Iterator[Problem]:
    """Yields a problem if rows have numbers that are not finite."""
    bad, first = [np.zeros(0, np.int64)], 0
    for rows in table.feeds[''].chunks():
        bad.append(first + np.flatnonzero(~np.isfinite(rows).all(axis=1)))
        first += len(rows)
    ids = np.concatenate(bad)
    if len(ids):
        yield Problem('E668', where, 'all numbers of rows must be finite',
                      'NaN, infinity or more than float32 holds in the rows of '
                      f'{_some(ids if table.ids is None else table.ids[ids])}',
                      'A job cannot learn from such rows: correct them, or leave them out.')
