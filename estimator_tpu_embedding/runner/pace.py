"""Chooses the number of steps of one `run`: a fixed one, or as many as take a given time."""

from __future__ import annotations

import collections
import math
import statistics
from typing import Protocol

WINDOW = 20
_STEADY_DEVIATION = 0.03  # seconds per step
_NEAR_LAST, _NEAR_MEAN = 0.10, 0.05


class Pace(Protocol):
    """Says how many steps the next run of a session should make."""

    def steps(self) -> int:
        """At least 1."""

    def add(self, seconds: float, steps: int) -> None:
        """Takes note of a run that is over."""


class FixedPace:
    """Makes the same number of steps in every run."""

    def __init__(self, steps: int):
        """Makes `steps` steps per run."""
        self._steps = steps

    def steps(self) -> int:
        """Returns that number."""
        return self._steps

    def add(self, seconds: float, steps: int) -> None:
        """Changes nothing."""


class TimedPace:
    """Makes as many steps as take about a given time, judging by the last runs.

    The first run makes one step. The number stays once the time per step is steady and the runs
    last about as long as they should. The original's `iteration_count_estimator` has the same rule
    and the same limits.

    >>> pace = TimedPace(10.)
    >>> pace.steps()
    1
    >>> pace.add(seconds=0.4, steps=1)
    >>> pace.steps()
    25
    """

    def __init__(self, seconds: float):
        """Aims at runs of `seconds`; raises ValueError unless that is positive."""
        if seconds <= 0:
            raise ValueError('Invalid `total_secs`. It must be positive number. '
                             f'Actual:{seconds}')
        self._seconds = seconds
        self._steps = 1
        # Of each run the seconds that it took, and the seconds of a step.
        self._runs: collections.deque[tuple[float, float]] = collections.deque(maxlen=WINDOW)
        self._num_runs = 0

    def steps(self) -> int:
        """Returns how many steps fit into the time."""
        if self._runs and not self._is_steady():
            per_step = statistics.fmean(step for _, step in self._runs)
            self._steps = max(1, math.floor(self._seconds / per_step + 0.5))
        return self._steps

    def add(self, seconds: float, steps: int) -> None:
        """Takes note of a run, unless it took no time or made no step."""
        if seconds > 0 and steps > 0:
            self._runs.append((seconds, seconds / steps))
            self._num_runs += 1

    def _is_steady(self) -> bool:
        if self._num_runs <= WINDOW or statistics.pstdev(
                step for _, step in self._runs) >= _STEADY_DEVIATION:
            return False
        mean = statistics.fmean(run for run, _ in self._runs)
        return (abs(self._runs[-1][0] - self._seconds) / self._seconds <= _NEAR_LAST
                or abs(mean - self._seconds) / self._seconds <= _NEAR_MEAN)
