"""Holds the errors of runs, and finds the root cause among the failures of all threads."""

from __future__ import annotations

import dataclasses
import functools
import gc
import sys
import threading
import traceback
from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import (
    ConfigError,
    EteError,
    IdRangeError,
    InputError,
    InputPipelineError,
    InputShapeError,
    NonFiniteCheckpointError,
    Problem,
)
from ..ops import checks

SESSION_LOST = (tf.errors.AbortedError, tf.errors.UnavailableError)
"""After these a `MonitoredSession` makes a new session and restores the newest checkpoint."""

_CONSEQUENCES = (tf.errors.CancelledError, tf.errors.AbortedError)


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


class SessionLostError(EteError, RuntimeError):
    """E802: sessions were lost again and again without a step between, or after the last step."""


_CLASSES: dict[str, type[EteError]] = {
    'E421': ConfigError, 'E457': ConfigError, 'E476': ConfigError,
    'E501': IdRangeError, 'E511': InputShapeError, 'E512': InputShapeError,
    'E518': InputShapeError, 'E523': InputShapeError, 'E801': DivergedError}


class Failures:
    """Collects failures; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cause: BaseException | None = None
        self._earlier: list[str] = []

    def record(self, source: str, error: BaseException) -> None:
        """Adds the failure of one thread, such as `'infeed of host 1'`, perhaps a mere consequence.
        """
        is_consequence = isinstance(error, _CONSEQUENCES)
        note = (f'then the {source} was ended: {type(error).__name__}' if is_consequence
                else f'then the {source} failed: {typed(error)}')
        with self._lock:
            if self._cause is not None:
                self._cause.add_note(note)
            elif is_consequence:
                self._earlier.append(note)
            else:
                self._cause = typed(error)
                for one in (f'raised by the {source}', *self._earlier):
                    self._cause.add_note(one)

    def root_cause(self) -> BaseException | None:
        """Returns the first failure that is no consequence, with all others as notes, or `None`.

        Once there is one, it is always the same object.
        """
        with self._lock:
            return self._cause


def typed(error: BaseException) -> BaseException:
    """Returns the error of this package that another error stands for, or that error itself.

    TensorFlow's error of a failed check stands for one, and so does a refusal to save a value.
    """
    if isinstance(error, NonFiniteCheckpointError) and not isinstance(error, DivergedError):
        return DivergedCheckpointError(*error.problems).with_traceback(error.__traceback__)
    if not isinstance(error, tf.errors.OpError):
        return error
    problem = checks.message_to_problem(error.message)
    if problem is None:
        return error
    translated: EteError = _CLASSES.get(problem.code, InputError)(problem)
    return translated.with_traceback(error.__traceback__)


class _PipelineError(InputPipelineError):
    """E520: an error of TensorFlow that an input pipeline raised; `_pipeline_class` adds its class.

    Text, `message` and `error_code` come from TensorFlow, `code` and `problems` from this package.
    """

    def __init__(self, error: tf.errors.OpError, problem: Problem):
        tf.errors.OpError.__init__(self, error.node_def, error.op, error.message,
                                   error.error_code, error.experimental_payloads)
        self.args = (problem,)
        self.error, self.problem = error, problem
        self.add_note(str(problem))

    def __str__(self) -> str:
        return str(self.error)


@functools.cache
def _pipeline_class(of: type[tf.errors.OpError]) -> type[_PipelineError]:
    return type(f'InputPipeline{of.__name__}', (_PipelineError, of), {
        '__module__': __name__, '__doc__': f'E520: {of.__name__} in an input pipeline.'})


def of_pipeline(error: BaseException, problem: Problem) -> BaseException:
    """Returns the error that ended an input pipeline, as an `InputPipelineError` with `problem`.

    TensorFlow raises an error of its own for any error of Python code in a pipeline. Callers may
    know it by TensorFlow's class, so the error returned has both classes. Errors of other kinds
    stay as they are.
    """
    better = typed(error)
    if not isinstance(better, tf.errors.OpError) or isinstance(better, (EteError, *_CONSEQUENCES)):
        return better
    kind: Any = type(better)
    return _pipeline_class(kind)(better, problem).with_traceback(better.__traceback__)


def nothing_came(name: str, waited: float, *, has_stacks: bool = True) -> InputPipelineError:
    """Returns E522 for the input `name`, which takes too long, with stacks of all threads as notes.
    """
    error = InputPipelineError(Problem(
        'E522', f'input of {name}', 'it must produce a batch before the deadline',
        f'nothing for {waited:.0f} s', 'What the threads of this process do is below. Where '
        'input may take longer, set RunConfig(input_deadline_secs=...).'))
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for thread, frame in _frames().items() if has_stacks else ():
        error.add_note(f'thread {names.get(thread, thread)}:\n'
                       + ''.join(traceback.format_stack(frame)))
    return error


def _frames() -> dict[int, Any]:
    """Returns the topmost frame of every thread of this process."""
    enabled = gc.isenabled()
    # A collection inside that call may free a thread-local, which takes the lock that the call
    # holds: up to Python 3.11 the process then stands still (CPython issue 106883).
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if enabled:
            gc.enable()
