"""Opens the value that input_fn returned, and draws from it a batch for each core.

A batch for several cores is cut into parts. The batches of a prediction are filled up, so that
every core gets a full one: a prediction ends with the data of its last host, and gives exactly one
row per sample. So a batch may have fewer samples than asked for. A host whose data has ended gives
empty batches while others still have data. The model is built for one size, so both are filled up
with zeros. Ids to look up are not filled up: padding has none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.deployment import Deployment, Invocation
from ..errors import InputShapeError, Problem
from ..hosts.backend import QUEUE_CAPACITY, PlacedQueue
from ..hosts.placement import on
from ..hosts.untuned_datasets import without_tuner
from ..ops import checks

END_OF_INPUT = 'E521'
DATASETS = (tf.data.Dataset, tf.compat.v2.data.Dataset)


class Batch(NamedTuple):
    """The batch of one core for one step.

    Attributes:
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
      tuned_initializer: starts it so, too, as TensorFlow starts a dataset by default. The states of
        its iterator have names that depend on that.
      batches: for each core of the invocation its next batch; the cores are served in order.
      has_data: false if these batches are padding only, since the data has ended.
      is_dataset: whether it is a dataset. Otherwise it is made of tensors, and an
        `OutOfRangeError` is its end.
    """

    initializer: tf.Operation
    tuned_initializer: tf.Operation
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
      axes: of features and labels; see `parts_of`.
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
    initializer = tuned = tf.no_op()
    flags = [tf.constant(True)]
    is_dataset = isinstance(source, DATASETS)
    if is_dataset:
        initializer, tuned, elements = _draw(
            without_end(source) if padded else source, draws, where)
        if padded:
            elements, flags = [list(each) for each in zip(*elements)]
    else:
        elements = [source]
    batches = [_batch_of(element) for element in elements]
    if padded:
        batches = [batch._replace(rows=rows_of(
            (batch.features, batch.labels), deployment.input_batch_size, where))
            for batch in batches]
    if deployment.share != 'elements':
        batches = _shared(batches[0], deployment, cores, where, axes)
    # Cores are served in order: if the first has no data, none has.
    return Input(initializer, tuned, batches, flags[0], is_dataset)


def _draw(dataset: tf.data.Dataset, draws: int, where: str
          ) -> tuple[tf.Operation, tf.Operation, list[Any]]:
    """Returns both initializers of a dataset and its next elements, drawn one after another."""
    iterator = tf.data.make_initializable_iterator(dataset)
    initializer = _tf.start_with(iterator, without_tuner(dataset))
    ended = Problem(END_OF_INPUT, where, 'there must be a batch')
    elements: list[Any] = []
    for _ in range(draws):
        served = tf.nest.flatten(elements, expand_composites=True)
        with tf.control_dependencies([part for part in served if isinstance(part, tf.Tensor)]):
            element = iterator.get_next_as_optional()
            present = checks.require(element.has_value(), ended, got=tf.constant('none'))
        with tf.control_dependencies([present]):
            elements.append(element.get_value())
    return initializer, iterator.initializer, elements


def _shared(batch: Batch, deployment: Deployment, cores: int, where: str,
            axes: Sequence[int | None] | None) -> list[Batch]:
    """Returns the batch of each core, made of the one batch for all of them."""
    if deployment.has_copies:
        return [batch] * cores
    size, rows = deployment.batch_size_per_core, batch.rows
    parts = parts_of((batch.features, batch.labels), cores, size, where, axes=axes,
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
    """Carries the batches of one core, ids apart, from the infeed thread to the step."""

    def __init__(self, core: int, example: Batch, device: str = ''):
        """Creates the queue, on the device of the core, for batches like `example`."""
        self._structure = example
        with on(device):  # A queue must carry something, even where all features are looked up.
            self._flag = tf.constant(True)
        tensors = [self._flag, *_static_tensors(example)]
        self._queue = PlacedQueue(
            QUEUE_CAPACITY, [tensor.dtype for tensor in tensors], [device] * len(tensors),
            f'batches_of_core_{core}', [tensor.shape for tensor in tensors])
        self.close = self._queue.close

    def enqueue(self, batch: Batch) -> tf.Operation:
        """Returns the operation that hands over one batch; it blocks while the queue is full."""
        return self._queue.enqueue([self._flag, *_static_tensors(batch)])

    def dequeue(self) -> tuple[Batch, tf.Operation]:
        """Returns the oldest batch, and the operation that takes it."""
        flag, *tensors = self._queue.dequeue()
        parts = iter(tensors)
        return map_tensors(lambda _: next(parts), self._structure), flag.op


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


_REMEDY = 'Batch with params["batch_size"] and drop_remainder=True.'


def parts_of(structure: Any, count: int, size: int, where: str, *,
             axes: Sequence[int | None] | None = None, may_be_short: bool = False) -> list[Any]:
    """Cuts the tensors of a structure into consecutive parts.

    Args:
      structure: of dense, sparse and ragged tensors; `None` stays.
      axes: per leaf the dimension that is cut. If an entry is `None`, every part gets the whole
        leaf; if `axes` is `None`, every leaf is cut along dimension 0.
      may_be_short: whether there may be fewer than `count * size` samples. The last parts then
        have fewer samples or none.

    Raises:
      InputShapeError: for a dimension that is known not to fit.
    """
    leaves = tf.nest.flatten(structure)
    axes = [0] * len(leaves) if axes is None else list(axes)
    if any(axis is not None and axis < 0 for axis in axes):
        raise InputShapeError(Problem('E511', 'batch_axis', 'a dimension must be >= 0', str(axes)))
    if len(axes) != len(leaves):
        raise InputShapeError(Problem(
            'E511', 'batch_axis', f'it must have one entry per tensor of features and labels, '
            f'{len(leaves)} in all', f'{len(axes)}'))
    if not may_be_short:
        leaves = [_full(leaf, count * size, where) if axis == 0 else leaf
                  for leaf, axis in zip(leaves, axes)]
    cut = [_parts(leaf, count, size, axis, where) for leaf, axis in zip(leaves, axes)]
    return [tf.nest.pack_sequence_as(structure, [leaf[part] for leaf in cut])
            for part in range(count)]


def _problem(where: str, samples: int) -> Problem:
    return Problem('E511', where, f'the batch for all its cores must have {samples} samples',
                   remedy=_REMEDY)


def _full(leaf: Any, samples: int, where: str) -> Any:
    """Returns a leaf after a check that it has so many samples, now or when it is evaluated."""
    if not isinstance(leaf, (tf.SparseTensor, tf.RaggedTensor)):
        if leaf is not None and leaf.shape.rank and leaf.shape.dims[0].value not in (
                None, samples):
            raise InputShapeError(dataclasses.replace(
                _problem(where, samples), got=f'shape {leaf.shape}'))
        return leaf
    found = _leading(leaf, where)
    with tf.control_dependencies([checks.require(
            tf.equal(found, samples), _problem(where, samples), got=tf.strings.as_string(found))]):
        return tf.nest.map_structure(tf.identity, leaf, expand_composites=True)


def _parts(leaf: Any, count: int, size: int, axis: int | None, where: str) -> list[Any]:
    if leaf is None or axis is None:
        return [leaf] * count
    if isinstance(leaf, tf.SparseTensor):
        return [_sparse_part(leaf, part * size, size) for part in range(count)]
    if not isinstance(leaf, tf.RaggedTensor):
        if not leaf.shape.rank or leaf.shape.rank <= axis:
            raise InputShapeError(Problem(
                'E511', where, f'what is cut along dimension {axis} must have it',
                f'shape {leaf.shape}', _REMEDY))
        length = leaf.shape.dims[axis].value
        if axis and (length is None or length % count):  # Nothing else tells how long a part is.
            raise InputShapeError(Problem(
                'E511', where, f'dimension {axis} must be a multiple of {count}',
                f'shape {leaf.shape}'))
        # TensorFlow has slices of quantized numbers, but cannot split them.
        if axis or length == count * size and not leaf.dtype.is_quantized:
            return list(tf.split(leaf, count, axis)) if count > 1 else [leaf]
    return [leaf[part * size:(part + 1) * size] for part in range(count)]


def _sparse_part(leaf: tf.SparseTensor, first: int, size: int) -> tf.SparseTensor:
    """Returns the samples `[first, first + size)`, or as many of them as there are."""
    samples = leaf.indices[:, 0]
    kept = tf.sparse.retain(leaf, (samples >= first) & (samples < first + size))
    shift = tf.concat([[first], tf.zeros_like(leaf.dense_shape[1:])], 0)
    rows = tf.clip_by_value(leaf.dense_shape[0] - first, 0, size)
    return tf.SparseTensor(kept.indices - shift, kept.values,
                           tf.concat([[rows], leaf.dense_shape[1:]], 0))


def without_end(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns a dataset of `(element, True)`, and of `(empty element, False)` for ever after it."""
    empty = tf.nest.map_structure(_empty, dataset.element_spec)
    flags = [tf.data.Dataset.from_tensors(flag).repeat() for flag in (True, False)]
    return tf.data.Dataset.zip((dataset, flags[0])).concatenate(
        tf.data.Dataset.zip((tf.data.Dataset.from_tensors(empty).repeat(), flags[1])))


def _empty(spec: Any) -> Any:
    """Returns the tensor that a batch without samples holds."""
    if isinstance(spec, tf.RaggedTensorSpec):
        inner = [size or 0 for size in (spec.shape.as_list() or [])[spec.ragged_rank + 1:]]
        return tf.RaggedTensor.from_nested_row_splits(
            tf.zeros([0, *inner], spec.dtype),
            [tf.zeros([1], spec.row_splits_dtype)] * spec.ragged_rank)
    if isinstance(spec, (tf.SparseTensorSpec, tf.TensorSpec)):
        sizes = [0] if spec.shape.rank is None else [0] * bool(spec.shape.rank) + [
            size or 0 for size in spec.shape.as_list()[1:]]
        if isinstance(spec, tf.TensorSpec):
            return tf.zeros(sizes, spec.dtype)
        return tf.SparseTensor(tf.zeros([0, len(sizes)], tf.int64), tf.zeros([0], spec.dtype),
                               tf.constant(sizes, tf.int64))
    if spec == tf.data.Dataset.from_tensors((0, None)).element_spec[1]:
        return None
    raise InputShapeError(Problem(
        'E514', 'input_fn', 'a dataset to predict from must hold tensors, sparse or ragged ones '
        'among them', str(spec)))


def rows_of(structure: Any, most: int, where: str) -> tf.Tensor:
    """Returns the number of samples of a batch, int32.

    Its evaluation fails if the leaves differ in that, or if there are more than `most`.
    """
    leaves = [leaf for leaf in tf.nest.flatten(structure) if leaf is not None]
    counts = tf.stack([_leading(leaf, where) for leaf in leaves])
    shown = checks.first_values(counts, len(leaves))
    with tf.control_dependencies([
            checks.require(tf.equal(counts, counts[0]), Problem(
                'E511', where, 'all features and labels of a batch must have as many samples'),
                got=shown),
            checks.require(counts <= most, Problem(
                'E511', where, 'The real batch size should not be greater than batch_size, '
                f'which is {most}', remedy='Batch with params["batch_size"].'), got=shown)]):
        return tf.identity(counts[0])


def _leading(leaf: Any, where: str) -> tf.Tensor:
    if isinstance(leaf, tf.RaggedTensor):
        return tf.cast(leaf.nrows(), tf.int32)
    if isinstance(leaf, tf.SparseTensor):
        return tf.cast(leaf.dense_shape[0], tf.int32)
    if leaf.shape.rank == 0:
        raise InputShapeError(Problem(
            'E511', where, 'the first dimension of every tensor must be that of samples',
            f'the scalar {leaf.name}', 'Batch the dataset with params["batch_size"].'))
    return tf.shape(leaf)[0]


def filled(structure: Any, size: int) -> Any:
    """Returns a structure whose dense tensors have `size` samples; missing ones are zeros."""
    return tf.nest.map_structure(lambda leaf: _filled(leaf, size), structure)


def _filled(leaf: Any, size: int) -> Any:
    if not isinstance(leaf, tf.Tensor) or not leaf.shape.rank:
        return leaf
    leaf = leaf[:size]  # If there are more, `rows_of` fails, sooner or later.
    missing = size - tf.shape(leaf)[0]
    padded = tf.pad(leaf, [[0, missing]] + [[0, 0]] * (leaf.shape.rank - 1))
    padded.set_shape([size] + leaf.shape.as_list()[1:])
    return padded
