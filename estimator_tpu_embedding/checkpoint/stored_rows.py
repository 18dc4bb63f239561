"""Reads rows of stored tensors by their ids, and compares them, a few MB at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ..core.partition import Partition
from .bundle import Bundle
from .tensors import Tensor

_CHUNK = 2**21
"""Bytes at once: few enough to stay in the cache of a processor until they are written."""


class Difference(NamedTuple):
    """The difference between the rows of two tensors of one shape.

    Attributes:
      rows: how many differ. NaN is equal to NaN.
      most: the largest absolute difference of two numbers; infinite if one is not finite.
      ids: the first ids whose rows differ, with the largest difference in each.
    """

    rows: int
    most: float
    ids: list[tuple[int, float]]


class Ordered:
    """A tensor whose rows are read by their ids; without a partition they are in that order."""

    def __init__(self, bundle: Bundle, name: str, partition: Partition | None):
        self.bundle = bundle
        self.name = name
        self.tensor = bundle.tensors[name]
        self._partition = partition

    def stored(self, ids: np.ndarray) -> np.ndarray:
        """Returns the stored row of each id."""
        return ids if self._partition is None else self._partition.stored_row(ids)

    def row_of(self, id: int) -> int:
        """Returns the stored row of an id."""
        return int(self.stored(np.array([id]))[0])

    def values(self, id: int) -> list[float]:
        """Returns the numbers in the row of an id."""
        return [float(value) for value in self.read(np.array([id]))[0]]

    def read(self, ids: np.ndarray) -> np.ndarray:
        """Reads the rows of ids, int64 `[n]`, in their order: `[n, ...]`."""
        return self._gathered(ids, self.bundle.read)

    def read_bytes(self, ids: np.ndarray) -> np.ndarray:
        """Reads the bytes of the rows of some ids, in their order: uint8 `[n, row_bytes]`."""
        return self._gathered(ids, self.bundle.read_bytes)

    def _gathered(self, ids: np.ndarray, read: Callable[[str, int, int], np.ndarray]
                  ) -> np.ndarray:
        stored = self.stored(ids)
        if not len(ids) or (np.diff(stored) == 1).all():
            return read(self.name, int(stored[0]), int(stored[-1]) + 1) if len(ids) else (
                read(self.name, 0, 0))
        order = np.argsort(stored, kind='stable')
        # Rows that lie together are read at once; a chunk of ids has about as many on each host.
        breaks = np.flatnonzero(np.diff(stored[order]) != 1) + 1
        result = np.empty(0)
        for run in np.split(order, breaks):
            rows = read(self.name, int(stored[run[0]]), int(stored[run[-1]]) + 1)
            if not result.size:
                result = np.empty((len(ids), *rows.shape[1:]), rows.dtype)
            result[evenly(run)] = rows
        return result


def evenly(positions: np.ndarray) -> np.ndarray | slice:
    """Returns positions as a slice if they rise evenly: NumPy copies faster by one.

    >>> evenly(np.array([1, 4, 7])), evenly(np.array([1, 4, 5]))
    (slice(1, 8, 3), array([1, 4, 5]))
    """
    steps = np.diff(positions)
    if len(steps) and (steps[0] < 1 or (steps != steps[0]).any()):
        return positions
    return slice(int(positions[0]), int(positions[-1]) + 1, int(steps[0]) if len(steps) else 1)


def difference(a: Ordered, b: Ordered, most_ids: int, tolerance: float = 0.) -> Difference:
    """Compares two tensors of numbers, of one shape, id by id; returns at most so many ids.

    Rows count as different if two of their numbers are further apart than the tolerance.
    """
    count, most = 0, 0.0
    found: list[tuple[int, float]] = []
    for ids in batches(a.tensor):
        of_ids = _differences(a.read(ids), b.read(ids))
        differs = np.flatnonzero(of_ids > tolerance)
        count, most = count + len(differs), max(most, float(of_ids.max()))
        found += [(int(ids[at]), float(of_ids[at])) for at in differs[:most_ids - len(found)]]
    return Difference(count, most, found)


def batches(tensor: Tensor, most: int = 0) -> Iterator[np.ndarray]:
    """Yields all ids, or rows, of a tensor of numbers in order: int64, for so many bytes at a time.
    """
    step = max((most or _CHUNK) // max(tensor.row_bytes, 1), 1)
    for first in range(0, tensor.rows if tensor.row_bytes else 0, step):
        yield np.arange(first, min(first + step, tensor.rows), dtype=np.int64)


def _differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the largest absolute difference in each row, 0 if it is equal: float64 `[n]`."""
    a, b = (one.reshape(len(one), -1) for one in (a, b))
    same = (a == b) | ((a != a) & (b != b))
    kind = np.complex128 if np.iscomplexobj(a) else np.float64
    with np.errstate(invalid='ignore', over='ignore'):
        apart = np.abs(a.astype(kind) - b.astype(kind))
    # Integers may differ by less than float64 can tell, and a NaN has no difference.
    apart[np.isnan(apart)] = math.inf
    apart[apart == 0] = np.finfo(np.float64).tiny
    apart[same] = 0
    return np.asarray(apart.max(axis=1, initial=0.0))
