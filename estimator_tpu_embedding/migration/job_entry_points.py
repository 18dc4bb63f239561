"""What a user gives to `check` for each of the two jobs: how it trains from a checkpoint.

A side is any object with a method `train(checkpoint, steps, folder)`. The classes here have it for
the usual kinds of jobs, so that a user only names the parts that the job has anyway.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

from ..checkpoint import file_names, pointer
from ..checkpoint.storage import Storage
from ..errors import CallError, Problem, shown


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

    Example:

        def old():
            import old_job
            return EstimatorSide(old_job.make_estimator, old_job.train_input_fn)

    Attributes:
      make_estimator: takes a model_dir, which it must use, and returns the TPUEstimator.
      input_fn: as for `TPUEstimator.train`.
    """

    make_estimator: Callable[[str], Any]
    input_fn: Callable[..., Any]

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

    Example:

        def new():
            weight = tf.Variable(2.)
            return LoopSide(tf.train.Checkpoint(weight=weight), [1., 2.], weight.assign_add)

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

    Example:

        def new():
            import new_job
            model = new_job.make_model()
            return KerasSide(tf.train.Checkpoint(model=model), model, new_job.make_dataset())

    Attributes:
      checkpoint: a `tf.train.Checkpoint` of the model.
      model: a compiled model of Keras 2.
      batches: the dataset for `model.fit`.
    """

    checkpoint: Any
    model: Any
    batches: Any

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
    return []


def _require(made: int, steps: int) -> None:
    """Makes sure that a side has trained as long as it should: E687 otherwise."""
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
