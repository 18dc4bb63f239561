"""Prepares features for graphs without the embedding engine: exports, evaluation on the CPU.

In such a graph columns look up rows themselves, and they read some features in another way than
the engine. They take a 0 in a matrix for an id. They let sequences be as long as the longest of the
batch. They have no policy for ids out of range. A model that the engine trained must get the ids
that the engine would read, so this module rewrites the features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.specs import FeatureSpec, TableSpec
from ..errors import Problem, UnsupportedError
from ..ops import checks, combine, ids
from .embedding_columns import innermost
from .featurizer import to_sparse


def with_ids(features: Mapping[str, Any], columns: Sequence[Any], declared: Sequence[FeatureSpec],
             keeps_dense: bool = False) -> dict[str, Any]:
    """Returns the features so that columns look up the rows that the engine would.

    A feature that no column reads stays as it is. A dense one without weights stays dense if
    `keeps_dense` is true: TPU graphs make batches of nothing else.

    Raises:
      UnsupportedError: for numbers where a column maps a vocabulary: the engine takes them as
        ids.
    """
    read = dict(features)
    for column, feature in zip(columns, declared):
        if feature.name not in features:
            continue  # The column will say so.
        is_text = features[feature.name].dtype == tf.string
        if not is_text and not isinstance(innermost(column), _tf.identity_columns()):
            raise UnsupportedError(Problem(
                'E919', f'feature "{feature.name}"', 'a graph without the embedding engine maps '
                'the vocabulary of its column itself', 'ids, which the engine takes as they are',
                'Give it the words of the vocabulary.'))
        read[feature.name], weights = _read(
            features, feature, column.get_combiner(),
            None if is_text else column.get_embedding_table_size()[0])
        if weights is not None:
            read[feature.weight_feature or ''] = weights
        elif keeps_dense and isinstance(features[feature.name], tf.Tensor):
            dense = tf.sparse.to_dense(read[feature.name], '' if is_text else -1)  # No id.
            rank = features[feature.name].shape.rank
            read[feature.name] = tf.squeeze(dense, 1) if rank == 1 else tf.ensure_shape(
                dense, [None] * rank)
    return read


def with_activations(features: Mapping[str, Any], tables: Sequence[TableSpec],
                     declared: Sequence[FeatureSpec]) -> dict[str, Any]:
    """Returns the features with activations in the place of ids, for models without columns.

    The tables become variables of the default graph, under their own names.
    """
    by_name = {table.name: table for table in tables}
    given = dict(features)
    for feature in declared:
        table = by_name[feature.table]
        if feature.name not in features:
            continue
        found, weights = _read(features, feature, table.combiner, table.vocabulary_size)
        with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
            variable = tf.get_variable(
                table.name, [table.vocabulary_size, table.dimension], trainable=False,
                initializer=tf.zeros_initializer())
        length = feature.max_sequence_length
        samples, count = found.indices[:, 0], found.dense_shape[0]
        if length:
            ends = tf.math.unsorted_segment_max(found.indices[:, 1] + 1, samples, count)
            samples, count = samples * length + found.indices[:, 1], count * length
            given[f'{feature.name}_seq_length_'] = tf.maximum(ends, 0)
        batch = ids.IdBatch(samples, found.values, count, weights and weights.values)
        activations = combine.combine(tf.gather(variable, batch.ids), batch, table.combiner)
        given[feature.name] = tf.reshape(
            activations, [-1, length, table.dimension] if length else [-1, table.dimension])
    return given


def _read(features: Mapping[str, Any], feature: FeatureSpec, combiner: str | None,
          vocabulary_size: int | None) -> tuple[tf.SparseTensor, tf.SparseTensor | None]:
    """Returns the ids that the engine would read of a feature, and their weights if it has any.

    Without a vocabulary size they are words.
    """
    has_gaps = combiner is not None or feature.max_sequence_length > 0
    value = to_sparse(features[feature.name], has_gaps)
    kept = tf.range(tf.size(value.values))
    shape = value.dense_shape
    if feature.max_sequence_length:
        kept = checks.masked(kept, value.indices[:, 1] < feature.max_sequence_length)
        shape = tf.concat([shape[:1], [feature.max_sequence_length], shape[2:]], 0)
    values = tf.gather(value.values, kept)
    if vocabulary_size is not None:
        samples = (tf.gather(value.indices[:, 0], kept) if feature.id_policy == 'error'
                   else tf.range(tf.size(kept)))
        batch, _ = ids.check(
            f'feature "{feature.name}"', ids.Reading(
                ids.IdBatch(samples, tf.cast(values, tf.int64), 0), 0, 0),
            vocabulary_size=vocabulary_size, policy=feature.id_policy)
        values = batch.ids
        if feature.id_policy != 'error':  # Which may drop some.
            kept = tf.gather(kept, batch.samples)

    def of(numbers: tf.Tensor) -> tf.SparseTensor:
        return tf.SparseTensor(tf.gather(value.indices, kept), numbers, shape)

    weights = features.get(feature.weight_feature) if feature.weight_feature else None
    return of(values), None if weights is None else of(
        tf.gather(to_sparse(weights, has_gaps).values, kept))
