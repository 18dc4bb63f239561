"""Turns TPU embedding columns into table and feature specs, and reads the ids of their features.

It also finds the names of the variables that model_fn makes for the tables of the columns, and
checks that it uses the columns of the spec.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.learning_rates import DynamicRate
from ..core.plan import Plan
from ..core.specs import FeatureSpec, TableSpec
from ..errors import (
    ConfigError,
    InputShapeError,
    Problem,
    UnusedColumnsError,
    did_you_mean,
    noted,
    quoted,
)
from ..ops.core_ids import CoreIds
from ..ops.ids import MISSING, IdBatch, IdCounts, IdReader

# TensorFlow still has both, and users test for the classes of their columns.
embedding_column = tf.tpu.experimental.embedding_column
shared_embedding_columns = tf.tpu.experimental.shared_embedding_columns

_PLACE = 'EmbeddingConfigSpec(feature_columns=...)'
_MADE_FOR_COLUMNS = re.compile(r'Feature (.+)(?:_seq_length_|__TENSOR_CORE_MASK) is not in ')
"""TensorFlow's words on the features that a Featurizer makes for the columns of a spec."""
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


def columns_to_specs(columns: Sequence[Any]) -> tuple[list[TableSpec], list[FeatureSpec]]:
    """Returns the tables and features that columns of `tf.tpu.experimental` declare.

    A table is called `tbl_<name>`, as in the original. The name is the categorical column's, or
    the shared collection's. Columns that share a table declare it once.

    Raises:
      TypeError: for columns that no TPU looks up.
      ConfigError: if a feature is used by two columns.
    """
    tables: dict[str, TableSpec] = {}
    features: dict[str, FeatureSpec] = {}
    problems = []
    for column in columns:
        _check_class(column)
        name = f'tbl_{column.get_embedding_var_name()}'
        vocabulary_size, dimension = column.get_embedding_table_size()
        function = column.get_learning_rate_fn()
        tables[name] = TableSpec(
            name=name, vocabulary_size=(int(vocabulary_size) if vocabulary_size % 1 == 0
                                        else vocabulary_size), dimension=dimension,
            combiner=column.get_combiner(), initializer=column.get_initializer(),
            rate=DynamicRate(function=function) if function is not None else None)
        key = column.get_feature_key_name()
        if key in features:
            problems.append(_used_twice(key))
        if isinstance(innermost(column), _tf.computed_columns()):
            tf.logging.warning('%s', Problem(
                'W431', f'column "{key}"', 'no TPU computes a crossed or bucketized column',
                remedy=_compute(key)))
        features[key] = FeatureSpec(
            name=key, table=name, weight_feature=column.get_weight_key_name(),
            max_sequence_length=column.get_max_sequence_length())
    if problems:
        raise ConfigError(*problems)
    return list(tables.values()), list(features.values())


def tensor_core_features(columns: Sequence[Any]) -> list[FeatureSpec]:
    """Returns the features of columns for the tensor core; the engine has no table of theirs."""
    return [FeatureSpec(name=column.get_feature_key_name(), table='',
                        max_sequence_length=_tf.tensor_core_length(column))
            for column in columns]


def _compute(key: str) -> str:
    return (f'Compute the feature "{key}" in input_fn, as ids, and declare it by '
            f'categorical_column_with_identity("{key}", num_buckets).')


def _used_twice(key: str) -> Problem:
    return Problem('E434', f'feature "{key}"', f'Feature column {key} is used with multiple '
                   'embeddings and this is not supported',
                   remedy='Give the second column a copy of the feature under another key.')


def _check_class(column: Any) -> None:
    supported, old = _tf.tpu_embedding_columns(), _tf.old_tpu_embedding_columns()
    if isinstance(column, old):
        tf.logging.warning('Columns of type %s are deprecated. Supported types are %s.',
                           type(column), supported)
    elif not isinstance(column, supported):
        raise noted(TypeError(f'Unsupported feature column {type(column)}. Supported types are '
                              f'{supported}.'), 'Make it with tf.tpu.experimental.'
                    'embedding_column, or leave it out of the spec.')


def variable_names(columns: Sequence[Any], graph: tf.Graph) -> dict[str, str]:
    """Returns the name of each table's variable, as columns recorded it in a traced model_fn.

    It was called in `graph` under a TPU shard context.

    Raises:
      ConfigError: if model_fn did not use a column of the spec.
    """
    scopes = _tf.recorded_column_scopes(graph)
    wanted = sorted({column.get_embedding_var_name() for column in columns})
    unused = [name for name in wanted if name not in scopes]
    if len(unused) == len(wanted):
        raise UnusedColumnsError(Problem(
            'E436', 'feature_columns', 'Embedding feature column did not capture any thing. '
            'Make sure the feature columns passed to TPUEstimator constructor is properly used '
            'in model_fn'))
    if unused:
        raise ConfigError(*[Problem(
            'E436', f'column "{name}"', 'every column of the spec must be used in model_fn',
            'a column that model_fn does not use',
            'Pass it to the DenseFeatures layer, or drop it from the spec.') for name in unused])
    names = {name: '/'.join(part for part in scopes[name] if part) for name in wanted}
    taken = collections.Counter(names.values())
    clashes = [Problem(
        'E437', f'column "{name}"', 'every table must have a variable of its own',
        f'"{variable}" for more than one column', 'Give one of the columns that model_fn uses in '
        'the same scope another name, or share the table with shared_embedding_columns.')
        for name, variable in names.items() if taken[variable] > 1]
    if clashes:
        raise ConfigError(*clashes)
    return {f'tbl_{name}': variable for name, variable in names.items()}


def check_columns(columns: Sequence[Any], plan: Plan | None, error: Exception | None = None
                  ) -> None:
    """Makes sure that the spec has every column of model_fn, in the width that it expects.

    For a column that the spec lacks, TensorFlow would take the ids for the rows. The columns are
    those that model_fn used, with an `error` those before it.

    Raises:
      ConfigError: with every column that the spec does not have so.
    """
    widths = {feature.name: (plan.table(feature.table).dimension, feature.max_sequence_length)
              for feature in plan.features} if plan is not None else {}
    used = {(column.get_feature_key_name(), (
        column.get_embedding_table_size()[1], column.get_max_sequence_length())): None
        for column in columns}  # In the order of use.
    problems = [_not_of_spec(key, width, widths) for key, width in used if widths.get(key) != width]
    sought = _MADE_FOR_COLUMNS.search(str(error)) if error is not None else None
    if sought is not None and sought[1] not in {*widths, *(key for key, _ in used)}:
        problems.append(_not_in_spec(sought[1], widths))
    if problems:
        raise ConfigError(*problems) from error


def _not_of_spec(key: str, width: tuple[int, int], widths: Mapping[str, tuple[int, int]]
                 ) -> Problem:
    if key not in widths:
        return _not_in_spec(key, widths)
    (dimension, length), (planned, planned_length) = width, widths[key]
    return Problem(
        'E497', f'column "{key}"', f'model_fn must use the column of {_PLACE}, of dimension '
        f'{planned} and max_sequence_length {planned_length}',
        f'another one of dimension {dimension} and max_sequence_length {length}',
        'Make the columns once, and pass the same ones to both.')


def _not_in_spec(key: str, widths: Mapping[str, Any]) -> Problem:
    where = f'column "{key}"'
    if not widths:
        return Problem(
            'E496', where, f'{key} is not in {_PLACE}, so nothing looks it up: the estimator has '
            'no columns for tables', remedy='Give TPUEstimator an embedding_config_spec with the '
            'columns that model_fn uses.')
    return Problem(
        'E496', where, f'{key} is not in {_PLACE}, so nothing looks it up for model_fn, which '
        f'uses it; columns there: {quoted(sorted(widths)[:20])}',
        remedy=f'Add the column there.  {did_you_mean(key, widths)}'.rstrip())


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
            raise ConfigError(*map(_used_twice, twice))

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
                _compute(name) if isinstance(
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

    def _ids_of(self, feature: FeatureSpec, combiner: str | None, rows: int) -> IdReader:
        """Returns how a feature of a table with so many rows is read."""
        return IdReader(
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
    empty: tf.Tensor | int = 0
    if isinstance(words, tf.RaggedTensor):
        words = words.to_sparse()
    if isinstance(words, tf.Tensor):
        size = tf.size(words, out_type=tf.int64)
        if words.shape.rank == 1:
            words = tf.expand_dims(words, 1)
        places = tf.where(tf.not_equal(words, ''))
        words = tf.SparseTensor(places, tf.gather_nd(words, places),
                                tf.shape(words, out_type=tf.int64))
        empty = size - tf.size(words.values, out_type=tf.int64)
    return _tf.column_ids(categorical, words), empty


def innermost(column: Any) -> Any:
    """Returns the categorical column that maps words to ids, inside of weights and sequences."""
    while hasattr(column, 'categorical_column'):
        column = column.categorical_column
    return column


def _has_missing_words(categorical: Any) -> bool:
    """Returns whether the column gives -1 for a word that is not in its vocabulary."""
    return (hasattr(categorical, 'num_oov_buckets') and categorical.num_oov_buckets == 0
            and categorical.default_value == MISSING)
