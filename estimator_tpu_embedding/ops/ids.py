"""Dense, sparse and ragged tensors of ids -> `IdBatch`, checked and counted."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow.compat.v1 as tf

from ..errors import InputError, InputShapeError, Problem
from .checks import first_values, require

MISSING = -1
"""What a vocabulary maps an unknown word to: no row, zeros, counted."""


class IdBatch(NamedTuple):
    """The ids of one feature on one core for one step.

    Attributes:
      samples: int32 `[n]`, the sample each id belongs to; non-decreasing, in
        `[0, num_samples)`.
      ids: int64 `[n]`, each in `[0, vocabulary_size)` once `check` has run.
      num_samples: samples on this core, known when the graph is built.
    """

    samples: tf.Tensor
    ids: tf.Tensor
    num_samples: int


class IdCounts(NamedTuple):
    """What became of the ids of one feature in one batch; int64 scalars.

    Attributes:
      seen: ids that were looked up.
      missing: places without an id: zeros of a dense tensor of rank >= 2, unknown words.
    """

    seen: tf.Tensor
    missing: tf.Tensor


def value_to_batch(where: str, value: object, *, num_samples: int, combiner: str | None
                   ) -> tuple[IdBatch, tf.Tensor]:
    """Reads the ids of one feature from what `input_fn` returned.

    Args:
      where: which feature on which core, for messages.
      value: int32 or int64; a dense tensor `[B]` or `[B, ...]`, a `SparseTensor` of rank >= 2
        or a `RaggedTensor` of rank 2, with `B == num_samples`. A dense tensor of rank >= 2 of
        a table with a combiner holds 0 where an id is missing, as on the hardware; in a dense
        tensor of rank 1 every id counts.
      num_samples: samples per core.
      combiner: the table's. `None` wants exactly one id per sample in a dense tensor.

    Returns:
      The batch, unchecked, and the number of missing ids, an int64 scalar.

    Raises:
      InputError: for another type.
      InputShapeError: for a shape that is known to be wrong.
    """
    if isinstance(value, tf.RaggedTensor):
        value = value.to_sparse()
    if not isinstance(value, (tf.Tensor, tf.SparseTensor)):
        raise InputError(Problem('E510', where, 'ids must come as a Tensor, SparseTensor or '
                                 'RaggedTensor', type(value).__name__))
    if value.dtype not in (tf.int32, tf.int64):
        raise InputError(Problem('E510', where, 'ids must be int32 or int64', value.dtype.name))
    first = value.shape.dims[0].value if value.shape.rank else None
    if value.shape.rank == 0 or first not in (None, num_samples):
        raise InputShapeError(Problem(
            'E511', where, f'the batch must have {num_samples} samples per core',
            f'shape {value.shape}', 'Batch with params["batch_size"].'))
    if isinstance(value, tf.SparseTensor):
        return _from_sparse(where, value, num_samples)
    if combiner is None:
        return _one_each(where, value, num_samples)
    return _from_dense(where, value, num_samples)


def _from_sparse(where: str, value: tf.SparseTensor, num_samples: int
                 ) -> tuple[IdBatch, tf.Tensor]:
    value = tf.sparse.reorder(value)
    samples = value.indices[:, 0]
    bad = tf.boolean_mask(samples, (samples < 0) | (samples >= num_samples))
    remedy = 'Batch with params["batch_size"] and drop_remainder=True.'
    with tf.control_dependencies([
            require(tf.equal(value.dense_shape[0], num_samples),
                    Problem('E511', where, f'the batch must have {num_samples} samples per core',
                            remedy=remedy), got=tf.strings.as_string(value.dense_shape[0])),
            require(tf.equal(tf.size(bad), 0),
                    Problem('E511', where, f'samples must be in [0, {num_samples})',
                            remedy=remedy), got=first_values(bad))]):
        samples = tf.cast(samples, tf.int32)
    return (IdBatch(samples, tf.cast(value.values, tf.int64), num_samples),
            tf.zeros([], tf.int64))


def _one_each(where: str, value: tf.Tensor, num_samples: int) -> tuple[IdBatch, tf.Tensor]:
    if value.shape.num_elements() not in (None, num_samples):
        raise InputShapeError(Problem(
            'E512', where, 'a table with combiner None takes one id per sample',
            f'shape {value.shape}', 'Set a combiner, or pass a tensor of shape [batch].'))
    ids = tf.ensure_shape(tf.reshape(tf.cast(value, tf.int64), [-1]), [num_samples])
    return IdBatch(tf.range(num_samples), ids, num_samples), tf.zeros([], tf.int64)


def _from_dense(where: str, value: tf.Tensor, num_samples: int) -> tuple[IdBatch, tf.Tensor]:
    if value.shape.rank is None:
        raise InputShapeError(Problem('E511', where, 'the rank of dense ids must be known',
                                      'unknown rank', 'Set the shape in input_fn.'))
    if value.shape.rank == 1:
        return _one_each(where, value, num_samples)
    value = tf.reshape(tf.ensure_shape(value, [num_samples] + value.shape.as_list()[1:]),
                       [num_samples, -1])
    places = tf.where(tf.not_equal(value, 0))
    ids = tf.cast(tf.gather_nd(value, places), tf.int64)
    missing = tf.size(value, out_type=tf.int64) - tf.size(ids, out_type=tf.int64)
    return IdBatch(tf.cast(places[:, 0], tf.int32), ids, num_samples), missing


def drop_missing(batch: IdBatch, missing: tf.Tensor) -> tuple[IdBatch, tf.Tensor]:
    """Removes the ids that stand for unknown words.

    Args:
      batch: ids, among them `MISSING`.
      missing: the number of ids already missing, an int64 scalar.

    Returns:
      The other ids, and the new number.
    """
    known = tf.not_equal(batch.ids, MISSING)
    kept = IdBatch(tf.boolean_mask(batch.samples, known), tf.boolean_mask(batch.ids, known),
                   batch.num_samples)
    return kept, missing + tf.size(batch.ids, out_type=tf.int64) - tf.size(
        kept.ids, out_type=tf.int64)


def check(where: str, batch: IdBatch, missing: tf.Tensor, *, vocabulary_size: int
          ) -> tuple[IdBatch, IdCounts]:
    """Makes sure that every id has a row.

    Args:
      where: which feature on which core, for messages.
      batch: the ids.
      missing: the number of ids that were missing, an int64 scalar.
      vocabulary_size: rows of the table.

    Returns:
      A batch that fails to evaluate, with E501, if an id is outside
      `[0, vocabulary_size)`; ids are compared before any cast, so 2**32 + 1 is never row 1.
    """
    wrong = (batch.ids < 0) | (batch.ids >= vocabulary_size)
    bad = tf.boolean_mask(batch.ids, wrong)
    got = tf.strings.join([first_values(bad), ' in sample ',
                           first_values(tf.boolean_mask(batch.samples, wrong)), ' (',
                           tf.strings.as_string(tf.size(bad)), ' in all)'])
    rule = Problem('E501', where, f'ids must be in [0, {vocabulary_size}), the vocabulary size '
                   'of its table', remedy='Clean the data or raise the number of buckets.')
    with tf.control_dependencies([require(tf.equal(tf.size(bad), 0), rule, got=got)]):
        batch = batch._replace(ids=tf.identity(batch.ids))
    return batch, IdCounts(seen=tf.size(batch.ids, out_type=tf.int64), missing=missing)
