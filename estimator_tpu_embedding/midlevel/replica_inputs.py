"""Reads and checks the ids and the gradients of one replica, and counts the ids.

The ids of a feature, dense, sparse or ragged, become an `IdBatch`. Each cell of the
output shape is a sample; cells are numbered in row-major order. Facts that are unknown while a
function is traced are checked when it runs.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from ..errors import InputShapeError, Problem
from ..hosts.engine import Activations, CoreBatch
from ..native.eager_variable import EagerTableVariable
from ..ops import ids
from ..ops.checks import are_below, first_message, gathered, not_inlined, require
from ..ops.ids import IdBatch, IdCounts, Reading
from . import shapes
from .feature_configs import Declared, feature_label, feature_names
from .table_variables import HOST, on_host


def read(path: str, value: Any, weight: Any, config: Any, output_shape: tuple[int, ...], *,
         policy: str) -> tuple[IdBatch, IdCounts]:
    """Reads the ids of one feature on one replica.

    Args:
      path: the path of the feature, for messages.
      value: integers. In a dense tensor of rank 1 or `[..., 1]` every id is a sample. In a
        SparseTensor of rank >= 2 the last dimension is reduced. In a RaggedTensor of rank 2 each
        row is a sample, or a sequence of samples if the output shape has several per row. Ids of
        rank 2 are sequences too if `config` has a `max_sequence_length` and no output shape.
      weight: a number for each id, sparse or ragged as `value` and at the same places; `None`
        is 1 for each. In a sequence it weights the only id of its sample.
      config: the FeatureConfig.
      output_shape: the shape of the feature on a replica, without the width; each dimension >= 1.
      policy: for ids out of the vocabulary, see `core.specs.FeatureSpec`.

    Returns:
      A batch of `prod(output_shape)` samples, sorted by sample, and the counts of all ids. Ids
      past the end of their sequence count as truncated. The batch fails to evaluate if
      `ops.ids.check` fails, and with E535 if an id is in no cell of the output shape.

    Raises:
      InputShapeError: for an illegal type or static shape.
    """
    incoming = shapes.of_input(path, config, value)
    for problem in shapes.disagreement(path, tf.TensorShape(output_shape), incoming):
        raise InputShapeError(problem)
    reader = _Reader(path, tuple(output_shape), shapes.is_sequence(config))
    if not value.dtype.is_integer:
        raise InputShapeError(Problem('E510', reader.where, 'ids must be integers',
                                      value.dtype.name))
    reader.check_weight(value, weight)
    if isinstance(value, tf.RaggedTensor):
        reading = reader.ragged(value, weight)
    elif isinstance(value, tf.SparseTensor):
        reading = reader.sparse(value, weight)
    else:
        reading = reader.dense(value)
    return ids.check(reader.where, reading, vocabulary_size=config.table.vocabulary_size,
                     policy=policy)


@dataclasses.dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one feature; see `read`.

    Attributes:
      is_sequence: whether ids of rank 2 are cut to the last dimension of the output shape.
    """

    path: str
    output_shape: tuple[int, ...]
    is_sequence: bool

    @property
    def where(self) -> str:
        """The feature, for messages."""
        return feature_label(self.path)

    @property
    def size(self) -> int:
        """The number of samples."""
        return math.prod(self.output_shape)

    def check_weight(self, value: Any, weight: Any) -> None:
        """Raises InputShapeError for a weight of another type than the ids."""
        if weight is None:
            return
        kind = next((one for one in (tf.SparseTensor, tf.RaggedTensor) if isinstance(value, one)),
                    None)
        if kind is None:
            raise InputShapeError(Problem(
                'E517', self.where, f'Weight specified for dense input {self.path}, which is not '
                'allowed. Weight will always be 1 in this case.'))
        if not isinstance(weight, kind):
            raise InputShapeError(Problem(
                'E517', self.where, f'Weight for {self.path} is type {type(weight)} which does '
                f'not match type input which is {kind.__name__}.'))

    def dense(self, value: tf.Tensor) -> Reading:
        """Reads a dense tensor: every id is a sample."""
        known = value.shape.num_elements()
        if known is None:
            # It has as many dimensions as the output shape, or fewer; then its rows are reshaped.
            rank = len(self.output_shape)
            same = (tf.equal(tf.shape(value)[:rank], self.output_shape)
                    if value.shape.rank == rank + 1 else tf.equal(tf.size(value), self.size))
            with tf.control_dependencies([require(
                    tf.reduce_all(same), self._problem(),
                    got=functools.partial(_numbers, 'shape', tf.shape(value)))]):
                value = tf.identity(value)
        elif known != self.size:
            raise InputShapeError(self._problem('E534', f'shape {value.shape}'))
        # With [size] instead of [-1], TensorFlow would rely on the size and remove the check.
        flat = tf.reshape(tf.cast(value, tf.int64), [-1])
        # As many as ids, because a message about ids names their samples whatever the size is.
        samples = tf.range(self.size if known is not None else tf.size(flat))
        return Reading(IdBatch(samples, flat, self.size), 0, 0)

    def sparse(self, value: tf.SparseTensor, weight: Any) -> Reading:
        """Reads a sparse tensor: all indices but the last are the sample; in sequences, all are."""
        bounds, rows = self._bounds(value.shape), value.shape[0]
        if rows not in (None, bounds[0]):  # 0: `shapes` lets it pass, as the original does.
            raise InputShapeError(self._problem('E534', f'shape {value.shape}'))
        checks = [] if rows is not None else [require(
            tf.equal(value.dense_shape[0], bounds[0]), self._problem(),
            got=functools.partial(_numbers, 'dense_shape', value.dense_shape))]
        ordered = tf.sparse.reorder(value)
        columns = [ordered.indices[:, position] for position in range(len(bounds))]
        checks += [require(one, self._problem(), got=functools.partial(_range_of, value.indices))
                   for one in (ordered.indices >= 0, *map(are_below, columns, bounds))]
        with tf.control_dependencies(checks):
            cells = columns[0]
            for column, bound in zip(columns[1:], bounds[1:]):
                cells = cells * bound + column
            samples = tf.cast(cells, tf.int32)
        batch = IdBatch(samples, tf.cast(ordered.values, tf.int64), self.size,
                        ids.weights_of_sparse(self.where, value, weight))
        if not self._cuts(value.shape):
            return Reading(batch, 0, 0)
        length = self.output_shape[1]
        return _cut(batch, tf.cast(tf.minimum(ordered.indices[:, 1], length), tf.int32), length)

    def ragged(self, value: tf.RaggedTensor, weight: Any) -> Reading:
        """Reads a ragged tensor: each row is a sample, or a sequence of samples."""
        count = tf.size(value.values)
        ends = tf.cast(value.row_splits[1:], tf.int32)
        # value_rowids() takes the time of rows times the longest row.
        row = tf.cumsum(tf.math.unsorted_segment_sum(tf.ones_like(ends), ends, count + 1))[:count]
        length, checks = self._length_of_rows(value, tf.size(ends))
        with tf.control_dependencies(checks):
            batch = IdBatch(tf.identity(row), tf.cast(value.values, tf.int64), self.size,
                            ids.weights_of_ragged(self.where, value, weight))
        cuts = self._cuts(value.shape)
        is_row = not cuts and length == 1
        if is_row is True:
            return Reading(batch, 0, 0)
        place = tf.range(count) - tf.gather(tf.cast(value.row_splits[:-1], tf.int32), row)
        return _cut(batch, place if is_row is False else tf.where(is_row, 0, place), length)

    def _length_of_rows(self, value: tf.RaggedTensor, rows: tf.Tensor
                        ) -> tuple[int | tf.Tensor, list[tf.Operation]]:
        """Returns how many samples each row stands for, and the checks that this needs."""
        cuts, known = self._cuts(value.shape), value.shape[0]
        wanted = self.output_shape[0] if cuts else self.size
        one_each = cuts or len(self.output_shape) == 1
        if known is not None:
            if known < 1 or (known != wanted if one_each else wanted % known):
                raise InputShapeError(self._problem('E534', f'{known} rows'))
            return self.size // known, []
        at_least_one = tf.maximum(rows, 1)
        fits = tf.equal(rows, wanted) | (not one_each and tf.equal(wanted % at_least_one, 0)
                                         & (rows > 0))
        check = require(fits, self._problem(),
                        got=lambda: tf.strings.join([tf.strings.as_string(rows), ' rows']))
        return self.size // wanted if one_each else self.size // at_least_one, [check]

    def _cuts(self, shape: tf.TensorShape) -> bool:
        """Returns whether rows are sequences, cut to the last dimension of the output shape."""
        if not self.is_sequence or shape.rank != 2:
            return False
        if len(self.output_shape) != 2:
            raise InputShapeError(self._problem('E534', f'sequences of shape {shape}'))
        return True

    def _bounds(self, shape: tf.TensorShape) -> tuple[int, ...]:
        """Returns the bounds of all indices of a sparse tensor but the last."""
        own = tuple(shape[:-1])
        if self._cuts(shape):
            return self.output_shape[:1]
        if len(own) == len(self.output_shape):
            return self.output_shape
        if len(own) == 1 and own[0] in (None, self.size):
            return (self.size,)
        raise InputShapeError(self._problem('E534', f'shape {shape}'))

    def _problem(self, code: str = 'E535', got: str = '') -> Problem:
        return Problem(code, self.where, 'ids must be in the cells of the output shape '
                       f'{self.output_shape} of a replica', got,
                       'Batch with drop_remainder=True.')


def _numbers(what: str, vector: tf.Tensor) -> tf.Tensor:
    """Returns a scalar string of all numbers in a vector."""
    return tf.strings.join([what, ' [', tf.strings.reduce_join(
        tf.strings.as_string(vector), separator=', '), ']'])


def _range_of(indices: tf.Tensor) -> tf.Tensor:
    """Returns a scalar string of the lowest and the highest index in each dimension."""
    return tf.strings.join([_numbers('indices from', tf.reduce_min(indices, axis=0)),
                            _numbers(' to', tf.reduce_max(indices, axis=0))])


def _cut(batch: IdBatch, place: tf.Tensor, length: int | tf.Tensor) -> Reading:
    """Cuts sequences to `length`; turns rows into samples.

    Args:
      batch: its `samples` are rows.
      place: int32 `[n]`, the place of each id in its row.
      length: samples per row.
    """
    kept = place < length
    cells = batch._replace(samples=batch.samples * length + place)
    truncated = tf.reduce_sum(tf.cast(~kept, tf.int64))
    return Reading(ids.only(cells, kept), 0, truncated)


_COUNTED = ('truncated', 'out_of_range')


class Batches:
    """The features of one object, once their shapes are known.

    Attributes:
      output_shapes: the shape of each feature on one replica, without the width.
    """

    def __init__(self, declared: Declared, output_shapes: Sequence[tuple[int, ...]], policy: str):
        """Makes the variable with the counts of ids."""
        self.output_shapes = list(output_shapes)
        self._declared = declared
        self._names = feature_names(declared)
        self._policy = policy
        with on_host():
            self._counts = EagerTableVariable(
                initial_value=tf.zeros([len(declared.features), len(_COUNTED)], tf.int64),
                trainable=False, name='id_counts', dtype=tf.int64)

    def pack(self, features: Sequence[Any], weights: Sequence[Any],
             pack: Callable[[CoreBatch], list[tf.Tensor]], kinds: Sequence[tf.DType]
             ) -> list[tf.Tensor]:
        """Packs the ids of one replica, and counts them, if all checks of them have passed.

        `pack` packs the ids of all features, by their names, into vectors of the dtypes `kinds`.

        Returns:
          What the first check that fails says, or `''`, see `ops.checks`; then the packed ids.
        """
        def count_and_pack() -> list[tf.Tensor]:
            self._count(counts)
            return [tf.constant(''), *pack(batch)]

        def explain() -> list[tf.Tensor]:
            return [not_inlined(lambda *given: first_message(lambda: self._read(*given)))(
                features, weights), *[tf.zeros([0], kind) for kind in kinds]]

        with tf.device(HOST):
            with gathered() as conditions:
                batch, counts = self._read(features, weights)
            holds = conditions.holds()
            if holds is None:
                return count_and_pack()
            found: list[tf.Tensor] = tf.cond(holds, count_and_pack, explain)
            return found

    def none(self, problem: Problem) -> Activations:
        """Returns activations by the names of features, which fail with `problem` if executed."""
        failed = require(tf.constant(False), problem, got=problem.got)
        with tf.control_dependencies([failed]):
            return {name: tf.zeros([*shape, feature.table.dim]) for name, shape, feature in zip(
                self._names, self.output_shapes, self._declared.features)}

    def gradients(self, flat: Sequence[Any]) -> list[tf.Tensor]:
        """Returns the gradients of activations in the order of features, zeros for `None`."""
        checked = []
        for path, feature, shape, gradient in zip(
                self._declared.paths, self._declared.features, self.output_shapes, flat):
            expected = [*shape, feature.table.dim]
            if gradient is None:
                logging.warning(
                    'No gradient passed for feature %s, sending zero gradient. This may not be '
                    'correct behavior for certain optimizers like Adam.', path)
                gradient = tf.zeros(expected)
            elif not isinstance(gradient, tf.Tensor):
                raise InputShapeError(Problem(
                    'E546', 'apply_gradients', f'found non-tensor type: {type(gradient)} at path '
                    f'{path}', remedy='Pass float32 tensors, or None.'))
            if not gradient.shape.is_compatible_with(expected):
                raise InputShapeError(Problem(
                    'E547', 'apply_gradients', f'Found gradient of shape {gradient.shape} at path '
                    f'{path}. Expected shape {tf.TensorShape(expected)}'))
            checked.append(tf.ensure_shape(tf.cast(gradient, tf.float32), expected))
        return checked

    def counts(self) -> dict[str, dict[str, int]]:
        """Returns the counts by feature, see `TPUEmbedding.id_counts`."""
        return {path: dict(zip(_COUNTED, map(int, row)))
                for path, row in zip(self._declared.paths, self._counts.numpy())}

    def _read(self, features: Sequence[Any], weights: Sequence[Any]
              ) -> tuple[CoreBatch, list[IdCounts]]:
        """Reads the ids of one replica, by the names of features, and their counts."""
        batches, counts = zip(*[read(
            *facts, policy=self._policy) for facts in zip(
                self._declared.paths, features, weights, self._declared.features,
                self.output_shapes)])
        return dict(zip(self._names, batches)), list(counts)

    def _count(self, counts: Sequence[IdCounts]) -> None:
        """Adds the counts of all features, unless all are known to be 0."""
        rows = [[getattr(one, name) for name in _COUNTED] for one in counts]
        if any(tf.get_static_value(count) != 0 for row in rows for count in row):
            self._counts.assign_add(tf.convert_to_tensor(rows, tf.int64), read_value=False)
