"""Cuts a batch that was made for several cores into one part per core."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import InputShapeError, Problem
from ..ops import checks

_REMEDY = 'Batch with params["batch_size"] and drop_remainder=True.'


def parts_of(structure: Any, count: int, size: int, where: str, *,
             axes: Sequence[int | None] | None = None, may_be_short: bool = False) -> list[Any]:
    """Cuts the tensors of a structure into consecutive parts.

    Args:
      structure: of dense, sparse and ragged tensors; `None` stays.
      count: how many parts.
      size: samples of each.
      where: for messages.
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
    if isinstance(leaf, tf.SparseTensor):
        found = leaf.dense_shape[0]
    elif isinstance(leaf, tf.RaggedTensor):
        found = leaf.nrows(tf.int64)
    else:
        if leaf is not None and leaf.shape.rank and leaf.shape.dims[0].value not in (
                None, samples):
            raise InputShapeError(dataclasses.replace(
                _problem(where, samples), got=f'shape {leaf.shape}'))
        return leaf
    with tf.control_dependencies([checks.require(
            tf.equal(found, samples), _problem(where, samples), got=tf.strings.as_string(found))]):
        return tf.nest.map_structure(tf.identity, leaf, expand_composites=True)


def _parts(leaf: Any, count: int, size: int, axis: int | None, where: str) -> list[Any]:
    """Returns the parts of a leaf."""
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
