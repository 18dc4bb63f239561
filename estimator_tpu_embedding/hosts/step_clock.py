"""Counts and times the steps of engines in functions, for the report at the end of a program.

Functions make steps without Python, so the graph itself notes them. A stretch is a row of steps of
one kind that nothing else interrupts. Its time is the time from its first step to its last, both
at the same place of the step. So all steps but one are timed, by everything that happens from one
to the next. The notes stay readable after the engines are closed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from .. import _tf
from ..native.eager_variable import read, small_variable

_NO_STRETCH = [-math.inf, -math.inf]
_records: list[FunctionSteps] = []


class Figures(NamedTuple):
    """The steps of one kind so far: all, those that are timed, and the seconds of these."""

    steps: int
    timed: int
    seconds: float


class StepClock:
    """The notes about the steps of one kind."""

    def __init__(self) -> None:
        """Makes the variables, in the context of the caller."""
        self._count = small_variable(0, tf.int64)
        # In seconds: minus the time of the first step, and the time of the last. So one
        # operation, a maximum, notes both.
        self._stretch = small_variable(_NO_STRETCH, tf.float64)
        # Of former stretches: timed steps, their seconds, and all steps.
        self._sums = small_variable([0, 0, 0], tf.float64)

    def begin_step(self) -> tf.Tensor:
        """Notes the time of a step; returns its number, an int64 scalar from 1 on.

        Nothing in the step waits for that, and of a row of steps only the distance matters.
        """
        step = read(self._count) + 1
        tf.raw_ops.ResourceScatterMax(
            resource=self._stretch.handle, indices=[0, 1],
            updates=tf.timestamp() * tf.constant([-1, 1], tf.float64))
        return step

    def count_step(self) -> None:
        """Counts a step; control dependencies say when it is done."""
        tf.raw_ops.AssignAddVariableOp(resource=self._count.handle, value=tf.constant(1, tf.int64))

    def is_running(self) -> tf.Tensor:
        """Returns whether there is a stretch, a bool scalar."""
        return read(self._stretch)[1] > 0

    def end_stretch(self) -> tf.Tensor:
        """Ends the stretch, if there is one, so that the next step begins another; returns 0."""
        return tf.cond(self.is_running(), self._end_stretch, lambda: tf.constant(0))

    def figures(self) -> Figures:
        """Ends the stretch, and returns the figures; in eager mode."""
        self.end_stretch()
        timed, seconds, _ = self._sums.numpy().tolist()
        return Figures(int(self._count.numpy()), int(timed), seconds)

    def _end_stretch(self) -> tf.Tensor:
        minus_first, last = tf.unstack(read(self._stretch))
        steps = tf.cast(read(self._count), tf.float64) - read(self._sums)[2]
        seconds = tf.maximum(last + minus_first, 0)  # The clock of the machine may be set back.
        tf.raw_ops.AssignAddVariableOp(
            resource=self._sums.handle, value=tf.stack([steps - 1, seconds, steps]))
        tf.raw_ops.AssignVariableOp(
            resource=self._stretch.handle, value=tf.constant(_NO_STRETCH, tf.float64))
        return tf.constant(0)


class FunctionSteps:
    """The steps of one engine: updates, and look-ups of batches that get no gradients.

    Attributes:
      batch_size: samples of all replicas per step; 0 if that is not known.
      is_eager: whether the notes can be read outside of sessions.
    """

    def __init__(self, batch_size: int, kernels: str):
        """Makes the variables, in the context of the caller."""
        self.batch_size, self.kernels = batch_size, kernels
        self.trained, self.looked_up = StepClock(), StepClock()
        self.is_eager = tf.executing_eagerly()
        _records.append(self)

    def interrupt(self) -> None:
        """Notes, in eager mode, that something else than steps happens, such as a save."""
        if tf.executing_eagerly():
            self._end_stretches()

    def note_lookup(self) -> tf.Tensor:
        """Adds operations that note a look-up without update, which interrupts a training.

        A training step that interrupts look-ups adds no operations for that. The first look-up
        after it ends the former stretches of both kinds.
        """
        with tf.control_dependencies([tf.cond(
                self.trained.is_running(), self._end_stretches, lambda: tf.constant(0))]):
            self.looked_up.begin_step()
            self.looked_up.count_step()
            return tf.constant(0)

    def _end_stretches(self) -> tf.Tensor:
        return self.trained.end_stretch() + self.looked_up.end_stretch()


class Total(NamedTuple):
    """The steps of one engine until the end of the program; see `FunctionSteps`."""

    batch_size: int
    kernels: str
    trained: Figures
    looked_up: Figures


def totals() -> list[Total]:
    """Returns the steps of each engine, in the order in which they were made."""
    with _tf.eager_mode():
        return [Total(one.batch_size, one.kernels, one.trained.figures(), one.looked_up.figures())
                for one in _records if one.is_eager]
