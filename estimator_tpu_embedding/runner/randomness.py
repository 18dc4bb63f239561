"""Saves and restores the states of Python's and NumPy's global random generators.

Models draw from them while they are built. Keras, for example, takes the seeds of its initializers
from `random`. All replicas of a model must draw the same numbers.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np


def random_states() -> tuple[Any, Any]:
    """Returns the current states of `random` and `numpy.random`."""
    return random.getstate(), np.random.get_state()


def put_random_states(states: tuple[Any, Any]) -> None:
    """Puts back states that `random_states` returned."""
    random.setstate(states[0])
    np.random.set_state(states[1])


@contextlib.contextmanager
def random_states_kept(seed: int | None = None) -> Iterator[None]:
    """Puts the states back at the end; seeds the generators at the beginning if `seed` is given."""
    before = random_states()
    if seed is not None:
        random.seed(seed)
        np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        put_random_states(before)
