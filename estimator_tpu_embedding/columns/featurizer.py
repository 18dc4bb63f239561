"""Takes the features of one core apart: the ids that the engine looks up, and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.plan import Plan
from ..core.specs import FeatureSpec
from ..errors import ConfigError, InputShapeError, Problem, did_you_mean, quoted
from ..ops.core_ids import CoreIds, FeatureIds
from ..ops.ids import MISSING, IdBatch, IdCounts
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
        self._plan = plan
        self._on_tensor_core = on_tensor_core
        self._may_lack_samples = may_lack_samples
        self._categorical = {column.get_feature_key_name(): innermost(column)
                             for column in [*columns, *(column for column, _ in on_tensor_core)]}
        self._warned: set[str] = set()
        self._core_ids = CoreIds([self._ids_of(
            feature, plan.table(feature.table).combiner,
            plan.table(feature.table).vocabulary_size) for feature in plan.features])
        twice = sorted({feature.name for _, feature in on_tensor_core}
                       & {feature.name for feature in plan.features})
        if twice:
            raise ConfigError(*map(used_twice, twice))

    def __call__(self, features: Mapping[str, Any], core: int) -> Featurized:
        """Builds the ops for one core's batch; the mapping itself is left alone.

        Raises:
          InputShapeError: if features of the plan are not there.
        """
        if not isinstance(features, Mapping):
            raise InputShapeError(Problem(
                'E513', 'features', 'input_fn must return features as a dict when an '
                'embedding_config_spec is given', type(features).__name__))
        names = {feature.name: '' for feature in [
            *self._plan.features, *(feature for _, feature in self._on_tensor_core)]}
        weighted: dict[str, list[str]] = {}
        for feature in self._plan.features:
            if feature.weight_feature is not None:
                weighted.setdefault(feature.weight_feature, []).append(feature.name)
                names.setdefault(feature.weight_feature, f', here the weights of "{feature.name}"')
        unclaimed = sorted(str(key) for key in features if key not in names)
        problems = [Problem(
            'E513', f'feature "{name}"', f'input_fn must return every feature of the '
            f'embedding spec{of}', f'only {quoted(sorted(map(str, features)))}',
            ' '.join(filter(None, [
                did_you_mean(name, unclaimed), of and _ABOUT_WEIGHTS,
                how_to_compute(name) if isinstance(
                    self._categorical.get(name), _tf.computed_columns()) else ''])))
            for name, of in names.items() if name not in features]
        problems += [Problem(
            'E513', f'feature "{name}"', 'it must be the weights of one column only',
            f'those of {quoted(columns)}', _ABOUT_WEIGHTS)
            for name, columns in weighted.items() if len(columns) > 1]
        if problems:
            raise InputShapeError(*problems)
        rest = {key: value for key, value in features.items() if key not in names}
        given, empty = {}, {}
        for feature in self._plan.features:
            given[feature.name], empty[feature.name] = self._given(
                f'feature "{feature.name}" on core {core}', feature,
                self._plan.table(feature.table).combiner, features)
        found = self._core_ids.read(given, core)
        counts = {name: one.counts._replace(missing=one.counts.missing + empty[name])
                  for name, one in found.items()}
        rest.update({f'{name}_seq_length_': one.lengths for name, one in found.items()
                     if one.lengths is not None})
        for column, feature in self._on_tensor_core:
            self._pad(column, feature, core, features, rest, counts)
        return Featurized(rest, {name: one.batch for name, one in found.items()}, counts)

    def _pad(self, column: Any, feature: FeatureSpec, core: int, features: Mapping[str, Any],
             rest: dict[str, Any], counts: dict[str, IdCounts]) -> None:
        """Puts the ids of a column for the tensor core, and their mask, into `rest`.

        Both are `[B, length]`. Ids are int32, and 0 in a place without an id. The mask is float32.
        """
        name, length = feature.name, feature.max_sequence_length
        mask_name = f'{name}__TENSOR_CORE_MASK'
        if mask_name in features:
            raise ValueError(f'Mask key {mask_name} for Tensor Core embedding is already in use.')
        where = f'feature "{name}" on core {core}'
        if features[name].shape.rank != 2:
            raise InputShapeError(Problem(
                'E516', where, 'ids for the tensor core must have a known rank of 2',
                f'shape {features[name].shape}', 'Its dimensions are samples and ids.'))
        given, empty = self._given(where, feature, column.get_combiner(), features)
        batch, found, _ = CoreIds([self._ids_of(
            feature, column.get_combiner(), column.get_embedding_table_size()[0])]).read(
                {name: given}, core)[name]
        counts[name] = found._replace(missing=found.missing + empty)
        size = self._plan.batch_size_per_core * length
        for key, values in ((name, tf.cast(batch.ids, tf.int32)),
                            (mask_name, tf.ones_like(batch.ids, tf.float32))):
            flat = tf.scatter_nd(tf.expand_dims(batch.samples, 1), values, [size])
            rest[key] = tf.reshape(flat, [self._plan.batch_size_per_core, length])

    def _ids_of(self, feature: FeatureSpec, combiner: str | None, rows: int) -> FeatureIds:
        """Returns how a feature of a table with so many rows is read."""
        return FeatureIds(
            name=feature.name, num_samples=self._plan.batch_size_per_core, combiner=combiner,
            sequence_length=feature.max_sequence_length,
            may_lack_samples=self._may_lack_samples, vocabulary_size=rows,
            policy=feature.id_policy,
            has_missing=_has_missing_words(self._categorical.get(feature.name)))

    def _given(self, where: str, feature: FeatureSpec, combiner: str | None,
               features: Mapping[str, Any]) -> tuple[tuple[Any, Any], tf.Tensor | int]:
        """Returns the ids and weights of a feature, and the number of empty words."""
        value = features[feature.name]
        empty: tf.Tensor | int = 0
        if value.dtype == tf.string:
            value, empty = _words_to_ids(where, self._categorical.get(feature.name), value)
        elif (isinstance(value, tf.Tensor) and value.shape.rank not in (None, 0, 1)
              and (combiner is not None or feature.max_sequence_length)):
            self._warn_of_zeros(feature.name)
        weights = features[feature.weight_feature] if feature.weight_feature else None
        if isinstance(weights, tf.Tensor):
            raise InputShapeError(Problem(
                'E517', where, 'weights must be a SparseTensor or RaggedTensor of numbers',
                f'"{feature.weight_feature}", a dense tensor', 'Dense weights are not supported '
                'on TPU. Please use sparse weights instead.'))
        return (value, weights), empty

    def _warn_of_zeros(self, name: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            tf.logging.warning(
                'Feature "%s" holds ids in a dense tensor of rank >= 2: 0 means that an id is '
                'missing, as on the hardware. Use a SparseTensor if 0 is an id.', name)


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
