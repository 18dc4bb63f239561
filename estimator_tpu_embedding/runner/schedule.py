"""Says how many steps each run of a session makes, and ends a training at its last step."""

from __future__ import annotations

import collections
import math
import statistics
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import Problem
from ..hosts.backend import QUEUE_CAPACITY
from .faults import SessionLostError
from .progress import RunReport

WINDOW = 20
_STEADY_DEVIATION = 0.03  # seconds per step
_NEAR_LAST, _NEAR_MEAN = 0.10, 0.05


class Loop(NamedTuple):
    """The steps of one run of a session.

    Attributes:
      steps: how many the run makes, at least 1.
      following: how many are sure to be made after it, as far as that matters.
    """

    steps: int
    following: int


class Schedule:
    """Says how many steps the next run of a session makes.

    Attributes:
      requires_finite_loss: whether a loss that is not finite ends the run.
      is_one_loop: whether one run of the session makes all steps.
    """

    requires_finite_loss = is_one_loop = False

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns the steps of the next run, and tells the report the last step of all."""
        raise NotImplementedError

    def add(self, seconds: float, steps: int) -> None:
        """Takes note of the time that a run took."""


class TrainingSchedule(Schedule):
    """Makes loops of a number of steps or as long as a time, up to a last step."""

    requires_finite_loss = True

    def __init__(self, stop: StopAtStep, steps: int, seconds: float | None = None):
        """Makes loops.

        Args:
          seconds: that a loop should last instead, unless it is `None`.
        """
        self._stop, self._steps = stop, steps
        self._pace = None if seconds is None else TimedPace(seconds)

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns the steps of the next loop, fewer than usual if the end comes earlier."""
        left = self._stop.steps_left(session)
        steps = max(1, min(self._steps if self._pace is None else self._pace.steps(), left))
        report.first_step = self._stop.final_step - left - report.steps
        return Loop(steps, max(0, left - steps))

    def add(self, seconds: float, steps: int) -> None:
        """Lets the pace know the time of a loop."""
        if self._pace is not None:
            self._pace.add(seconds, steps)


class EvaluationSchedule(Schedule):
    """Makes all steps in one loop."""

    is_one_loop = True

    def __init__(self, steps: int):
        """Makes `steps` steps."""
        self._steps = steps

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns all steps."""
        return Loop(self._steps, 0)


class PredictionSchedule(Schedule):
    """Makes loops of one step until the data ends, so that each hands out its predictions."""

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns one step."""
        return Loop(1, QUEUE_CAPACITY)


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


class StopAtStep(tf.train.SessionRunHook):
    """Ends training when the global step has reached the final step."""

    def __init__(self, steps: int | None, max_steps: int | None, limit: int | None = None):
        """Stops after a number of steps or at a step; the earliest end counts.

        Args:
          steps: to make from the beginning of the session; or `None`.
          max_steps: the global step to stop at; or `None`.
          limit: steps after which to stop in any case; or `None`.
        """
        self._steps = steps
        self._limit = limit
        self._wanted = max_steps
        self._final_step: int | None = None
        self._global_step: tf.Tensor | None = None
        self._last_step = -1
        self._has_warned = False

    @property
    def final_step(self) -> int:
        """The step to stop at; known once a session exists."""
        assert self._final_step is not None
        return self._final_step

    def steps_left(self, session: tf.Session) -> int:
        """Returns how many steps lie between the global step and the final step."""
        return self.final_step - int(session.run(self._global_step))

    def begin(self) -> None:
        """Finds the global step, as the saver reads it: a session optimizes each fetch by itself.
        """
        self._global_step = _tf.global_step_read(tf.get_default_graph())

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Fixes the final step at the first session; a recovered one does not move it.

        Raises:
          SessionLostError: if a recovered session begins at the final step. The end of the run
            was lost then, and another step would be one too many.
        """
        self._last_step = int(session.run(self._global_step))
        if self._final_step is not None and self._last_step >= self._final_step:
            raise SessionLostError(Problem(
                'E802', 'session', 'the last one must reach the end of the training',
                f'an Aborted or Unavailable error after step {self._last_step}, which is saved',
                'It is in the log above: perhaps of a hook, or of a listener of the saver.'))
        if self._final_step is None:
            ends = [self._wanted, *[self._last_step + steps for steps in (
                self._steps, self._limit) if steps is not None]]
            self._final_step = min(end for end in ends if end is not None)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Asks for the end if it is time; warns of a step that stands still."""
        step = int(run_context.session.run(self._global_step))
        if step >= self.final_step:
            run_context.request_stop()
        elif step == self._last_step and not self._has_warned:
            self._has_warned = True
            tf.logging.warning(
                'The global step is %d as before this run, so training to step %d may never '
                'end. Pass tf.train.get_global_step() to minimize() or apply_gradients().',
                step, self.final_step)
        self._last_step = step
