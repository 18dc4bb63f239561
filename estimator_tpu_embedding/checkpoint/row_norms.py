"""Counts the norms of the rows of a stored table, and the rows that no step has changed.

Rows are read a few MB at a time, in the order in which they are stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.optimizers import SlotSpec
from .bundle import Bundle
from .stored_rows import batches

BINS = 24
_BITS = 12
"""Of a float32 that are not looked at: a count is of norms which agree in the other bits. These are
in the order of the norms, and differ by at most 1 in 2,048."""


def norms_of(bundle: Bundle, name: str, slots: Iterable[SlotSpec] = ()) -> dict[str, Any]:
    """Returns the Euclidean norms of the rows of a table, as counts.

    Args:
      name: of the table, a tensor `[rows, width]` of real numbers.
      slots: of its optimizer. A row of which all slots still have their initial values had no
        gradient but zeros.

    Returns:
      `rows`; the lower `bounds` and the `counts` of at most `BINS` bins of a histogram; `median`
      and `most` of the norms, of which the first is up to 1/2,048 too small; `not_finite`, the rows
      of that kind; and `untouched`, the rows without a gradient, or `None` if no slot tells.

    Raises:
      CorruptCheckpointError: if the rows cannot be read.
    """
    tensor = bundle.tensors[name]
    told = [(slot, np.float32(one.initial_value)) for one in slots
            if (slot := f'{name}/{one.suffix}') in bundle.tensors
            and bundle.tensors[slot].shape == tensor.shape]
    counts, most, untouched = np.zeros(2**(32 - _BITS), np.int64), 0.0, 0
    for ids in batches(tensor):
        first, stop = int(ids[0]), int(ids[-1]) + 1
        rows = bundle.read(name, first, stop).astype(np.float64)
        norms = np.sqrt(np.einsum('ij,ij->i', rows, rows))
        norms = norms[np.isfinite(norms)]
        most = max(most, float(norms.max(initial=0.0)))
        counts += np.bincount(_bits_of(norms), minlength=len(counts))
        if told:
            are_first = [bundle.read(slot, first, stop) == value for slot, value in told]
            untouched += int(np.hstack(are_first).all(axis=1).sum())
    sums = np.cumsum(counts)
    lowest, middle = np.searchsorted(sums, [1, (sums[-1] + 1) // 2])
    starts = np.unique(_bits_of(np.linspace(_norm_of(lowest), most, BINS, endpoint=False)))
    bins = np.add.reduceat(counts, starts) if sums[-1] else starts[:0]
    return {'rows': tensor.rows, 'bounds': _norm_of(starts[:len(bins)]).tolist(),
            'counts': bins.tolist(), 'most': most, 'median': float(_norm_of(middle)),
            'not_finite': tensor.rows - int(sums[-1]), 'untouched': untouched if told else None}


def _bits_of(norms: np.ndarray) -> np.ndarray:
    """Returns numbers in the order of norms >= 0, equal for norms that are almost equal."""
    return np.minimum(norms, np.finfo(np.float32).max).astype(np.float32).view(np.uint32) >> _BITS


def _norm_of(bits: np.ndarray) -> np.ndarray:
    """Returns the least norms of which `_bits_of` returns these."""
    return (np.asarray(bits, np.uint32) << _BITS).view(np.float32)
