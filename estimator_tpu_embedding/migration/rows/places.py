"""Brings rows that come in any order into the order of their places, with a few MB of memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

OFFSET_BYTES = 4
"""What the scratch file has for each row beside the row."""
_OFFSET = np.dtype(np.uint32)
_BYTES = 2**23
_MOST_WINDOWS = 2**11
"""More only by rounding. The ends of all runs, whose number grows too, must stay few."""


class _Run(NamedTuple):
    """Rows that were written at once: first their offsets in windows, then themselves.

    Attributes:
      begin: where it lies in the scratch file.
      ends: uint32 `[windows]`: how many of its rows belong to a window or to one before it.
    """

    begin: int
    ends: np.ndarray


class ByPlace:
    """Rows that were put in any order, and can be taken window by window.

    The places are cut into windows of equal size. Rows wait until there are some MB of them. Then
    they are grouped by window, and appended to a scratch file. So neither a put nor a window costs
    a call of the system for each row.
    """

    def __init__(self, file: BinaryIO, places: int, width: int, code: str, most: int = _BYTES):
        """Begins without rows.

        Args:
          file: the scratch file, empty; it grows by the rows and `OFFSET_BYTES` for each.
          places: how many there are, >= 1.
          width: numbers in a row.
          code: NumPy's code of a number.
          most: about so many bytes of rows wait, or are in a window; at least a row, and more in
            tables of many GB.
        """
        self._file, self._width, self._code = file, width, np.dtype(code)
        self._row_bytes = width * self._code.itemsize
        most = max(most, places * self._row_bytes // _MOST_WINDOWS)
        self._places, self._window = places, max(most // self._row_bytes, 1)
        self._windows = -(-places // self._window)
        self._runs: list[_Run] = []
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._count = self._end = 0

    def put(self, places: np.ndarray, rows: np.ndarray) -> None:
        """Takes rows.

        Args:
          places: int64 `[n]`, each in `[0, places)`; in all calls together each at most once.
          rows: `[n, width]`.

        Raises:
          OSError: if they cannot be written.
        """
        self._waiting.append((places, rows))
        self._count += len(places)
        if self._count >= self._window:
            self._write()

    def windows(self) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """Yields each window: its first place, the end, and the places and rows that came in it.

        The places count from the first of the window, and are in no order: int64 `[n]`.

        Raises:
          OSError: if the scratch file cannot be read or written.
        """
        if self._count:
            self._write()
        for number in range(self._windows):
            first = number * self._window
            parts = list(filter(None, (self._part(run, number) for run in self._runs)))
            offsets = [np.empty(0, _OFFSET), *(offset for offset, _ in parts)]
            rows = [np.empty((0, self._width), self._code), *(part for _, part in parts)]
            yield (first, min(first + self._window, self._places),
                   np.concatenate(offsets).astype(np.int64), np.concatenate(rows))

    def _write(self) -> None:
        """Appends the rows that wait to the scratch file."""
        places = np.concatenate([places for places, _ in self._waiting])
        rows = np.concatenate([rows for _, rows in self._waiting])
        self._waiting, self._count = [], 0
        numbers = (places // self._window).astype(np.uint16)  # NumPy sorts these in linear time.
        order = np.argsort(numbers, kind='stable')
        self._runs.append(_Run(self._end, np.cumsum(np.bincount(
            numbers, minlength=self._windows), dtype=np.uint32)))
        self._append((places % self._window).astype(_OFFSET)[order])
        self._append(np.take(rows, order, axis=0))

    def _append(self, array: np.ndarray) -> None:
        left = np.ascontiguousarray(array).data.cast('B')
        while len(left):
            count = os.pwrite(self._file.fileno(), left, self._end)
            self._end, left = self._end + count, left[count:]

    def _part(self, run: _Run, number: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns the offsets and rows that a run has in a window; `None` if there are none."""
        begin, end = int(run.ends[number - 1]) if number else 0, int(run.ends[number])
        if begin == end:
            return None
        rows = run.begin + int(run.ends[-1]) * OFFSET_BYTES
        return (self._read(run.begin, begin, end, OFFSET_BYTES).view(_OFFSET),
                self._read(rows, begin, end, self._row_bytes).view(self._code).reshape(
                    end - begin, self._width))

    def _read(self, at: int, begin: int, end: int, size: int) -> np.ndarray:
        """Returns items of a size each, the first of which is at `at`: uint8 `[n * size]`."""
        content = os.pread(self._file.fileno(), (end - begin) * size, at + begin * size)
        return np.frombuffer(content, np.uint8)
