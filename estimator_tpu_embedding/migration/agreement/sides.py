"""What a user gives to `check` for each of the two jobs: how it trains from a checkpoint.

A side is any object with a method `train(checkpoint, steps)`. The classes here have it for the
usual kinds of jobs, so that a user only names the parts that the job has anyway.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

from ...checkpoint import pointer
from ...checkpoint.files import Storage
from ...errors import Problem, shown
from .inputs import Tell, seen_in_batches, seen_in_dataset, seen_in_input_fn

_ONE_MORE = 1
"""A pipelined TPUEmbedding of TF2 makes the update of a step in the step after it."""


@runtime_checkable
class Side(Protocol):
    """One of the two jobs that are compared.

    Its tables must train in the engine of this package. That is so for `TPUEstimator`, the
    `TPUEmbedding` of TF1, `tf.tpu.experimental.embedding.TPUEmbedding`, and the Keras layer of TFRS
    under a `TPUStrategy`.
    """

    def train(self, checkpoint: str, steps: int) -> object:
        """Trains.

        Args:
          checkpoint: the prefix of the checkpoint that it begins with. It must not be changed.
          steps: how many steps to make; more do no harm, and are not compared.

        Returns:
          Nothing, or a list of remarks for the report.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class EstimatorSide:
    """A job in its TF1 form: a TPUEstimator and its input.

    >>> side = EstimatorSide(make_estimator=print, input_fn=None)
    >>> for problem in side.problems('side A'):
    ...     print(problem)
    E682 side A: input_fn: it must be a function; got nothing.

    Attributes:
      make_estimator: takes a model_dir, which it must use, and returns the TPUEstimator.
      input_fn: as for `TPUEstimator.train`.
    """

    make_estimator: Callable[[str], Any]
    input_fn: Callable[..., Any]

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields a problem for each part that is missing or of a wrong kind."""
        yield from _uncallable(self, where, 'make_estimator', 'input_fn')

    def seen_by(self, tell: Tell) -> EstimatorSide:
        """Returns the side with input that is told."""
        return dataclasses.replace(self, input_fn=seen_in_input_fn(self.input_fn, tell))

    def train(self, checkpoint: str, steps: int) -> None:
        """Trains from a checkpoint in a directory that is deleted afterwards."""
        with tempfile.TemporaryDirectory() as model_dir:
            with Storage(model_dir) as storage:  # Nothing is copied, and nothing saved beside it.
                pointer.write(storage, os.path.abspath(checkpoint), [])
            self.make_estimator(model_dir).train(self.input_fn, steps=steps)


@dataclasses.dataclass(frozen=True, slots=True)
class LoopSide:
    """A job in its TF2 form: a loop of the user's own.

    >>> import tensorflow as tf
    >>> weight = tf.Variable(2.)
    >>> side = LoopSide(tf.train.Checkpoint(weight=weight), [1., 2.], weight.assign_add)
    >>> list(side.problems('side B'))
    []

    Attributes:
      checkpoint: a `tf.train.Checkpoint` of everything that the steps read.
      batches: an iterable of batches, such as a dataset. It begins where the data of the other side
        begin.
      step: takes a batch and trains one step. A `tf.function` that is a method does not keep its
        object; `lambda batch: trainer.train(batch)` does.
    """

    checkpoint: Any
    batches: Iterable[Any]
    step: Callable[[Any], object]

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields a problem for each part that is missing or of a wrong kind."""
        yield from _not_restorable(self, where)
        if not hasattr(self.batches, '__iter__'):
            yield _problem(where, 'batches', 'an iterable of batches', self.batches)
        yield from _uncallable(self, where, 'step')

    def seen_by(self, tell: Tell) -> LoopSide:
        """Returns the side with input that is told."""
        return dataclasses.replace(self, batches=seen_in_batches(self.batches, tell))

    def train(self, checkpoint: str, steps: int) -> list[str]:
        """Restores, and trains batch by batch."""
        remarks = _restore(self.checkpoint, checkpoint)
        for batch in itertools.islice(self.batches, steps + _ONE_MORE):
            self.step(batch)
        return remarks


@dataclasses.dataclass(frozen=True, slots=True)
class KerasSide:
    """A job in its TF2 form: a compiled model of Keras, such as one with the layer of TFRS.

    >>> import tensorflow as tf
    >>> side = KerasSide(tf.train.Checkpoint(), model=tf.Module(), batches=[])
    >>> for problem in side.problems('side B'):
    ...     print(problem)
    E682 side B: model: it must be a compiled model of Keras; got Module.

    Attributes:
      checkpoint: a `tf.train.Checkpoint` of the model.
      model: a compiled model of Keras 2.
      batches: the dataset for `model.fit`.
    """

    checkpoint: Any
    model: Any
    batches: Any

    def problems(self, where: str) -> Iterator[Problem]:
        """Yields a problem for each part that is missing or of a wrong kind."""
        yield from _not_restorable(self, where)
        if not callable(getattr(self.model, 'fit', None)):
            yield _problem(where, 'model', 'a compiled model of Keras', self.model)
        if self.batches is None:
            yield _problem(where, 'batches', 'a dataset', self.batches)

    def seen_by(self, tell: Tell) -> KerasSide:
        """Returns the side with input that is told, if it is no distributed dataset."""
        return dataclasses.replace(self, batches=seen_in_dataset(self.batches, 0, tell))

    def train(self, checkpoint: str, steps: int) -> list[str]:
        """Restores, and fits the model for one epoch."""
        remarks = _restore(self.checkpoint, checkpoint)
        self.model.fit(self.batches, epochs=1, steps_per_epoch=steps + _ONE_MORE, verbose=0)
        return remarks


def problems_of(side: object, where: str) -> list[Problem]:
    """Returns all reasons why an object cannot be a side."""
    if not isinstance(side, Side):
        return [Problem(
            'E682', where, 'it must be an EstimatorSide, a LoopSide, a KerasSide, another object '
            'with a method train(checkpoint, steps), or a function without arguments that returns '
            'one', shown(type(side).__qualname__))]
    if hasattr(side, 'model_fn'):  # It has a method `train`, too.
        return [Problem('E682', where, 'it must say the input beside the Estimator',
                        shown(type(side).__qualname__), 'Return EstimatorSide(make_estimator, '
                        'input_fn), where make_estimator takes a model_dir.')]
    find = getattr(side, 'problems', None)
    return list(find(where)) if callable(find) else []


def seen_by(side: Side, tell: Tell) -> Side:
    """Returns a side whose input beside the ids is told, as far as that is possible."""
    see = getattr(side, 'seen_by', None)
    found = see(tell) if callable(see) else side
    return found if isinstance(found, Side) else side


def _uncallable(side: object, where: str, *parts: str) -> Iterator[Problem]:
    for part in parts:
        if not callable(getattr(side, part)):
            yield _problem(where, part, 'a function', getattr(side, part))


def _not_restorable(side: Any, where: str) -> Iterator[Problem]:
    if not callable(getattr(side.checkpoint, 'read', None)):
        yield _problem(where, 'checkpoint', 'a tf.train.Checkpoint', side.checkpoint)


def _problem(where: str, part: str, wanted: str, got: object) -> Problem:
    return Problem('E682', f'{where}: {part}', f'it must be {wanted}',
                   'nothing' if got is None else shown(type(got).__qualname__))


def _restore(objects: Any, checkpoint: str) -> list[str]:
    """Restores objects; returns a remark if the checkpoint lacked values of some that exist now.

    Keras makes further variables in the first step, such as those of its optimizer's options.
    """
    status = objects.read(checkpoint).expect_partial()
    try:
        status.assert_existing_objects_matched()
    except AssertionError as error:
        return [f'not restored, so it begins with its initial value: {shown(error, 300)}']
    return []
