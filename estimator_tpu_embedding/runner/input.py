"""What input_fn returned -> one batch per core, and the queue that carries it there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from ..errors import InputError, Problem
from ..hosts.backend import QUEUE_CAPACITY
from ..ops import checks
from . import padding

END_OF_INPUT = 'E521'


class Batch(NamedTuple):
    """What one core gets for one step.

    Attributes:
      features: of its samples.
      labels: `None` if there are none.
      rows: in a prediction how many samples there are, int32; padding follows them. Else `None`.
    """

    features: Any
    labels: Any
    rows: tf.Tensor | None = None


class HostInput(NamedTuple):
    """The input of one host.

    Attributes:
      initializer: starts the dataset from its beginning.
      batches: for each core of the host its next batch; the cores are served in order.
      has_data: false where these batches are padding only, since the data has ended.
    """

    initializer: tf.Operation
    batches: list[Batch]
    has_data: tf.Tensor


def open_dataset(dataset: tf.data.Dataset, host: int, cores: int, *,
                 padded_from: int | None = None) -> HostInput:
    """Draws one element per core and step from the dataset of a host.

    Args:
      dataset: its elements are `features` or `(features, labels)` of one core.
      host: for messages.
      cores: how many cores the host feeds.
      padded_from: `None`, or the batch size of a prediction: then elements may be smaller, and
        after the last one come empty ones for ever.

    Returns:
      Tensors that fail with E521 when the data has ended, so that an `OutOfRangeError` from
      within the pipeline is never taken for its end.

    Raises:
      InputError: if elements have another form.
    """
    if padded_from is not None:
        dataset = padding.without_end(dataset)
    iterator = tf.data.make_initializable_iterator(dataset)
    ended = Problem(END_OF_INPUT, f'input of host {host}', 'there must be a batch')
    batches: list[Batch] = []
    flags: list[tf.Tensor] = []
    for _ in range(cores):
        served = tf.nest.flatten(batches, expand_composites=True)
        with tf.control_dependencies([part for part in served if isinstance(part, tf.Tensor)]):
            element = iterator.get_next_as_optional()
            present = checks.require(element.has_value(), ended, got=tf.constant('none'))
        with tf.control_dependencies([present]):
            value = element.get_value()
        if padded_from is not None:
            value, flag = value
            flags.append(flag)
        batch = _batch_of(value)
        if padded_from is not None:
            batch = batch._replace(rows=padding.rows_of(
                (batch.features, batch.labels), padded_from, f'input of host {host}'))
        batches.append(batch)
    # Cores are served in order, so where the first has no data none has.
    return HostInput(iterator.initializer, batches, flags[0] if flags else tf.constant(True))


def _batch_of(element: Any) -> Batch:
    if not isinstance(element, tuple):
        return Batch(element, None)
    if len(element) == 2:
        return Batch(*element)
    raise InputError(Problem(
        'E514', 'input_fn', 'elements of its dataset must be features, or a tuple of features '
        'and labels', f'a tuple of {len(element)}'))


def map_tensors(function: Callable[[tf.Tensor], tf.Tensor], structure: Any) -> Any:
    """The structure with `function` applied to every tensor; `None` stays."""
    return tf.nest.map_structure(
        lambda leaf: leaf if leaf is None else function(leaf), structure)


class CoreQueue:
    """Carries the batches of one core, ids apart, from the infeed thread to the step."""

    def __init__(self, core: int, example: Batch):
        """Creates the queue.

        Args:
          core: for the name.
          example: tensors of the structure, shapes and dtypes to carry.

        Raises:
          InputError, ValueError: if something is not a tensor of static shape.
        """
        self._structure = example
        tensors = _static_tensors(example)
        self._queue = tf.queue.FIFOQueue(
            QUEUE_CAPACITY, [tf.bool] + [tensor.dtype for tensor in tensors],
            shapes=[[]] + [tensor.shape for tensor in tensors], name=f'batches_of_core_{core}')

    def enqueue(self, batch: Batch) -> tf.Operation:
        """Hands over one batch; blocks while the queue is full."""
        # A queue must carry something, even where all features are looked up.
        return self._queue.enqueue([tf.constant(True), *_static_tensors(batch)])

    def dequeue(self) -> Batch:
        """The oldest batch."""
        tensors = self._queue.dequeue()
        parts = iter(tensors[1:] if isinstance(tensors, Sequence) else [])
        return map_tensors(lambda _: next(parts), self._structure)

    def close(self) -> tf.Operation:
        """Ends every wait."""
        return self._queue.close(cancel_pending_enqueues=True)


def _static_tensors(batch: Batch) -> list[tf.Tensor]:
    """The tensors of a batch, flat, all of static shape."""
    for name, structure in (('features', batch.features), ('labels', batch.labels)):
        for path, value in _leaves(structure):
            if not isinstance(value, tf.Tensor):
                raise InputError(Problem(
                    'E515', f'{name} {path}'.strip(), 'what no embedding column looks up must '
                    'be a dense tensor', type(value).__name__,
                    'Add its column to the embedding spec, or make it dense in input_fn.'))
            if not value.shape.is_fully_defined():
                raise ValueError(
                    f'The {name} to the model returned by input_fn must have static shape. '
                    f'Tensor: {value}.  {path}: use dataset.batch(params["batch_size"], '
                    'drop_remainder=True).')
    return [tensor for tensor in tf.nest.flatten(batch) if tensor is not None]


def _leaves(structure: Any) -> list[tuple[str, Any]]:
    """The leaves of a structure with a name for each; `None` holds none."""
    if structure is None:
        return []
    if isinstance(structure, dict):
        return [(f'"{key}"{"." if name else ""}{name}', leaf) for key in sorted(structure)
                for name, leaf in _leaves(structure[key])]
    return [('', leaf) for leaf in tf.nest.flatten(structure)]
