"""Ends a training at numbers that are not finite, before they are saved, and holds its errors."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from ..errors import EteError, NonFiniteCheckpointError, Problem

MOST_SKIPPED = 100
_FAILED_CHECK = re.compile(r'Gradient for (\S+) is NaN : Tensor had .*? values')


class DivergedError(EteError, tf.train.NanLossDuringTrainingError):
    """Numbers are no longer finite, and no checkpoint holds any of them.

    The code says which numbers:

    - E801: a gradient of a table. Nothing of that step was written to the tables.
    - E803: a loss.
    - E804: a weight of the model.
    - E805: gradients of tables in so many steps in a row that skipping them did not help.
    - E620: a value that was to be saved.

    Attributes:
      checkpoint: prefix of the newest checkpoint, or `None`; known when the run has ended.
    """

    checkpoint: str | None = None

    @property
    def step(self) -> int | None:
        """The global step at which the step at fault began; for E620, the one to be saved."""
        return next((one.step for one in self.problems if one.step is not None), None)

    def tell_checkpoint(self, checkpoint: str | None) -> None:
        """Adds the newest checkpoint to the message: training can go on from there."""
        self.checkpoint = checkpoint
        first, *others = self.problems
        self.args = (dataclasses.replace(first, remedy=' '.join(filter(None, [
            first.remedy, 'There is no checkpoint.' if checkpoint is None
            else f'The newest checkpoint is {checkpoint}.']))), *others)


class DivergedWeightsError(DivergedError, tf.errors.InvalidArgumentError):
    """E804: a weight of the model is not finite; an InvalidArgumentError in the original."""

    def __init__(self, *problems: Problem):
        tf.errors.InvalidArgumentError.__init__(self, None, None, '\n'.join(map(str, problems)))
        self.args = problems

    @property
    def message(self) -> str:
        """The text, as every error of TensorFlow has it."""
        return str(self)


class DivergedCheckpointError(DivergedError, NonFiniteCheckpointError):
    """E620: a value that was to be saved is not finite."""


def require_finite_loss(loss: Any, session: tf.Session) -> None:
    """Raises DivergedError E803 after a step whose loss is NaN or infinite; the original, for NaN.
    """
    if np.all(np.isfinite(loss)):
        return
    shown, step = 'NaN' if math.isnan(loss) else str(loss), _before(session)
    tf.logging.error('Model diverged with loss = %s.', shown)
    raise DivergedError(Problem(
        'E803', 'NaN loss during training', 'the loss must be finite',
        f'{shown}, at global step {step}',
        'Look for a division or a logarithm of 0 in the model; lower the learning rate.', step))


def require_few_skipped(in_a_row: int, step: int) -> None:
    """Raises DivergedError E805 once too many steps in a row changed no table.

    The last of the `in_a_row` steps began at global step `step`.
    """
    if in_a_row < MOST_SKIPPED:
        return
    raise DivergedError(Problem(
        'E805', 'nonfinite_gradients="skip"', f'fewer than {MOST_SKIPPED} steps in a row may have '
        'gradients that are not finite', f'{in_a_row}, at global step {step}',
        'Start again from an older checkpoint, with a lower learning rate.', step))


class FiniteLoss(tf.train.NanTensorHook):
    """Ends training after a loop whose last loss is NaN or infinite; `StepsPerRun` looks at others.
    """

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Raises DivergedError if the last loss is not finite."""
        require_finite_loss(run_values.results, run_context.session)


class FiniteWeights(tf.train.SessionRunHook):
    """Ends training after a loop that left the model with a weight that is not finite."""

    def __init__(self) -> None:
        self._checks: list[tf.Operation] = []

    def begin(self) -> None:
        """Makes checks of all trainable variables. Of tables the gradients are checked instead."""
        self._checks = [tf.debugging.check_numerics(
            variable.read_value(), f'Gradient for {variable.name} is NaN').op
            for variable in tf.trainable_variables() if variable.dtype.is_floating]

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Runs the checks; raises a DivergedWeightsError that names the variable."""
        session = run_context.session
        try:
            session.run(self._checks)
        except tf.errors.InvalidArgumentError as error:
            found = _FAILED_CHECK.search(error.message)
            if found is None:
                raise
            step = _before(session)
            raise DivergedWeightsError(Problem(
                'E804', f'variable "{found.group(1)}"', 'its values must be finite',
                f'"{found.group()}", at global step {step}',
                'Look for a division or a logarithm of 0 in the model; lower the learning rate.',
                step)) from error


def _before(session: tf.Session) -> int:
    """Returns the global step at which the last step began."""
    return int(session.run(tf.train.get_global_step(session.graph))) - 1
