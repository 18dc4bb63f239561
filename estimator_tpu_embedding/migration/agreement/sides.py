"""What a user gives to `check` for each of the two jobs: how it trains from a checkpoint.

A side is any object with a method `train(checkpoint, steps, folder)`. The classes here have it for
the usual kinds of jobs, so that a user only names the parts that the job has anyway.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

from ...checkpoint import file_names, pointer
from ...checkpoint.files import Storage
from ...errors import CallError, Problem, shown


@runtime_checkable
class Side(Protocol):
    """One of the two jobs that are compared."""

    def train(self, checkpoint: str, steps: int, folder: str) -> object:
        """Trains, and saves what it has trained.

        Args:
          checkpoint: the prefix of the checkpoint that it begins with. It must not be changed.
          steps: how many steps to make, neither fewer nor more; with 0 it only restores.
          folder: an empty directory for the checkpoint that it saves. The file `checkpoint` there
            names it, as `tf.train.Checkpoint.save` and a TPUEstimator write it.

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

    def train(self, checkpoint: str, steps: int, folder: str) -> None:
        """Trains in a model_dir whose newest checkpoint is one elsewhere."""
        import tensorflow as tf
        with Storage(folder) as storage:  # Nothing is copied, and nothing saved beside it.
            pointer.write(storage, os.path.abspath(checkpoint), [])
        if steps:
            self.make_estimator(folder).train(self.input_fn, steps=steps)
            first, last = (tf.train.load_variable(path, 'global_step') for path in (
                checkpoint, tf.train.latest_checkpoint(folder)))
            _require(int(last - first), steps)


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

    def train(self, checkpoint: str, steps: int, folder: str) -> list[str]:
        """Restores, and trains batch by batch."""
        remarks, made = _restore(self.checkpoint, checkpoint), 0
        for made, batch in enumerate(itertools.islice(self.batches, steps), 1):
            self.step(batch)
        _require(made, steps)
        self.checkpoint.save(os.path.join(folder, file_names.OBJECT_BASE))
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

    def train(self, checkpoint: str, steps: int, folder: str) -> list[str]:
        """Restores, and fits the model for one epoch."""
        import tensorflow as tf
        remarks = _restore(self.checkpoint, checkpoint)
        if steps:
            made: list[int] = []
            self.model.fit(self.batches, epochs=1, steps_per_epoch=steps, verbose=0, callbacks=[
                tf.keras.callbacks.LambdaCallback(
                    on_train_batch_end=lambda batch, logs: made.append(batch + 1))])
            _require(max(made, default=0), steps)
        self.checkpoint.save(os.path.join(folder, file_names.OBJECT_BASE))
        return remarks


def problems_of(side: object, where: str) -> list[Problem]:
    """Returns all reasons why an object cannot be a side."""
    if not isinstance(side, Side):
        return [Problem(
            'E682', where, 'it must be an EstimatorSide, a LoopSide, a KerasSide, another object '
            'with a method train(checkpoint, steps, folder), or a function without arguments that '
            'returns one', shown(type(side).__qualname__))]
    if hasattr(side, 'model_fn'):  # It has a method `train`, too.
        return [Problem('E682', where, 'it must say the input beside the Estimator',
                        shown(type(side).__qualname__), 'Return EstimatorSide(make_estimator, '
                        'input_fn), where make_estimator takes a model_dir.')]
    find = getattr(side, 'problems', None)
    return list(find(where)) if callable(find) else []


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


def _require(made: int, steps: int) -> None:
    """Makes sure that a side has trained as long as it should.

    Raises:
      CallError: E687 if not.
    """
    if made != steps:
        raise CallError(Problem('E687', 'a side', f'it must make and save {steps} steps', f'{made}',
                                'Give it more batches; the job must save a checkpoint at its end.'))


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
