"""Reads rows of tables from files: those of an export, or matrices from elsewhere.

Everything is checked before a checkpoint is written, and all problems come at once. Rows are read
a few MB at a time. Of ids, one bit each is remembered.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...core import limits
from ...core.names import name_problems
from ...errors import CheckpointError, ConfigError, EteError, Problem, quoted, shown
from . import ids as ids_of_rows
from .files import CODES, Column, columns_of, one_column
from .ids import CHUNK, Ids
from .parquet import ID

FLOAT = 'float32'
_CONVERTIBLE = ('float64', 'float16', 'bfloat16')
_STEP_BYTES = 2**22


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

    def read(self, column: Column, step: int) -> Iterator[np.ndarray]:
        """Yields the rows of one of the columns, converted: `[n, width]`."""
        for rows in column.read(step):
            yield (_as_floats(rows, column.kind)
                   if self.kind == FLOAT and column.kind in _CONVERTIBLE else rows)

    def chunks(self, step: int) -> Iterator[np.ndarray]:
        """Yields all rows."""
        return itertools.chain.from_iterable(self.read(column, step) for column in self.columns)


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
      ids: of the rows; `None` if all rows come, in the order of ids.
    """

    name: str
    rows: int
    width: int
    feeds: Mapping[str, Feed]
    ids: Ids | None

    @property
    def where(self) -> str:
        """The table, as messages call it."""
        return table_text(self.name)

    @property
    def came(self) -> int:
        """The number of its rows that came."""
        return sum(column.shape[0] for column in self.feeds[''].columns)


def table_text(name: str) -> str:
    """Returns how messages call a table."""
    return f'table "{shown(name, 200)}"'


def step_of(row_bytes: int) -> int:
    """Returns how many rows are read at once."""
    return max(_STEP_BYTES // max(row_bytes, 1), 1)


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
    if problems:
        raise _all(problems)
    return found


def _by_table(named: Sequence[NamedFile]) -> dict[str, list[NamedFile]]:
    found: dict[str, list[NamedFile]] = {}
    for one in named:
        found.setdefault(one.table, []).append(one)
    return found


def _all(problems: Sequence[Problem]) -> EteError:
    """Returns one error for all problems: about arguments only if all are."""
    if all(problem.code == 'E669' for problem in problems):
        return ConfigError(*problems)
    return CheckpointError(*problems)


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
    rows = [one_column(columns, one.column, shown(one.file, 255), _is_matrix,
                       'it must hold one matrix of floats') for columns, one in zip(opened, files)]
    places = [one_column(columns_of(directory, one.file), one.column, shown(one.file, 255),
                         _is_vector, 'it must hold one vector of ids') for one in ids] or [
        columns[ID] for columns in opened if ID in columns and columns[ID] not in rows]
    if places and len(places) != len(rows):
        raise ConfigError(Problem('E669', where, 'all of its files must have ids, or none',
                                  f'{len(places)} of {len(rows)} files with ids'))
    if not places and (problems := list(_in_doubt(where, files, rows, opened))):
        raise ConfigError(*problems)
    if problems := list(_misshapen(where, rows, places, convert)):
        raise CheckpointError(*problems)
    feed = Feed(FLOAT if convert else rows[0].kind, rows)
    count = sum(column.shape[0] for column in rows)
    if places:
        checked = _checked_ids(where, places, (rows_of or {}).get(name))
        count = checked.rows
    problems = list(checked.problems(where, may_lack=rows_of is not None)) if places else []
    problems += ids_of_rows.not_finite(where, _with_ids(feed, places))
    if problems:
        raise CheckpointError(*problems)
    return Incoming(name, count, rows[0].shape[1], {'': feed}, checked if places else None)


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
        shape = f'{column.kind} {list(column.shape)} in file {column.where}'
        if len(column.shape) != 2:
            yield Problem('E666', where, 'its rows must be a matrix [ids, width]', shape)
        elif not column.shape[0] or not 1 <= column.shape[1] <= limits.MAX_DIMENSION:
            yield Problem('E666', where, 'it must have rows, of a width in '
                          f'[1, {limits.MAX_DIMENSION}]', shape)
        elif column.shape[1:] != rows[0].shape[1:]:
            yield Problem('E666', where, 'all of its rows must have one width',
                          f'{shape}, and width {rows[0].shape[1:]} in {rows[0].where}')
        if column.kind != FLOAT and not (convert and column.kind in _CONVERTIBLE):
            yield Problem('E666', where, 'its rows must be float32', shape,
                          '--to-float32 rounds them.' if column.kind in _CONVERTIBLE else
                          'Convert them to float32 where they come from.')
    for ids, column in zip(places, rows):
        shape = f'{ids.kind} {list(ids.shape)} in file {ids.where}'
        if not _is_vector(ids):
            yield Problem('E666', where, 'its ids must be a vector of integers', shape,
                          'Number the rows from 0 on, and store the numbers as int64.')
        elif ids.shape[:1] != column.shape[:1]:
            yield Problem('E666', where, 'each of its rows must have an id',
                          f'{shape} for {list(column.shape)} in file {column.where}')
    if sum(column.shape[0] for column in rows if column.shape) > limits.MAX_VOCABULARY_SIZE:
        yield Problem('E666', where, f'it must have at most {limits.MAX_VOCABULARY_SIZE:,} rows',
                      'more')


def _checked_ids(where: str, places: Sequence[Column], rows: int | None) -> Ids:
    """Returns ids whose table is large enough; the highest id tells, if `rows` does not."""
    if rows is not None:
        return Ids(places, rows)
    top, count = ids_of_rows.highest(places)
    if top >= limits.MAX_VOCABULARY_SIZE:
        raise CheckpointError(ids_of_rows.beyond_the_limit(where, top))
    return Ids(places, max(top + 1, 1))


def _with_ids(feed: Feed, places: Sequence[Column]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields ids and the rows of them as floats; without ids, numbers from 0 on."""
    first = 0
    for number, column in enumerate(feed.columns):
        step = min(step_of(column.row_bytes), CHUNK)
        ids = ids_of_rows.chunks_of(places[number], step) if places else itertools.repeat(None)
        for some, rows in zip(ids, feed.read(column, step)):
            yield (np.arange(first, first + len(rows)) if some is None else some), rows
            first += len(rows)


def rows_with_ids(feed: Feed, ids: Ids | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields ids `[n]` and the rows of them `[n, width]`, a few MB at a time."""
    return _with_ids(feed, ids.columns if ids is not None else ())
