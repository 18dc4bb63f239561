"""Opens the value that input_fn returned, and draws from it a batch for each core.

It also makes the queues that carry the batches from the infeed thread to the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from ..core.deployment import Deployment, Invocation
from ..errors import InputShapeError, Problem
from ..hosts.backend import QUEUE_CAPACITY
from ..hosts.placement import on
from ..ops import checks
from . import batch_parts, padding

END_OF_INPUT = 'E521'
DATASETS = (tf.data.Dataset, tf.compat.v2.data.Dataset)


class Batch(NamedTuple):
    """The batch of one core for one step.

    Attributes:
      features: of its samples.
      labels: `None` if there are none.
      rows: in a prediction the number of samples, int32; padding follows them. Otherwise `None`.
    """

    features: Any
    labels: Any
    rows: tf.Tensor | None = None


class Input(NamedTuple):
    """The input of one invocation of input_fn.

    Attributes:
      initializer: starts it from its beginning.
      batches: for each core of the invocation its next batch; the cores are served in order.
      has_data: false if these batches are padding only, since the data has ended.
      is_dataset: whether it is a dataset. Otherwise it is made of tensors, and an
        `OutOfRangeError` is its end.
    """

    initializer: tf.Operation
    batches: list[Batch]
    has_data: tf.Tensor
    is_dataset: bool


def open_input(source: Any, deployment: Deployment, invocation: Invocation, *,
               axes: Sequence[int | None] | None = None, padded: bool = False) -> Input:
    """Draws the batches of one step from the value that input_fn returned.

    Args:
      source: a dataset whose elements are `features` or `(features, labels)`. It may also be such
        an element, whose tensors have other values in every step.
      deployment: how an element reaches the cores.
      invocation: of input_fn.
      axes: of features and labels; see `batch_parts.parts_of`.
      padded: for a prediction, whose source must be a dataset. Elements may be smaller, and empty
        ones follow the last one for ever.

    Returns:
      Tensors that fail with E521 when a dataset has ended. So an `OutOfRangeError` from within
      the pipeline is never taken for its end.

    Raises:
      InputShapeError: if elements have another form.
    """
    cores = len(invocation.cores)
    draws = cores if deployment.share == 'elements' else 1
    where = f'input of {invocation.name}'
    initializer, flags = tf.no_op(), [tf.constant(True)]
    is_dataset = isinstance(source, DATASETS)
    if is_dataset:
        initializer, elements = _draw(padding.without_end(source) if padded else source, draws,
                                      where)
        if padded:
            elements, flags = [list(each) for each in zip(*elements)]
    else:
        elements = [source]
    batches = [_batch_of(element) for element in elements]
    if padded:
        batches = [batch._replace(rows=padding.rows_of(
            (batch.features, batch.labels), deployment.input_batch_size, where))
            for batch in batches]
    if deployment.share != 'elements':
        batches = _shared(batches[0], deployment, cores, where, axes)
    # Cores are served in order: if the first has no data, none has.
    return Input(initializer, batches, flags[0], is_dataset)


def _draw(dataset: tf.data.Dataset, draws: int, where: str) -> tuple[tf.Operation, list[Any]]:
    """Returns the initializer of a dataset and its next elements, drawn one after another."""
    iterator = tf.data.make_initializable_iterator(dataset)
    ended = Problem(END_OF_INPUT, where, 'there must be a batch')
    elements: list[Any] = []
    for _ in range(draws):
        served = tf.nest.flatten(elements, expand_composites=True)
        with tf.control_dependencies([part for part in served if isinstance(part, tf.Tensor)]):
            element = iterator.get_next_as_optional()
            present = checks.require(element.has_value(), ended, got=tf.constant('none'))
        with tf.control_dependencies([present]):
            elements.append(element.get_value())
    return iterator.initializer, elements


def _shared(batch: Batch, deployment: Deployment, cores: int, where: str,
            axes: Sequence[int | None] | None) -> list[Batch]:
    """Returns the batch of each core, made of the one batch for all of them."""
    if deployment.has_copies:
        return [batch] * cores
    size, rows = deployment.batch_size_per_core, batch.rows
    parts = batch_parts.parts_of((batch.features, batch.labels), cores, size, where, axes=axes,
                                 may_be_short=rows is not None)
    return [Batch(features, labels,
                  None if rows is None else tf.clip_by_value(rows - index * size, 0, size))
            for index, (features, labels) in enumerate(parts)]


def _batch_of(element: Any) -> Batch:
    if not isinstance(element, tuple):
        return Batch(element, None)
    if len(element) == 2:
        return Batch(*element)
    raise InputShapeError(Problem(
        'E514', 'input_fn', 'elements of its dataset must be features, or a tuple of features '
        'and labels', f'a tuple of {len(element)}'))


def map_tensors(function: Callable[[tf.Tensor], tf.Tensor], structure: Any) -> Any:
    """Returns the structure with `function` applied to every tensor; `None` stays."""
    return tf.nest.map_structure(
        lambda leaf: leaf if leaf is None else function(leaf), structure)


class CoreQueue:
    """Carries the batches of one core, ids apart, from the infeed thread to the step.

    Attributes:
      taken: the operations that take a batch, one per `dequeue`.
    """

    def __init__(self, core: int, example: Batch, device: str = ''):
        """Creates the queue.

        Args:
          core: for the name.
          example: tensors of the structure, shapes and dtypes to carry.
          device: of the core, where batches wait.

        Raises:
          ValueError: if something is not a tensor of static shape.
        """
        self.taken: list[tf.Operation] = []
        self._structure = example
        tensors = _static_tensors(example)
        self._device = device
        with on(device):
            self._queue = tf.queue.FIFOQueue(
                QUEUE_CAPACITY, [tf.bool] + [tensor.dtype for tensor in tensors],
                shapes=[[]] + [tensor.shape for tensor in tensors],
                name=f'batches_of_core_{core}')

    def enqueue(self, batch: Batch) -> tf.Operation:
        """Returns the operation that hands over one batch; it blocks while the queue is full."""
        # A queue must carry something, even where all features are looked up.
        with on(self._device):
            return self._queue.enqueue([tf.constant(True), *_static_tensors(batch)])

    def dequeue(self) -> Batch:
        """Returns the oldest batch."""
        with on(self._device):
            tensors = self._queue.dequeue()
        self.taken += [each.op for each in tf.nest.flatten(tensors)[:1]]
        parts = iter(tensors[1:] if isinstance(tensors, Sequence) else [])
        return map_tensors(lambda _: next(parts), self._structure)

    def close(self) -> tf.Operation:
        """Returns the operation that ends every wait."""
        with on(self._device):
            return self._queue.close(cancel_pending_enqueues=True)


def _static_tensors(batch: Batch) -> list[tf.Tensor]:
    """Returns the tensors of a batch, flat; raises an error if one has no static shape."""
    for name, structure in (('features', batch.features), ('labels', batch.labels)):
        for path, value in _leaves(structure):
            if not isinstance(value, tf.Tensor):
                raise InputShapeError(Problem(
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
    """Returns the leaves of a structure with a name for each; `None` holds none."""
    if structure is None:
        return []
    if isinstance(structure, dict):
        return [(f'"{key}"{"." if name else ""}{name}', leaf) for key in sorted(structure)
                for name, leaf in _leaves(structure[key])]
    return [('', leaf) for leaf in tf.nest.flatten(structure)]
