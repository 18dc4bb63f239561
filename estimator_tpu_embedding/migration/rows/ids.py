"""Checks the ids of rows that come in any order: none may be missing, come twice, or be unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...core import limits
from ...errors import Problem
from .files import Column

CHUNK = 2**18
"""Ids at once."""
_BITS = 2**16
_MOST_NAMED = 5


class Ids:
    """The ids of rows, in the order of the rows.

    Attributes:
      columns: with ids, one for each file of rows.
      rows: of the table.
    """

    def __init__(self, columns: Sequence[Column], rows: int):
        """Takes ids that have not been checked yet.

        Args:
          columns: of integers `[n]`.
          rows: of the table.
        """
        self.columns = columns
        self.rows = rows
        self._present = np.zeros(-(-rows // 8), np.uint8)

    def problems(self, where: str, may_lack: bool) -> Iterator[Problem]:
        """Reads all ids, remembers them, and yields their problems.

        Args:
          where: the table, as messages call it.
          may_lack: whether ids may be missing, since their rows are there already.
        """
        outside, twice = _Some(), _Some()
        for ids in chunks(self.columns):
            out = (ids < 0) | (ids >= self.rows)
            outside.add(ids[out])
            twice.add(self._add(ids[~out]))
        missing = _Some()
        for ids in () if may_lack else self._missing():
            missing.add(ids)
        if outside.count:
            yield Problem('E667', where, f'ids must be in [0, {self.rows:,})', f'{outside}',
                          'Leave these rows out, or begin from a larger table.')
        if twice.count:
            yield Problem('E667', where, 'an id must come once', f'again {twice}',
                          'Keep one row for each id.')
        if missing.count:
            yield Problem('E667', where, f'all ids in [0, {self.rows:,}) must come',
                          f'without {missing}', 'Add their rows; or use --base CKPT, whose rows '
                          'the missing ones keep.')

    def has(self, ids: np.ndarray) -> np.ndarray:
        """Returns for each id whether a row of it came: bool `[n]`."""
        return np.asarray((self._present[ids >> 3] >> (ids & 7).astype(np.uint8)) & 1, bool)

    def _add(self, ids: np.ndarray) -> np.ndarray:
        """Remembers ids; returns those that came before, or again."""
        ids = np.sort(ids)
        again = np.concatenate([[False], ids[1:] == ids[:-1]]) if len(ids) else np.zeros(0, bool)
        again |= self.has(ids)
        np.bitwise_or.at(self._present, ids >> 3, np.left_shift(
            np.uint8(1), (ids & 7).astype(np.uint8), dtype=np.uint8))
        return ids[again]

    def _missing(self) -> Iterator[np.ndarray]:
        for first in range(0, len(self._present), _BITS):
            part = self._present[first:first + _BITS]
            if not (part == 255).all():
                bits = np.unpackbits(part, bitorder='little')
                ids = first * 8 + np.flatnonzero(bits == 0)
                yield ids[ids < self.rows]


def highest(columns: Sequence[Column]) -> tuple[int, int]:
    """Returns the highest id, -1 if there is none, and the number of ids."""
    top, count = -1, 0
    for ids in chunks(columns):
        if len(ids):
            top, count = max(top, int(ids.max())), count + len(ids)
    return top, count


def beyond_the_limit(where: str, top: int) -> Problem:
    """Returns the problem of an id that no table has."""
    return Problem('E667', where, f'ids must be < {limits.MAX_VOCABULARY_SIZE:,}', f'{top:,}',
                   'Number the rows from 0 on.')


def chunks(columns: Sequence[Column]) -> Iterator[np.ndarray]:
    """Yields all ids of columns as int64 `[n]`."""
    for column in columns:
        yield from chunks_of(column, CHUNK)


def chunks_of(column: Column, step: int) -> Iterator[np.ndarray]:
    """Yields the ids of a column, `step` at a time but for the last, as int64 `[n]`.

    An id that is too large for int64 becomes the largest number, which is no id either.
    """
    for ids in column.read(step):
        if ids.dtype == np.uint64:
            ids = np.minimum(ids, np.uint64(2**63 - 1))
        yield ids.astype(np.int64, copy=False)


class _Some:
    """How many ids there are, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[int] = []

    def add(self, ids: np.ndarray) -> None:
        """Counts ids."""
        self.count += len(ids)
        self._first += [int(id) for id in ids[:max(_MOST_NAMED - len(self._first), 0)]]

    def __str__(self) -> str:
        return (f'{self.count:,} {"id" if self.count == 1 else "ids"}: '
                f'{", ".join(map(str, self._first))}'
                f'{", ..." if self.count > len(self._first) else ""}')


def not_finite(where: str, parts: Iterator[tuple[np.ndarray, np.ndarray]]) -> Iterator[Problem]:
    """Yields a problem if rows have numbers that are not finite.

    Args:
      where: the table, as messages call it.
      parts: ids `[n]` and floats `[n, width]`.
    """
    found = _Some()
    for ids, rows in parts:
        found.add(ids[~np.isfinite(rows).all(axis=1)])
    if found.count:
        yield Problem('E668', where, 'all numbers of rows must be finite',
                      f'NaN, infinity or more than float32 holds in the rows of {found}',
                      'A job cannot learn from such rows: correct them, or leave them out.')
