"""Counts the updates of engines in functions, for the report at the end of a program.

The counts stay readable after the engines are closed.
"""

from __future__ import annotations

from typing import Any

from .. import _tf

_counters: list[Any] = []


def count_by(counter: Any) -> None:
    """Remembers the int64 variable with which an engine counts its updates."""
    _counters.append(counter)


def numbers() -> list[int]:
    """Returns the number of updates of each engine, in the order in which they were made."""
    with _tf.eager_mode():
        return [int(counter.numpy()) for counter in _counters if hasattr(counter, 'numpy')]
