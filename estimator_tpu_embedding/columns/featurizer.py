"""Takes the features of one core apart: the ids that the engine looks up, and the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.plan import Plan
from ..core.specs import FeatureSpec
from ..errors import ConfigError, InputShapeError, Problem, did_you_mean, quoted
from ..ops.ids import MISSING, CoreIds, IdBatch, IdCounts, IdReader
from .embedding_columns import how_to_compute, innermost, used_twice

_ABOUT_WEIGHTS = (
    'Please check if the weights are present in feature dict. Also note weight-sharing among '
    'weighted_categorical_column is not supported on TPU.')
"""The words of the original, which callers match."""


class Featurized(NamedTuple):
    """The features of one core, taken apart.

    Attributes:
      rest: the features that are not looked up, by key.
      batches: the checked ids of every feature of the plan.
      counts: the numbers of ids that were seen, missing, truncated or out of range.
    """

    rest: dict[str, Any]
    batches: dict[str, IdBatch]
    counts: dict[str, IdCounts]


class Featurizer:
    """Takes the features of one core apart, for a fixed plan."""

    def __init__(self, columns: Sequence[Any], plan: Plan,
                 on_tensor_core: Sequence[tuple[Any, FeatureSpec]] = (), *,
                 may_lack_samples: bool = False):
        """Remembers which categorical column reads which feature.

        A plan that was made from configs by name has no columns. `on_tensor_core` has pairs of a
        column and its feature. The tables of these columns are trainable variables of the model.
        They get their ids as a dense matrix, and a mask of the places that hold an id.

        Raises:
          ConfigError: if a feature is used by a column of each kind.
        """
        self._samples = plan.batch_size_per_core
        self._on_tensor_core = [feature for _, feature in on_tensor_core]
        self._weights = {feature.name: feature.weight_feature for feature in plan.features
                         if feature.weight_feature is not None}
        self._categorical = {column.get_feature_key_name(): innermost(column)
                             for column in [*columns, *(column for column, _ in on_tensor_core)]}
        self._warned: set[str] = set()
        twice = sorted({feature.name for feature in self._on_tensor_core}
                       & {feature.name for feature in plan.features})
        if twice:
            raise ConfigError(*map(used_twice, twice))
        tables = [(feature, plan.table(feature.table).combiner,
                   plan.table(feature.table).vocabulary_size) for feature in plan.features]
        tables += [(feature, column.get_combiner(), column.get_embedding_table_size()[0])
                   for column, feature in on_tensor_core]
        self._ids = [IdReader(
            name=feature.name, num_samples=self._samples, combiner=combiner,
            sequence_length=feature.max_sequence_length, may_lack_samples=may_lack_samples,
            vocabulary_size=rows, policy=feature.id_policy,
            has_missing=_has_missing_words(self._categorical.get(feature.name)))
            for feature, combiner, rows in tables]
        self._core_ids = CoreIds(self._ids)

    def __call__(self, features: Mapping[str, Any], core: int) -> Featurized:
        """Builds the ops for one core's batch; the mapping itself is left alone.

        Raises:
          InputShapeError: if features of the plan are not there.
        """
        if not isinstance(features, Mapping):
            raise InputShapeError(Problem(
                'E513', 'features', 'input_fn must return features as a dict when an '
                'embedding_config_spec is given', type(features).__name__))
        names = {ids.name: '' for ids in self._ids}
        weighted: dict[str, list[str]] = {}
        for name, weights in self._weights.items():
            weighted.setdefault(weights, []).append(name)
            names.setdefault(weights, f', here the weights of "{name}"')
        unclaimed = sorted(str(key) for key in features if key not in names)
        problems = [Problem(
            'E513', f'feature "{name}"', f'input_fn must return every feature of the '
            f'embedding spec{of}', f'only {quoted(sorted(map(str, features)))}',
            ' '.join(filter(None, (
                did_you_mean(name, unclaimed), of and _ABOUT_WEIGHTS,
                how_to_compute(name) if isinstance(
                    self._categorical.get(name), _tf.computed_columns()) else ''
            )))) for name, of in names.items() if name not in features]
        problems += [Problem(
            'E513', f'feature "{name}"', 'it must be the weights of one column only',
            f'those of {quoted(columns)}', _ABOUT_WEIGHTS)
            for name, columns in weighted.items() if len(columns) > 1]
        if problems:
            raise InputShapeError(*problems)
        rest = {key: value for key, value in features.items() if key not in names}
        for feature in self._on_tensor_core:
            _check_for_tensor_core(feature.name, features, core)
        given, empty = {}, {}
        for ids in self._ids:
            given[ids.name], empty[ids.name] = self._given(ids, features, core)
        found = self._core_ids.read(given, core)
        counts = {name: one.counts._replace(missing=one.counts.missing + empty[name])
                  for name, one in found.items()}
        for feature in self._on_tensor_core:
            rest.update(self._padded(feature, found.pop(feature.name).batch))
        rest.update({f'{name}_seq_length_': one.lengths for name, one in found.items()
                     if one.lengths is not None})
        return Featurized(rest, {name: one.batch for name, one in found.items()}, counts)

    def _padded(self, feature: FeatureSpec, batch: IdBatch) -> dict[str, tf.Tensor]:
        """Returns the ids of a feature for the tensor core, and their mask, by key.

        Both are `[B, length]`. Ids are int32, and 0 in a place without an id. The mask is float32.
        """
        shape = [self._samples, feature.max_sequence_length]
        places = tf.expand_dims(batch.samples, 1)
        return {key: tf.reshape(tf.scatter_nd(places, values, [math.prod(shape)]), shape)
                for key, values in ((feature.name, tf.cast(batch.ids, tf.int32)),
                                    (_mask_of(feature.name), tf.ones_like(batch.ids, tf.float32)))}

    def _given(self, ids: IdReader, features: Mapping[str, Any], core: int
               ) -> tuple[tuple[Any, Any], tf.Tensor | int]:
        """Returns the ids and weights of a feature, and the number of empty words."""
        where, value = f'feature "{ids.name}" on core {core}', features[ids.name]
        empty: tf.Tensor | int = 0
        if value.dtype == tf.string:
            value, empty = _words_to_ids(where, self._categorical.get(ids.name), value)
        elif (isinstance(value, tf.Tensor) and value.shape.rank not in (None, 0, 1)
              and (ids.combiner is not None or ids.sequence_length)):
            if ids.name not in self._warned:
                self._warned.add(ids.name)
                tf.logging.warning(
                    'Feature "%s" holds ids in a dense tensor of rank >= 2: 0 means that an id is '
                    'missing, as on the hardware. Use a SparseTensor if 0 is an id.', ids.name)
        key = self._weights.get(ids.name)
        weights = features[key] if key else None
        if isinstance(weights, tf.Tensor):
            raise InputShapeError(Problem(
                'E517', where, 'weights must be a SparseTensor or RaggedTensor of numbers',
                f'"{key}", a dense tensor', 'Dense weights are not supported on TPU. Please use '
                'sparse weights instead.'))
        return (value, weights), empty


def _mask_of(name: str) -> str:
    return f'{name}__TENSOR_CORE_MASK'


def _check_for_tensor_core(name: str, features: Mapping[str, Any], core: int) -> None:
    """Refuses a feature for the tensor core that cannot be padded, or whose mask has no name."""
    if _mask_of(name) in features:
        raise ValueError(
            f'Mask key {_mask_of(name)} for Tensor Core embedding is already in use.')
    if features[name].shape.rank != 2:
        raise InputShapeError(Problem(
            'E516', f'feature "{name}" on core {core}', 'ids for the tensor core must have a '
            'known rank of 2', f'shape {features[name].shape}',
            'Its dimensions are samples and ids.'))


def _words_to_ids(where: str, categorical: Any, words: Any
                  ) -> tuple[tf.SparseTensor, tf.Tensor | int]:
    """Maps words to ids; also returns the number of empty words, which count as missing."""
    if categorical is None or isinstance(categorical, _tf.identity_columns()):
        raise InputShapeError(Problem(
            'E510', where, 'ids must be int32 or int64 where no vocabulary maps words', 'string',
            'Use categorical_column_with_vocabulary_list, or map the words in input_fn.'))
    there = to_sparse(words, has_gaps=True)
    empty: tf.Tensor | int = 0
    if isinstance(words, tf.Tensor):
        empty = (tf.size(words, out_type=tf.int64)
                 - tf.size(there.values, out_type=tf.int64))
    return _tf.column_ids(categorical, there), empty


def _has_missing_words(categorical: Any) -> bool:
    """Returns whether the column gives -1 for a word that is not in its vocabulary."""
    return (hasattr(categorical, 'num_oov_buckets') and categorical.num_oov_buckets == 0
            and categorical.default_value == MISSING)


def to_sparse(value: Any, has_gaps: bool) -> tf.SparseTensor:
    """Returns a feature as a SparseTensor; in a matrix with gaps, 0 and '' mean no id."""
    if isinstance(value, tf.RaggedTensor):
        return value.to_sparse()
    if isinstance(value, tf.SparseTensor):
        return value
    is_text = value.dtype == tf.string
    there = tf.ones_like(value, tf.bool)
    if is_text or has_gaps and value.shape.rank != 1:
        there = tf.not_equal(value, '' if is_text else tf.zeros([], value.dtype))
    if value.shape.rank == 1:
        value, there = tf.expand_dims(value, 1), tf.expand_dims(there, 1)
    places = tf.where(there)
    return tf.SparseTensor(places, tf.gather_nd(value, places),
                           tf.shape(value, out_type=tf.int64))
