"""Reads the weights of ids, and checks that they are finite and at the places of the ids."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from ..errors import InputShapeError, Problem
from .checks import first_values, masked, require


def sparse(where: str, ids: tf.SparseTensor, weights: object) -> tf.Tensor | None:
    """Returns the weight of each id, in the order that `tf.sparse.reorder` gives the ids.

    Args:
      where: the feature, for messages.
      ids: of any rank.
      weights: a SparseTensor of numbers at the same indices; `None` is 1 for each.

    Returns:
      float32 `[n]`, or `None` if `weights` is `None`. It fails to evaluate, with E518, for other
      indices or a weight that is not finite.

    Raises:
      InputShapeError: for another type, E517, or shapes that are known to differ, E518.
    """
    if weights is None:
        return None
    _require_numbers(where, weights, tf.SparseTensor)
    assert isinstance(weights, tf.SparseTensor)
    numbers = _checked(where, weights.values, weights.indices, ids.values, ids.indices)
    return tf.sparse.reorder(tf.SparseTensor(ids.indices, numbers, ids.dense_shape)).values


def ragged(where: str, ids: tf.RaggedTensor, weights: object) -> tf.Tensor | None:
    """Returns the weight of each id, in the order of the ids.

    Args:
      where: the feature, for messages.
      ids: of rank 2.
      weights: a RaggedTensor of numbers with the same rows; `None` is 1 for each.

    Returns:
      As `sparse`.

    Raises:
      InputShapeError: as `sparse`.
    """
    if weights is None:
        return None
    _require_numbers(where, weights, tf.RaggedTensor)
    assert isinstance(weights, tf.RaggedTensor)
    if not weights.shape.is_compatible_with(ids.shape):
        raise InputShapeError(_elsewhere(where, f'{weights.shape} for {ids.shape}'))
    return _checked(where, weights.values, tf.cast(weights.row_splits, tf.int64), ids.values,
                    tf.cast(ids.row_splits, tf.int64))


def _require_numbers(where: str, weights: object, kind: type) -> None:
    dtype = getattr(weights, 'dtype', None)
    if not isinstance(weights, kind) or dtype is None or not (
            dtype.is_floating or dtype.is_integer):
        raise InputShapeError(Problem(
            'E517', where, 'weights must be a SparseTensor or RaggedTensor of numbers',
            f'{type(weights).__name__} {getattr(dtype, "name", "")}'.strip()))


def _elsewhere(where: str, got: str = '') -> Problem:
    return Problem('E518', where, 'weights must be at the places of the ids', got)


def _checked(where: str, weights: tf.Tensor, places: tf.Tensor, ids: tf.Tensor,
             places_of_ids: tf.Tensor) -> tf.Tensor:
    """Returns weights as float32; they fail to evaluate unless finite and at the ids' places.

    Args:
      where: the feature, for messages.
      weights: numbers `[n]`.
      places: the places of the weights, in any form whose first dimension may be compared.
      ids: `[n]`.
      places_of_ids: the places of the ids, in the same form.
    """
    if not places.shape.is_compatible_with(places_of_ids.shape):
        raise InputShapeError(_elsewhere(
            where, f'indices of shape {places.shape} for those of shape {places_of_ids.shape}'))
    sizes = [tf.size(one) for one in (weights, ids)]
    same = tf.equal(*sizes)
    if places is not places_of_ids:
        rows = [tf.shape(one)[0] for one in (places, places_of_ids)]
        common = tf.minimum(*rows)
        same &= tf.equal(*rows) & tf.reduce_all(
            tf.equal(places[:common], places_of_ids[:common]))
    numbers = tf.cast(weights, tf.float32)
    finite = tf.math.is_finite(numbers)
    with tf.control_dependencies([
            require(same, _elsewhere(where), got=lambda: tf.strings.join([
                tf.strings.as_string(sizes[0]), ' weights for ',
                tf.strings.as_string(sizes[1]), ' ids'])),
            require(finite, Problem('E518', where, 'weights must be finite'),
                    got=lambda: first_values(masked(numbers, ~finite)))]):
        return tf.identity(_as_many(numbers, ids))


def _as_many(numbers: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Returns as many numbers as ids, with zeros at the end where some are missing.

    A gathered check fails later, so what follows must run with any number of weights until then.
    """
    if numbers.shape.is_fully_defined() and numbers.shape == ids.shape:
        return numbers
    return tf.concat([numbers, tf.zeros_like(ids, tf.float32)], 0)[:tf.size(ids)]
