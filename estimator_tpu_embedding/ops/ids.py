"""Reads ids and weights of any tensors into an `IdBatch`, and checks and counts the ids.

`IdReader` does that for a feature of one core, `CoreIds` for all features of a core.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from ..errors import InputShapeError, Problem
from .checks import (
    are_below,
    first_message,
    first_values,
    gathered,
    limited,
    masked,
    not_inlined,
    require,
    require_gathered,
)

_BATCH = 'Batch with params["batch_size"] and drop_remainder=True.'

MISSING = -1
"""The id of a word that a vocabulary does not know: it has no row, gives zeros, and is counted."""

_ANY_CORE = '\x01core\x01'


class IdBatch(NamedTuple):
    """The ids of one feature on one core for one step.

    Attributes:
      samples: int32 `[n]`, the sample of each id; non-decreasing, in `[0, num_samples)`. Every
        place of a sequence of length `L` is a sample here: place `t` of sample `b` is `b * L + t`.
      ids: int64 `[n]`, each in `[0, vocabulary_size)` once `check` has run.
      num_samples: samples on this core, times the length of sequences; known when the graph is
        built.
      weights: float32 `[n]`; `None` is 1 for each id.
    """

    samples: tf.Tensor
    ids: tf.Tensor
    num_samples: int
    weights: tf.Tensor | None = None


class IdCounts(NamedTuple):
    """Counts what became of the ids of one feature in one batch.

    Each is an int64 scalar, or a number that is known when the graph is built.

    Attributes:
      seen: ids that were looked up.
      missing: places without an id: zeros of a dense tensor of rank >= 2, unknown words.
      truncated: ids beyond the length of their sequence.
      out_of_range: ids outside of the vocabulary, if the policy does not make them an error.
    """

    seen: tf.Tensor | int
    missing: tf.Tensor | int
    truncated: tf.Tensor | int
    out_of_range: tf.Tensor | int


class Reading(NamedTuple):
    """The ids of one feature as they were read, unchecked; for counts see `IdCounts`.

    Attributes:
      lengths: of sequences: the last used place + 1, at most `L`, int64 `[B]`; otherwise `None`.
    """

    batch: IdBatch
    missing: tf.Tensor | int
    truncated: tf.Tensor | int
    lengths: tf.Tensor | None = None


class ReadIds(NamedTuple):
    """The ids of one feature of one core, checked, counted, and the lengths of its sequences."""

    batch: IdBatch
    counts: IdCounts
    lengths: tf.Tensor | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdReader:
    """Reads the ids of one feature on one core from a value of `input_fn`.

    Attributes:
      name: the name of the feature.
      num_samples: samples per core.
      combiner: the combiner of the table. `None` requires one id per sample in a dense tensor.
      sequence_length: if it is above 0, the ids of one sample are a sequence, cut to this length.
      may_lack_samples: whether fewer than `num_samples` are accepted. The others have no ids, and
        no missing id of them is counted.
      vocabulary_size, policy: see `check`.
      has_missing: whether `MISSING` stands for unknown words.
      core: the core, for messages; `''` names none.
      range_of: `tf.range`, or one that gives all features of a core the same tensor.
    """

    name: str
    num_samples: int
    combiner: str | None
    sequence_length: int = 0
    may_lack_samples: bool = False
    vocabulary_size: int
    policy: str = 'error'
    has_missing: bool = False
    core: str = ''
    range_of: Callable[[int], tf.Tensor] = tf.range

    @property
    def where(self) -> str:
        """The feature and the core, for messages."""
        return f'feature "{self.name}"' + (f' on core {self.core}' if self.core else '')

    def read(self, value: object, weights: object = None) -> ReadIds:
        """Reads and checks ids.

        Args:
          value: int32 or int64; a dense tensor `[B]` or `[B, ...]`, a `SparseTensor` of rank
            >= 2 or a `RaggedTensor`, with `B == num_samples`. A dense tensor of rank >= 2 of a
            table with a combiner, or of a sequence, holds 0 where an id is missing, as on the
            hardware. In a dense tensor of rank 1 every id counts. The second dimension of a
            sequence is its place.
          weights: numbers at the places of the ids, in a tensor of the type of `value`, sparse or
            ragged; `None` is 1 for each.

        Raises:
          InputShapeError: for another type, or a shape that is known to be wrong.
        """
        reading = self._read(value, weights)
        if self.has_missing:
            reading = _drop_missing(reading)
        return ReadIds(*check(self.where, reading, vocabulary_size=self.vocabulary_size,
                              policy=self.policy), reading.lengths)

    def _read(self, value: object, weights: object) -> Reading:
        value, weights = _sparse_of_ragged(value), _sparse_of_ragged(weights)
        if not isinstance(value, (tf.Tensor, tf.SparseTensor)):
            raise InputShapeError(Problem(
                'E510', self.where, 'ids must come as a Tensor, SparseTensor or RaggedTensor',
                type(value).__name__))
        if value.dtype not in (tf.int32, tf.int64):
            raise InputShapeError(Problem('E510', self.where, 'ids must be int32 or int64',
                                          value.dtype.name))
        first = value.shape.dims[0].value if value.shape.rank else None
        if value.shape.rank == 0 or first is not None and not self._fits(first):
            raise InputShapeError(Problem(
                'E511', self.where, f'the batch must have {self.num_samples} samples per core',
                f'shape {value.shape}', 'Batch with params["batch_size"].'))
        if self.sequence_length and value.shape.rank not in (2, 3):
            raise InputShapeError(Problem(
                'E516', self.where, 'a sequence must have a known rank of 2 or 3',
                f'shape {value.shape}', 'Its dimensions are samples, places, and the ids of a '
                'place.'))
        if isinstance(value, tf.SparseTensor):
            return self._from_sparse(value, weights)
        if weights is not None:
            raise InputShapeError(Problem(
                'E517', self.where, 'dense ids must have no weights', 'weights',
                'Pass ids and weights as SparseTensors with the same indices.'))
        if self.may_lack_samples and first is None:
            with tf.control_dependencies([self._require_samples(tf.shape(value)[0])]):
                value = tf.identity(value)
        if self.combiner is None and not self.sequence_length:
            return self._one_each(value)
        return self._from_dense(value)

    def _require_samples(self, found: tf.Tensor) -> tf.Operation:
        return require(self._fits(found), Problem(
            'E511', self.where, f'the batch must have {self.num_samples} samples per core',
            remedy=_BATCH), got=lambda: tf.strings.as_string(found))

    def _fits(self, samples: Any) -> Any:
        """Returns whether a batch may have so many samples: a bool for an int, or a tensor."""
        if self.may_lack_samples:
            return samples <= self.num_samples
        return (samples == self.num_samples if isinstance(samples, int)
                else tf.equal(samples, self.num_samples))

    def _from_sparse(self, value: tf.SparseTensor, weights: object) -> Reading:
        ids = tf.sparse.reorder(value)
        samples = ids.indices[:, 0]
        right = are_below(samples, self.num_samples)
        with tf.control_dependencies([
                self._require_samples(ids.dense_shape[0]),
                require(right, Problem(
                    'E511', self.where, f'samples must be in [0, {self.num_samples})',
                    remedy=_BATCH), got=lambda: first_values(masked(samples, ~right))),
                require(ids.indices >= 0, Problem('E511', self.where, 'indices must be >= 0'),
                        got=lambda: first_values(masked(ids.indices, ids.indices < 0)))]):
            samples = tf.identity(samples)
        batch = IdBatch(tf.cast(samples, tf.int32), tf.cast(ids.values, tf.int64),
                        self.num_samples, weights_of_sparse(self.where, value, weights))
        return self._cut(batch, ids.indices[:, 1], 0) if self.sequence_length else (
            Reading(batch, 0, 0))

    def _cut(self, batch: IdBatch, places: tf.Tensor, missing: tf.Tensor | int) -> Reading:
        """Makes sequences from ids and the places of the ids in their samples."""
        # Where checks are gathered, this runs for samples that are out of range, too.
        samples = tf.minimum(batch.samples, self.num_samples - 1)
        used = tf.math.unsorted_segment_max(places + 1, samples, self.num_samples)
        lengths = tf.clip_by_value(used, 0, self.sequence_length)
        kept = places < self.sequence_length
        places = tf.cast(masked(places, kept), tf.int32)
        batch = only(batch, kept)
        batch = batch._replace(samples=batch.samples * self.sequence_length + places,
                               num_samples=self.num_samples * self.sequence_length)
        truncated = tf.size(kept, out_type=tf.int64) - tf.size(places, out_type=tf.int64)
        return Reading(batch, missing, truncated, lengths)

    def _one_each(self, value: tf.Tensor) -> Reading:
        size = value.shape.num_elements()
        problem = Problem('E512', self.where, 'a table with combiner None takes one id per sample',
                          f'shape {value.shape}', 'Set a combiner, or pass a tensor of shape '
                          '[batch].')
        if size is not None and not self._fits(size):
            raise InputShapeError(problem)
        ids = tf.cast(value, tf.int64)
        ids = ids if ids.shape.rank == 1 else tf.reshape(ids, [-1])
        if self.may_lack_samples:
            with tf.control_dependencies([require(
                    tf.equal(tf.size(ids), tf.shape(value)[0]), problem,
                    got=lambda: tf.strings.as_string(tf.size(ids)))]):
                # As many as ids, because a message about ids names their samples in any case.
                samples = tf.range(tf.size(ids))
        else:
            if size is None:
                ids = tf.ensure_shape(ids, [self.num_samples])
            samples = self.range_of(self.num_samples)
        return Reading(IdBatch(samples, ids, self.num_samples), 0, 0)

    def _from_dense(self, value: tf.Tensor) -> Reading:
        if value.shape.rank is None:
            raise InputShapeError(Problem('E511', self.where, 'the rank of dense ids must be '
                                          'known', 'unknown rank', 'Set the shape in input_fn.'))
        if value.shape.rank == 1:
            return self._one_each(value)
        if not self.may_lack_samples and value.shape.dims[0].value is None:
            value = tf.ensure_shape(value, [self.num_samples] + value.shape.as_list()[1:])
        places = tf.where(tf.not_equal(value, 0))
        ids = tf.cast(tf.gather_nd(value, places), tf.int64)
        missing = tf.size(value, out_type=tf.int64) - tf.size(ids, out_type=tf.int64)
        batch = IdBatch(tf.cast(places[:, 0], tf.int32), ids, self.num_samples)
        if self.sequence_length:
            return self._cut(batch, places[:, 1], missing)
        return Reading(batch, missing, 0)


class CoreIds:
    """Reads all features of one core after another, in one graph of TF1.

    There is one condition for all checks of a core. Only where it does not hold, the ids are read
    once more, for the message. A function does so, and is traced once for all cores. So a core
    costs few operations, however many checks it has.
    """

    def __init__(self, features: Sequence[IdReader]):
        self._features = features
        self._explain = not_inlined(self._message)

    def read(self, given: Mapping[str, tuple[Any, Any]], core: int) -> dict[str, ReadIds]:
        """Returns the ids of all features of a core; the values fail to evaluate if a check fails.

        Args:
          given: the values and the weights, or `None`, of each feature, as for `IdReader.read`.
          core: the core, for messages.

        Raises:
          InputShapeError: as `IdReader.read`.
        """
        given = {feature.name: given[feature.name] for feature in self._features}
        with gathered() as conditions:
            found = self._read(given, str(core))
        required = require_gathered(
            conditions, lambda: self._explain(given, tf.constant(str(core))))
        return found if required is None else _after(required, found)

    def _read(self, given: Mapping[str, tuple[Any, Any]], core: str) -> dict[str, ReadIds]:
        range_of = functools.cache(tf.range)
        return {feature.name: dataclasses.replace(feature, core=core, range_of=range_of).read(
            *given[feature.name]) for feature in self._features}

    def _message(self, given: Mapping[str, tuple[Any, Any]], core: tf.Tensor) -> tf.Tensor:
        """Returns what the first check says that fails."""
        said = first_message(lambda: self._read(given, _ANY_CORE))
        return tf.strings.regex_replace(said, _ANY_CORE, core)


def _after(required: tf.Operation, found: dict[str, ReadIds]) -> dict[str, ReadIds]:
    """Returns the same, but nothing of a batch is known before `required` has passed.

    Otherwise an operation that takes samples or weights alone might fail first, without a message.
    """
    own = {id(tensor): tensor for one in found.values() for tensor in (
        one.batch.samples, one.batch.ids, one.batch.weights, one.lengths) if tensor is not None}
    with tf.control_dependencies([required]):
        checked = dict(zip(own, tf.identity_n(list(own.values()))))
    return {name: one._replace(
        batch=one.batch._replace(
            samples=checked[id(one.batch.samples)], ids=checked[id(one.batch.ids)],
            weights=checked.get(id(one.batch.weights))),
        lengths=checked.get(id(one.lengths)))
        for name, one in found.items()}


def _sparse_of_ragged(value: object) -> object:
    return value.to_sparse() if isinstance(value, tf.RaggedTensor) else value


def only(batch: IdBatch, kept: tf.Tensor) -> IdBatch:
    """Returns the ids of a batch for which `kept`, bool `[n]`, holds."""
    places = tf.where(kept)[:, 0]
    return batch._replace(
        samples=tf.gather(batch.samples, places), ids=tf.gather(batch.ids, places),
        weights=None if batch.weights is None else tf.gather(batch.weights, places))


def _drop_missing(reading: Reading) -> Reading:
    """Removes the ids that stand for unknown words, and counts them as missing."""
    batch = only(reading.batch, tf.not_equal(reading.batch.ids, MISSING))
    dropped = tf.size(reading.batch.ids, out_type=tf.int64) - tf.size(
        batch.ids, out_type=tf.int64)
    return reading._replace(batch=batch, missing=reading.missing + dropped)


def check(where: str, reading: Reading, *, vocabulary_size: int, policy: str = 'error'
          ) -> tuple[IdBatch, IdCounts]:
    """Makes sure that every id has a row.

    Returns:
      A batch whose ids are in `[0, vocabulary_size)`, and the counts of all ids. With the policy
      `'error'` the batch fails to evaluate, with E501, if an id is out of range. Ids are compared
      before any cast, so 2**32 + 1 is never row 1.
    """
    batch = reading.batch
    if policy == 'error':
        rule = Problem('E501', where, f'ids must be in [0, {vocabulary_size}), the vocabulary size '
                       'of its table', remedy='Clean the data, raise the vocabulary size, or set '
                       'install(ids=...) or RunConfig(id_policy=...).')
        out_of_range: tf.Tensor | int = 0
        batch = batch._replace(ids=limited(
            batch.ids, vocabulary_size, rule,
            got=lambda wrong: _of_samples(reading.batch, wrong)))
    else:
        wrong = ~are_below(batch.ids, vocabulary_size)
        out_of_range = tf.reduce_sum(tf.cast(wrong, tf.int64))
        if policy == 'drop':
            batch = only(batch, ~wrong)
        elif policy == 'clip':
            batch = batch._replace(ids=tf.clip_by_value(batch.ids, 0, vocabulary_size - 1))
        else:
            batch = batch._replace(ids=tf.math.floormod(batch.ids, vocabulary_size))
    return batch, IdCounts(seen=_number_of(batch.ids), missing=reading.missing,
                           truncated=reading.truncated, out_of_range=out_of_range)


def _number_of(ids: tf.Tensor) -> tf.Tensor | int:
    """Returns how many ids there are; a number where it is known."""
    known = ids.shape.num_elements()
    return tf.size(ids, out_type=tf.int64) if known is None else known


def _of_samples(batch: IdBatch, wrong: tf.Tensor) -> tf.Tensor:
    """Returns a scalar string of the first wrong ids, their samples, and their number."""
    bad = masked(batch.ids, wrong)
    return tf.strings.join([
        first_values(bad), ' in sample ', first_values(masked(batch.samples, wrong)), ' (',
        tf.strings.as_string(tf.size(bad)), ' in all)'])


def weights_of_sparse(where: str, ids: tf.SparseTensor, weights: object) -> tf.Tensor | None:
    """Returns the weight of each id, in the order that `tf.sparse.reorder` gives the ids.

    Returns:
      float32 `[n]`, or `None`, which is 1 for each, if `weights` is `None`. It fails to evaluate,
      with E518, for other indices than those of ids or a weight that is not finite.

    Raises:
      InputShapeError: for another type, E517, or shapes that are known to differ, E518.
    """
    if weights is None:
        return None
    _require_numbers(where, weights, tf.SparseTensor)
    assert isinstance(weights, tf.SparseTensor)
    numbers = _checked_weights(where, weights.values, weights.indices, ids.values, ids.indices)
    return tf.sparse.reorder(tf.SparseTensor(ids.indices, numbers, ids.dense_shape)).values


def weights_of_ragged(where: str, ids: tf.RaggedTensor, weights: object) -> tf.Tensor | None:
    """Returns the weight of each id, in their order, for ids of rank 2; see `weights_of_sparse`."""
    if weights is None:
        return None
    _require_numbers(where, weights, tf.RaggedTensor)
    assert isinstance(weights, tf.RaggedTensor)
    if not weights.shape.is_compatible_with(ids.shape):
        raise InputShapeError(_weights_elsewhere(where, f'{weights.shape} for {ids.shape}'))
    return _checked_weights(where, weights.values, tf.cast(weights.row_splits, tf.int64),
                            ids.values, tf.cast(ids.row_splits, tf.int64))


def _require_numbers(where: str, weights: object, kind: type) -> None:
    dtype = getattr(weights, 'dtype', None)
    if not isinstance(weights, kind) or dtype is None or not (
            dtype.is_floating or dtype.is_integer):
        raise InputShapeError(Problem(
            'E517', where, 'weights must be a SparseTensor or RaggedTensor of numbers',
            f'{type(weights).__name__} {getattr(dtype, "name", "")}'.strip()))


def _weights_elsewhere(where: str, got: str = '') -> Problem:
    return Problem('E518', where, 'weights must be at the places of the ids', got)


def _checked_weights(where: str, weights: tf.Tensor, places: tf.Tensor, ids: tf.Tensor,
                     places_of_ids: tf.Tensor) -> tf.Tensor:
    """Returns weights as float32; they fail to evaluate unless finite and at the ids' places.

    Places are in any form whose first dimension may be compared.
    """
    if not places.shape.is_compatible_with(places_of_ids.shape):
        raise InputShapeError(_weights_elsewhere(
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
            require(same, _weights_elsewhere(where), got=lambda: tf.strings.join([
                tf.strings.as_string(sizes[0]), ' weights for ',
                tf.strings.as_string(sizes[1]), ' ids'])),
            require(finite, Problem('E518', where, 'weights must be finite'),
                    got=lambda: first_values(masked(numbers, ~finite)))]):
        # As many as ids, because gathered checks let operations run that need so many.
        return tf.concat([numbers, tf.ones_like(ids, tf.float32)], 0)[:sizes[1]]
