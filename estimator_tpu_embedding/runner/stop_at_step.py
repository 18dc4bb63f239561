"""Ends a training at its last step: a hook that knows that step and watches the global step."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import Problem
from .faults import SessionLostError


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
