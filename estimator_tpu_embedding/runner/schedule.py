"""Says how many steps each run of a session makes, for training, evaluation and prediction."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import tensorflow.compat.v1 as tf

from ..hosts.backend import QUEUE_CAPACITY
from .pace import Pace
from .progress import RunReport
from .stop_at_step import StopAtStep


class Loop(NamedTuple):
    """The steps of one run of a session.

    Attributes:
      steps: how many the run makes, at least 1.
      following: how many are sure to be made after it, as far as that matters.
    """

    steps: int
    following: int


class Schedule(Protocol):
    """Says how many steps the next run of a session makes.

    Attributes:
      requires_finite_loss: whether a loss that is not finite ends the run.
      is_one_loop: whether one run of the session makes all steps.
    """

    requires_finite_loss: bool
    is_one_loop: bool

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns the steps of the next run, and tells the report the last step of all."""

    def add(self, seconds: float, steps: int) -> None:
        """Takes note of the time that a run took."""


class TrainingSchedule:
    """Makes loops as long as a pace says, up to a last step."""

    requires_finite_loss, is_one_loop = True, False

    def __init__(self, pace: Pace, stop: StopAtStep):
        """Makes loops.

        Args:
          pace: says how many steps a loop should have.
          stop: knows the last step.
        """
        self._pace, self._stop = pace, stop

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns the steps of the next loop, fewer than usual if the end comes earlier."""
        left = self._stop.steps_left(session)
        steps = max(1, min(self._pace.steps(), left))
        report.first_step = self._stop.final_step - left - report.steps
        return Loop(steps, max(0, left - steps))

    def add(self, seconds: float, steps: int) -> None:
        """Lets the pace know the time of a loop."""
        self._pace.add(seconds, steps)


class EvaluationSchedule:
    """Makes all steps in one loop."""

    requires_finite_loss, is_one_loop = False, True

    def __init__(self, steps: int):
        """Makes `steps` steps."""
        self._steps = steps

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns all steps."""
        return Loop(self._steps, 0)

    def add(self, seconds: float, steps: int) -> None:
        """Changes nothing."""


class PredictionSchedule:
    """Makes loops of one step until the data ends, so that each hands out its predictions."""

    requires_finite_loss = is_one_loop = False

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns one step."""
        return Loop(1, QUEUE_CAPACITY)

    def add(self, seconds: float, steps: int) -> None:
        """Changes nothing."""
