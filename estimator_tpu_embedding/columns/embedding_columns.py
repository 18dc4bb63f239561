"""Reads the tables, features and words of TPU columns, and checks how a model_fn uses them."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.optimizers import DynamicRate
from ..core.plan import Plan
from ..core.specs import FeatureSpec, TableSpec
from ..core.vocabulary_digests import Words
from ..errors import ConfigError, Problem, UnusedColumnsError, did_you_mean, noted, quoted, shown
from ..proto import files

# TensorFlow still has both, and users test for the classes of their columns.
embedding_column = tf.tpu.experimental.embedding_column
shared_embedding_columns = tf.tpu.experimental.shared_embedding_columns

_PLACE = 'EmbeddingConfigSpec(feature_columns=...)'
_MADE_FOR_COLUMNS = re.compile(r'Feature (.+)(?:_seq_length_|__TENSOR_CORE_MASK) is not in ')
"""TensorFlow's words on the features that a `Featurizer` makes for the columns of a spec."""


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
            problems.append(used_twice(key))
        if isinstance(innermost(column), _tf.computed_columns()):
            tf.logging.warning('%s', Problem(
                'W431', f'column "{key}"', 'no TPU computes a crossed or bucketized column',
                remedy=how_to_compute(key)))
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


def how_to_compute(key: str) -> str:
    """Returns advice on a feature that its column would compute."""
    return (f'Compute the feature "{key}" in input_fn, as ids, and declare it by '
            f'categorical_column_with_identity("{key}", num_buckets).')


def used_twice(key: str) -> Problem:
    """Returns the problem of a feature that two columns look up."""
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

    For a column that the spec lacks, TensorFlow would take the ids for the rows.

    Args:
      columns: those that model_fn used, with an `error` those before it.
      plan: of the spec; `None` without one.
      error: raised by model_fn, maybe for want of a feature that only a column of the spec gets.

    Raises:
      ConfigError: with every column that the spec does not have so.
    """
    declared = {feature.name: (plan.table(feature.table).dimension, feature.max_sequence_length)
                for feature in plan.features} if plan is not None else {}
    problems = []
    for column in columns:
        key = column.get_feature_key_name()
        width = column.get_embedding_table_size()[1], column.get_max_sequence_length()
        if key not in declared:
            problems.append(_not_in_spec(key, declared))
        elif width != declared[key]:
            problems.append(_of_another_width(key, width, declared[key]))
    wanted = _MADE_FOR_COLUMNS.search(str(error))
    if wanted is not None and wanted[1] not in declared:
        problems.append(_not_in_spec(wanted[1], declared))
    if problems:
        raise ConfigError(*dict.fromkeys(problems)) from error


def _of_another_width(key: str, width: tuple[int, int], declared: tuple[int, int]) -> Problem:
    return Problem(
        'E497', f'column "{key}"', f'model_fn must use the column of {_PLACE}, of dimension '
        f'{declared[0]} and max_sequence_length {declared[1]}',
        f'another one of dimension {width[0]} and max_sequence_length {width[1]}',
        'Make the columns once, and pass the same ones to both.')


def _not_in_spec(key: str, declared: Mapping[str, Any]) -> Problem:
    where = f'column "{key}"'
    if not declared:
        return Problem(
            'E496', where, f'{key} is not in {_PLACE}, so nothing looks it up: the estimator has '
            'no columns for tables', remedy='Give TPUEstimator an embedding_config_spec with the '
            'columns that model_fn uses.')
    return Problem(
        'E496', where, f'{key} is not in {_PLACE}, so nothing looks it up for model_fn, which '
        f'uses it; columns there: {quoted(sorted(declared)[:20])}',
        remedy=f'Add the column there.  {did_you_mean(key, declared)}'.rstrip())


def innermost(column: Any) -> Any:
    """Returns the categorical column that maps words to ids, inside of weights and sequences."""
    while hasattr(column, 'categorical_column'):
        column = column.categorical_column
    return column


def words_of(columns: Sequence[Any]) -> list[Words]:
    """Returns the words of all columns that have a vocabulary, by feature; reads no file yet."""
    found = {}
    for column in columns:
        categorical = innermost(column)
        path = getattr(categorical, 'vocabulary_file', None)
        words = getattr(categorical, 'vocabulary_list', None)
        if path is not None and not tf.is_tensor(path):
            path = tf.compat.as_text(tf.compat.path_to_str(path))
            form = getattr(categorical, 'file_format', None)
            found[categorical.key] = Words(
                categorical.key, f'file {shown(path, 255)}',
                functools.partial(_of_file, path), size=categorical.vocabulary_size,
                is_text=form in (None, 'text'), **_rest(categorical))
        elif words is not None:
            found[categorical.key] = Words(
                categorical.key, 'vocabulary_list', functools.partial(_of_list, words),
                size=len(words), **_rest(categorical))
    return [found[feature] for feature in sorted(found)]


def _rest(categorical: Any) -> dict[str, Any]:
    default = categorical.default_value
    return {'num_oov_buckets': int(categorical.num_oov_buckets or 0),
            'default_value': -1 if default is None else int(default)}


def _of_file(path: str) -> Iterator[bytes]:
    """Yields a file in pieces, from any place that TensorFlow reads."""
    try:
        with (tf.io.gfile.GFile(path, 'rb') if '://' in path
              else files.open_regular(path, follow=True)) as file:
            while chunk := file.read(2**20):
                yield chunk
    except (tf.errors.OpError, ValueError) as error:
        raise OSError(str(error)) from error


def _of_list(words: Iterable[Any]) -> Iterator[bytes]:
    for word in words:
        yield (word if isinstance(word, bytes) else str(word).encode()) + b'\n'
