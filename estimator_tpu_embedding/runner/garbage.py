"""Keeps Python's garbage collector from walking a graph again and again while it grows."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

ALLOCATIONS = (100_000, 50, 100)
"""Thresholds while a graph is built. What lives briefly is still collected, so that a model_fn
that reads much data needs no more memory."""


@contextlib.contextmanager
def collected_rarely() -> Iterator[None]:
    """Raises the thresholds of the garbage collector while this lasts.

    Everything that a graph allocates lives as long as the graph, but the collector visits it every
    time.
    Thresholds that are higher already, or 0, stay.
    """
    before = gc.get_threshold()
    is_lower = 0 < before[0] < ALLOCATIONS[0]
    if is_lower:
        gc.set_threshold(*ALLOCATIONS)
    try:
        yield
    finally:
        if is_lower:  # Otherwise whoever raised them, perhaps another thread, puts them back.
            gc.set_threshold(*before)
