"""Finds the root cause among the failures of all threads, as an error of this package."""

from __future__ import annotations

import functools
import threading
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
from .finite_checks import DivergedCheckpointError, DivergedError

_CONSEQUENCES = (tf.errors.CancelledError, tf.errors.AbortedError)
_CLASSES: dict[str, type[EteError]] = {
    'E421': ConfigError, 'E457': ConfigError, 'E476': ConfigError, 'E479': ConfigError,
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
