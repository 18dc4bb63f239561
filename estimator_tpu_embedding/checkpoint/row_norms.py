"""Counts the norms of the rows of a stored table, and the rows that no step has changed.

Rows are read a few MB at a time, in the order in which they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .bundle import Bundle
from .stored_rows import batches

BINS = 24
_FINE = 512


class _Histogram:
    """Counts numbers >= 0 in equal bins from 0 on, whose width doubles when a larger one comes."""

    def __init__(self) -> None:
        self.counts = np.zeros(_FINE, np.int64)
        self.width = 0.0

    def add(self, values: np.ndarray) -> None:
        most = float(values.max(initial=0.0))
        if not self.width:
            self.width = most * 1.0001 / _FINE
        while most >= self.width * _FINE and self.width:
            self.counts = np.concatenate([self.counts.reshape(-1, 2).sum(1),
                                          np.zeros(_FINE // 2, np.int64)])
            self.width *= 2
        at = (values / (self.width or 1.0)).astype(np.int64)
        self.counts += np.bincount(np.minimum(at, _FINE - 1), minlength=_FINE)

    def median(self) -> float:
        """Returns the middle of the bin in which half of the numbers end."""
        at = int(np.searchsorted(np.cumsum(self.counts), self.counts.sum() / 2))
        return (at + .5) * self.width

    def shown(self) -> tuple[list[float], list[int]]:
        """Returns about `BINS` bins: their lower bounds and counts, without empty ones around."""
        used = np.flatnonzero(self.counts)
        if not len(used):
            return [], []
        first, stop = int(used[0]), int(used[-1]) + 1
        group = -(-(stop - first) // BINS)
        counts = np.add.reduceat(self.counts[first:stop], np.arange(0, stop - first, group))
        return [(first + group * at) * self.width for at in range(len(counts))], counts.tolist()


def norms_of(bundle: Bundle, name: str, slots: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Returns the Euclidean norms of the rows of a table, as counts.

    Args:
      name: of the table, a tensor `[rows, width]` of real numbers.
      slots: the values with which its slots began, by suffix. A row of which all slots still have
        them had no gradient but zeros.

    Returns:
      `rows`; `bounds` and `counts` of the bins of a histogram; `median` and `most` of the norms, of
      which the first is within 1/256 of the other; `not_finite`, the rows of that kind; and
      `untouched`, the rows without a gradient, or `None` if no slot tells.

    Raises:
      CorruptCheckpointError: if the rows cannot be read.
    """
    tensor = bundle.tensors[name]
    told = [(f'{name}/{suffix}', np.float32(value)) for suffix, value in (slots or {}).items()
            if (slot := bundle.tensors.get(f'{name}/{suffix}')) is not None
            and slot.shape == tensor.shape]
    found, most = _Histogram(), 0.0
    not_finite = untouched = 0
    for ids in batches(tensor):
        first, stop = int(ids[0]), int(ids[-1]) + 1
        rows = bundle.read(name, first, stop).astype(np.float64)
        norms = np.sqrt(np.einsum('ij,ij->i', rows, rows))
        finite = norms[np.isfinite(norms)]
        not_finite += len(norms) - len(finite)
        most = max(most, float(finite.max(initial=0.0)))
        found.add(finite)
        if told:
            untouched += int(np.logical_and.reduce(
                [(bundle.read(slot, first, stop) == value).all(axis=1) for slot, value in told]
            ).sum())
    bounds, counts = found.shown()
    return {'rows': tensor.rows, 'bounds': bounds, 'counts': counts, 'most': most,
            'median': found.median(), 'not_finite': not_finite,
            'untouched': untouched if told else None}
