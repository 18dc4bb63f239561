"""Reads rows of tables from files: those of an export, or matrices from elsewhere.

Everything is checked before a checkpoint is written, and all problems come at once. Rows are read
a few MB at a time. Ids are kept in memory, 8 bytes each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import limits
from ...core.names import name_problems
from ...core.specs import is_count
from ...errors import CheckpointError, ConfigError, EteError, Problem, quoted, shown
from ...proto import files
from .files import (
    CODES,
    FORMAT,
    FORMATS,
    ID,
    LISTING,
    Column,
    bad_file,
    columns_of,
    hashed,
    one_column,
    stored_kind,
)

FLOAT = 'float32'
_MOST_NAMED = 5
_MAX_LISTING, _MAX_VALUES = 2**26, 2_000_000


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
      kind: of the numbers; another one than the column's if a file lacks the type.
      column: of rows `[n, width]`.
    """

    kind: str
    column: Column


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
                   rows_of: Mapping[str, int] | None) -> list[Incoming]:
    """Opens and checks files that another program wrote.

    Args:
      directory: of the files.
      tables: their rows, a file for each.
      ids: of these rows.
      rows_of: by table, the rows of the checkpoint to which ids belong; `None` if there is none.

    Raises:
      CheckpointError: E663 and E665 to E668, with all problems.
      ConfigError: E669 if the arguments contradict one another, or a file may hold ids that none
        of them names.
    """
    by_table, ids_by_table = [{one.table: one for one in named} for named in (tables, ids)]
    found, problems = [], []
    for name, file in by_table.items():
        try:
            found.append(_table(directory, file, ids_by_table.get(name), rows_of))
        except EteError as error:
            problems += error.problems
    if len(by_table) < len(tables) or len(ids_by_table) < len(ids):
        problems.append(Problem('E669', '--table', 'each table must have one file of rows, and at '
                                'most one of ids', 'several', 'Put them together into one.'))
    if strays := ids_by_table.keys() - by_table.keys():
        problems.append(Problem('E669', '--ids', 'each table must have rows by --table too',
                                quoted(shown(name, 200) for name in sorted(strays))))
    if problems:  # They are about arguments only if all are.
        raise (ConfigError if {problem.code for problem in problems} == {'E669'}
               else CheckpointError)(*problems)
    return found


def _table(directory: str, named: NamedFile, ids: NamedFile | None,
           rows_of: Mapping[str, int] | None) -> Incoming:
    """Opens and checks the files of one table."""
    name, where = named.table, table_text(named.table)
    if problems := list(name_problems('table', name)):
        raise ConfigError(*problems)
    columns = columns_of(directory, named.file)
    rows = one_column(columns, named.column, named.file, _is_matrix,
                      'it must hold one matrix of floats')
    places = columns.get(ID) if ids is None else one_column(
        columns_of(directory, ids.file), ids.column, ids.file, _is_vector,
        'it must hold one vector of ids')
    if places is None and not named.column and (problems := list(_in_doubt(
            where, named.file, rows, columns))):
        raise ConfigError(*problems)
    if problems := list(_misshapen(where, rows, places)):
        raise CheckpointError(*problems)
    found = Incoming(name, rows.shape[0], rows.shape[1], {'': Feed(FLOAT, rows)}, None)
    if places is not None:
        come = np.concatenate([*integers(places)])
        count = (int(come.max()) + 1 if rows_of is None or name not in rows_of
                 else rows_of[name])
        found = found._replace(rows=max(count, 1), ids=come)
        problems = list(_wrong_ids(where, come, count, may_lack=rows_of is not None))
    problems += _not_finite(where, found)
    if problems:
        raise CheckpointError(*problems)
    return found


def _in_doubt(where: str, file: str, rows: Column, columns: Mapping[str, Column]
              ) -> Iterator[Problem]:
    """Yields a problem if a file may hold ids which nobody named.

    Such rows would silently become those of other ids. Somebody who names the column of the rows
    has seen the others.
    """
    maybe = [other for other in columns.values()
             if _is_vector(other) and other.shape == rows.shape[:1]]
    if maybe:
        file = shown(file, 255)
        yield Problem(
            'E669', where, f'somebody must say whether file {file} has the ids of its rows',
            quoted(shown(other.name, 100) for other in maybe[:5]),
            f'If so, add --ids NAME={file}:{shown(maybe[0].name, 100)}. If its rows are in '
            f'the order of ids, name them: --table NAME={file}:{shown(rows.name, 100)}.')


def _is_matrix(column: Column) -> bool:
    return len(column.shape) == 2 and column.kind in CODES and 'float' in column.kind


def _is_vector(column: Column) -> bool:
    return len(column.shape) == 1 and column.kind in CODES and 'int' in column.kind


def _misshapen(where: str, rows: Column, ids: Column | None) -> Iterator[Problem]:
    """Yields what is wrong with the types and shapes of rows and ids."""
    if len(rows.shape) != 2:
        yield Problem('E666', where, 'its rows must be a matrix [ids, width]', str(rows))
    elif not 1 <= rows.shape[0] <= limits.MAX_VOCABULARY_SIZE or (
            not 1 <= rows.shape[1] <= limits.MAX_DIMENSION):
        yield Problem('E666', where, f'it must have rows, at most {limits.MAX_VOCABULARY_SIZE:,}, '
                      f'of a width in [1, {limits.MAX_DIMENSION}]', str(rows))
    if rows.kind != FLOAT:
        yield Problem('E666', where, 'its rows must be float32', str(rows),
                      'Convert them where they come from.')
    if ids is not None and not _is_vector(ids):
        yield Problem('E666', where, 'its ids must be a vector of integers', str(ids),
                      'Number the rows from 0 on, and store the numbers as int64.')
    elif ids is not None and ids.shape[:1] != rows.shape[:1]:
        yield Problem('E666', where, 'each of its rows must have an id', f'{ids} for {rows}')


def integers(column: Column) -> Iterator[np.ndarray]:
    """Yields the ids in a column as int64 `[n]`.

    An id that is too large for int64 becomes the largest number, which is no id either.
    """
    for ids in column.chunks():
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
    for rows in table.feeds[''].column.chunks():
        bad.append(first + np.flatnonzero(~np.isfinite(rows).all(axis=1)))
        first += len(rows)
    ids = np.concatenate(bad)
    if len(ids):
        yield Problem('E668', where, 'all numbers of rows must be finite',
                      'NaN or infinity in the rows of '
                      f'{_some(ids if table.ids is None else table.ids[ids])}',
                      'A job cannot learn from such rows: correct them, or leave them out.')


def exported(directory: str) -> tuple[list[Incoming], int] | None:
    """Checks all files of an export.

    Args:
      directory: of the files.

    Returns:
      The tables in them and the step of their checkpoint, or 0. `None` if there is no `rows.json`.

    Raises:
      CheckpointError: with all problems. E664 if `rows.json` cannot be read. E665 if a file is
        missing or was changed, E666 if it holds other rows than `rows.json` says.
    """
    path = os.path.join(directory, LISTING)
    if not os.path.lexists(path):
        return None
    problems: list[Problem] = []
    try:
        with files.open_regular(path, follow=False) as file:
            text = files.read_at_most(file, _MAX_LISTING + 1)
        if len(text) > _MAX_LISTING:
            raise ValueError(f'more than {_MAX_LISTING:,} bytes')
        fields = files.json_object(text, _MAX_VALUES)
        if fields['format'] != FORMAT or fields['kind'] not in FORMATS:
            raise ValueError(f'format {shown(fields["format"])} of {shown(fields["kind"])}')
        step = fields['checkpoint']['step'] or 0
        if not is_count(step, 0, 2**63 - 1):
            raise ValueError(f'step {shown(step)}')
        found = [_listed(directory, fields['kind'], one, problems) for one in fields['tables']]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(Problem(
            'E664', f'{LISTING} of {shown(directory, 200)}', 'it must be as etpe checkpoint export '
            f'wrote it (format {FORMAT})', f'{type(error).__name__}: {shown(error, 200)}',
            'Export again, or name files by --table NAME=FILE in a directory without it.'
            )) from error
    if problems:
        raise CheckpointError(*problems)
    return found, step


def _listed(directory: str, kind: str, entry: Mapping[str, Any], problems: list[Problem]
            ) -> Incoming:
    """Returns a table whose files are checked; adds their problems.

    Raises:
      ValueError: if a name or a type cannot be so.
    """
    name = entry['name']
    slots = [one['slot'] for one in entry['tensors']]
    if slots[:1] != [''] or '' in slots[1:] or len(set(slots)) < len(slots):
        raise ValueError(f'slots {shown(slots)}')
    for each in (name, *slots[1:], *(one['name'] for one in entry['tensors'])):
        if bad := next(name_problems('table', each), None):
            raise ValueError(str(bad))
    shape: tuple[int, ...] = ()
    feeds: dict[str, Feed] = {}
    for one in entry['tensors']:
        if one['dtype'] not in CODES or 'float' not in one['dtype']:
            raise ValueError(f'type {shown(one["dtype"])}')
        try:
            column = _checked(directory, kind, one)
            shape = shape or column.shape
            if column.shape != shape:
                raise _other(one, f'{column.kind} {list(shape)}', column)
            feeds[one['slot']] = Feed(one['dtype'], column)
        except EteError as error:
            problems += error.problems
    rows, width = shape or (0, 0)
    return Incoming(name, rows, width, feeds, None)


def _checked(directory: str, kind: str, one: Mapping[str, Any]) -> Column:
    """Returns the column of a tensor, after verifying its file."""
    columns = columns_of(directory, one['file'])
    digest = hashed(os.path.join(directory, one['file']))
    if digest != one['sha256']:
        raise bad_file(
            one['file'], f'it must be as it was written: SHA-256 {shown(one["sha256"], 12)}',
            digest[:12], 'Export again, or restore the file from a copy.')
    column, wanted = columns.get(one['column']), stored_kind(kind, one['dtype'])
    if column is None or (column.kind, len(column.shape)) != (wanted, 2) or not all(column.shape):
        raise _other(one, f'rows of {wanted}', column)
    if kind == 'parquet':
        first = 0
        for ids in integers(columns[ID]) if ID in columns else ():
            if not np.array_equal(ids, np.arange(first, first + len(ids))):
                break
            first += len(ids)
        if first != column.shape[0]:
            raise bad_file(one['file'], f'its column {ID} must count from 0', 'other numbers',
                           'Export again.')
    return column


def _other(one: Mapping[str, Any], wanted: str, column: Column | None) -> CheckpointError:
    return CheckpointError(Problem(
        'E666', f'tensor "{shown(one["name"], 200)}"', f'file {shown(one["file"], 255)} must hold '
        f'{wanted}', 'no column for it' if column is None else str(column), 'Export again.'))
