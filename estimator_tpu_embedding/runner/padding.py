"""Fills up the batches of a prediction, so that every core gets a full one.

A prediction ends with the data of its last host, and gives exactly one row per sample. So a batch
may have fewer samples than asked for. A host whose data has ended gives empty batches while others
still have data. The model is built for one size, so both are filled up with zeros. Ids to look up
are not filled up: padding has none.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import InputShapeError, Problem
from ..ops import checks


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

    Its evaluation fails if the leaves of the batch have different numbers of samples, or too many.

    Args:
      structure: features and labels.
      most: the number of samples that were asked for.
      where: for messages.

    Raises:
      InputShapeError: for a scalar.
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
