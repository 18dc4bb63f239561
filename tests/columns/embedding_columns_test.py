import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import feature_column as old

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _tf
from estimator_tpu_embedding.columns import embedding_columns
from estimator_tpu_embedding.columns.featurizer import Featurizer
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.errors import ConfigError, InputError, InputShapeError
from estimator_tpu_embedding.ops import checks

fc = tf.feature_column


def identity(key, buckets=10):
    return fc.categorical_column_with_identity(key, buckets)


def words(key, vocabulary=('red', 'green', 'blue'), **kwargs):
    return fc.categorical_column_with_vocabulary_list(key, list(vocabulary), **kwargs)


def read(columns, features, batch_size=3):
    """What a Featurizer makes of arrays: {feature: (samples, ids, seen, missing)}, rest."""
    tables, specs = embedding_columns.columns_to_specs(columns)
    plan = resolve(tables, specs, Topology(), batch_size=batch_size, mode='inference')
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = {key: tf.SparseTensor.from_value(value)
                   if isinstance(value, tf.SparseTensorValue) else
                   value() if callable(value) else tf.constant(value)
                   for key, value in features.items()}
        given = dict(tensors)
        result = Featurizer(columns, plan)(tensors, 3)
        assert tensors == given  # the user's dict is left alone
        session.run(tf.tables_initializer())
        found = {}
        for name, batch in result.batches.items():
            counts = tf.nest.map_structure(tf.convert_to_tensor, result.counts[name])
            values = session.run([batch.samples, batch.ids, counts.seen, counts.missing])
            found[name] = tuple(value.tolist() for value in values)
        return found, sorted(result.rest)


def test_names_tables_and_features_are_those_of_the_original():
    shared = ete.shared_embedding_columns([identity('d'), identity('c')], 4, 'sum')
    tables, features = embedding_columns.columns_to_specs(
        [ete.embedding_column(identity('a', 7), 2), *shared])
    assert [(t.name, t.vocabulary_size, t.dimension, t.combiner) for t in tables] == [
        ('tbl_a', 7, 2, 'mean'), ('tbl_c_d_shared_embedding', 10, 4, 'sum')]
    assert features == [FeatureSpec(name='a', table='tbl_a'),
                        FeatureSpec(name='d', table='tbl_c_d_shared_embedding'),
                        FeatureSpec(name='c', table='tbl_c_d_shared_embedding')]


def test_words_are_mapped_by_the_column_and_unknown_or_empty_ones_are_missing():
    column = ete.embedding_column(words('w'), 2)
    expected = ([0, 2], [1, 0], 2, 1)
    assert read([column], {'w': ['green', 'pink', 'red']})[0]['w'] == expected
    assert read([column], {'w': [['green'], [''], ['red']]})[0]['w'] == expected
    sparse = tf.SparseTensorValue([[0, 0], [1, 0], [2, 0]],
                                  np.array([b'green', b'pink', b'red']), [3, 1])
    assert read([column], {'w': sparse})[0]['w'] == expected
    assert read([column], {'w': lambda: tf.ragged.constant([['green'], ['pink'], ['red']])})[
        0]['w'] == expected
    # Integers are ids, and -1 is a word that was already found unknown.
    assert read([column], {'w': [1, -1, 0]})[0]['w'] == expected


@pytest.mark.parametrize('column', [
    identity('w'), words('w', num_oov_buckets=2), words('w', default_value=0)])
def test_minus_one_is_an_error_where_the_column_never_gives_it(column):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        read([ete.embedding_column(column, 2)], {'w': [1, -1, 0]})
    assert checks.message_to_problem(caught.value.message).code == 'E501'


def test_dense_ids_of_rank_2_warn_once_that_zero_is_missing(caplog):
    column = ete.embedding_column(identity('a'), 2)
    with caplog.at_level(logging.WARNING, 'tensorflow'):
        assert read([column], {'a': [[0, 3], [2, 0], [1, 1]]})[0]['a'] == (
            [0, 1, 2, 2], [3, 2, 1, 1], 4, 2)
    assert caplog.text.count('0 means that an id is missing') == 1
    caplog.clear()
    with caplog.at_level(logging.WARNING, 'tensorflow'):
        read([column], {'a': [0, 3, 2]})
    assert 'missing' not in caplog.text


def test_i12_every_missing_feature_is_named_with_what_there_is():
    weighted = fc.weighted_categorical_column(identity('b'), 'weights_of_b')
    columns = [ete.embedding_column(one, 2) for one in (identity('a'), weighted, identity('c'))]
    with pytest.raises(InputShapeError) as caught:
        read(columns, {'b': [1, 2, 3], 'x': [0., 0., 0.]})
    *missing, weights = str(caught.value).splitlines()
    assert missing == [
        f'E513 feature "{key}": input_fn must return every feature of the embedding spec; got '
        'only "b", "x".' for key in 'ac']
    assert weights.startswith('E513 feature "weights_of_b": ')


@pytest.mark.parametrize('make, key', [
    (lambda: fc.crossed_column(['a', 'b'], 7), 'a_X_b'),
    (lambda: fc.bucketized_column(fc.numeric_column('a'), [0., 1.]), 'a_bucketized')])
def test_the_way_out_for_a_column_that_no_tpu_computes_is_told_early_and_where_it_fails(
        make, key, caplog):
    column = ete.embedding_column(make(), 2)
    way_out = (f'Compute the feature "{key}" in input_fn, as ids, and declare it by '
               f'categorical_column_with_identity("{key}", num_buckets).')
    with pytest.raises(InputShapeError) as caught:
        read([column], {'a': [1, 2, 3], 'b': [1, 2, 3]})
    assert str(caught.value).startswith(f'E513 feature "{key}"') and way_out in str(caught.value)
    assert f'W431 column "{key}"' in caplog.text and way_out in caplog.text


def test_weights_that_are_shared_or_dense_get_the_words_of_the_original():
    def column(key):
        return ete.embedding_column(fc.weighted_categorical_column(identity(key), 'w'), 2)

    places = dict(indices=[[0, 0]], dense_shape=[3, 1])
    ids = tf.SparseTensorValue(values=np.array([5]), **places)
    weights = tf.SparseTensorValue(values=np.array([.5]), **places)
    with pytest.raises(ValueError, match='E513 feature "w": .*; got those of "a", "b".*Also note '
                       'weight-sharing among weighted_categorical_column is not supported on TPU'):
        read([column('a'), column('b')], {'a': ids, 'b': ids, 'w': weights})
    with pytest.raises(ValueError, match='E517 feature "a" on core 3: .*; got "w", a dense tensor. '
                       ' Dense weights are not supported on TPU. Please use sparse weights'):
        read([column('a')], {'a': ids, 'w': np.ones([3, 1], np.float32)})


def test_words_for_an_identity_column_are_refused_with_the_remedy():
    with pytest.raises(InputError, match='E510 feature "a" on core 3: .*vocabulary_list'):
        read([ete.embedding_column(identity('a'), 2)], {'a': ['x', 'y', 'z']})


def test_a_feature_of_two_columns_is_refused():
    with pytest.raises(ConfigError, match='E434 feature "a": Feature column a is used with '
                                          'multiple embeddings and this is not supported'):
        embedding_columns.columns_to_specs([
            ete.embedding_column(identity('a'), 2),
            *ete.shared_embedding_columns([identity('a'), identity('b')], 2)])


@pytest.mark.parametrize('make, table, rows, feature', [
    (lambda: fc.weighted_categorical_column(identity('a', 9), 'w'), 'tbl_a_weighted_by_w', 9,
     FeatureSpec(name='a', table='tbl_a_weighted_by_w', weight_feature='w')),
    (lambda: fc.sequence_categorical_column_with_identity('a', 9), 'tbl_a', 9,
     FeatureSpec(name='a', table='tbl_a', max_sequence_length=3)),
    (lambda: fc.categorical_column_with_hash_bucket('a', 7), 'tbl_a', 7,
     FeatureSpec(name='a', table='tbl_a')),
    (lambda: fc.categorical_column_with_vocabulary_list('a', ['x', 'y'], num_oov_buckets=3),
     'tbl_a', 5, FeatureSpec(name='a', table='tbl_a')),
    (lambda: fc.bucketized_column(fc.numeric_column('a'), [0., 1.]), 'tbl_a_bucketized', 3,
     FeatureSpec(name='a_bucketized', table='tbl_a_bucketized'))])
def test_every_kind_of_categorical_column_declares_a_table_and_a_feature(
        make, table, rows, feature):
    column = ete.embedding_column(
        make(), 2, max_sequence_length=feature.max_sequence_length, combiner='sqrtn')
    assert embedding_columns.columns_to_specs([column]) == (
        [TableSpec(name=table, vocabulary_size=rows, dimension=2, combiner='sqrtn')], [feature])


def test_a_weighted_column_takes_weights_from_their_feature_and_both_leave_the_rest():
    column = ete.embedding_column(fc.weighted_categorical_column(identity('a'), 'w'), 2)
    places = dict(indices=[[0, 0], [2, 0]], dense_shape=[3, 1])
    features = {'a': tf.SparseTensorValue(values=np.array([5, 7]), **places),
                'w': tf.SparseTensorValue(values=np.array([.5, 2.]), **places), 'x': np.ones(3)}
    found, rest = read([column], features)
    assert (found, rest) == ({'a': ([0, 2], [5, 7], 2, 0)}, ['x'])


@pytest.mark.parametrize('make, value', [
    (fc.sequence_categorical_column_with_identity,
     tf.SparseTensorValue([[0, 1], [2, 0]], np.array([1, 2]), [3, 4])),
    (lambda key, _: fc.sequence_categorical_column_with_vocabulary_list(key, ['x', 'y', 'z']),
     tf.SparseTensorValue([[0, 1], [2, 0]], np.array(['y', 'z']), [3, 4]))])
def test_a_sequence_column_adds_the_lengths_of_its_sequences_to_the_rest(make, value):
    column = ete.embedding_column(make('a', 9), 2, max_sequence_length=2)
    found, rest = read([column], {'a': value})
    assert (found, rest) == ({'a': ([1, 4], [1, 2], 2, 0)}, ['a_seq_length_'])


def record(columns, layer_columns):
    """The names that the columns record when a model uses some of them."""
    with tf.Graph().as_default() as graph, _tf.tpu_shard_context(2):
        features = {column.get_feature_key_name(): tf.zeros([3, 2]) for column in columns}
        if layer_columns:
            with tf.variable_scope('outer'):
                tf.keras.layers.DenseFeatures(layer_columns)(features)
        return embedding_columns.variable_names(columns, graph)


def test_variable_names_are_those_that_the_layer_gives():
    columns = [ete.embedding_column(identity('a'), 2),
               *ete.shared_embedding_columns([identity('c'), identity('d')], 2)]
    assert record(columns, columns) == {
        'tbl_a': 'outer/dense_features/a_embedding/embedding_weights',
        'tbl_c_d_shared_embedding': 'outer/c_d_shared_embedding'}


def test_old_columns_have_the_names_that_input_layer_gives():
    columns = [old.embedding_column(identity('a'), 2),
               *old.shared_embedding_columns([identity('c'), identity('d')], 2)]
    with tf.Graph().as_default() as graph, _tf.tpu_shard_context(2):
        with tf.variable_scope('outer'), tf.variable_scope('inner'):
            tf.feature_column.input_layer({key: tf.zeros([3, 2]) for key in 'acd'}, columns)
        assert embedding_columns.variable_names(columns, graph) == {
            'tbl_a': 'outer/inner/input_layer/a_embedding/embedding_weights',
            'tbl_c_d_shared_embedding':
                'outer/inner/input_layer/c_d_shared_embedding/embedding_weights'}


def test_two_tables_of_one_variable_name_are_refused():
    columns = [ete.embedding_column(identity('a'), 2), *ete.shared_embedding_columns(
        [identity('c')], 2, shared_embedding_collection_name='dense_features/a_embedding/'
        'embedding_weights')]
    with pytest.raises(ConfigError) as caught:
        record(columns, columns)
    assert [problem.code for problem in caught.value.problems] == ['E437', 'E437']
    assert 'got "outer/dense_features/a_embedding/embedding_weights"' in str(caught.value)


def test_a_column_that_the_model_does_not_use_is_named():
    columns = [ete.embedding_column(identity(key), 2) for key in 'ab']
    with pytest.raises(ConfigError, match='E436 column "b": .*drop it from the spec'):
        record(columns, columns[:1])


def test_a_model_that_uses_no_column_at_all_gets_the_original_text():
    with pytest.raises(RuntimeError, match='did not capture any thing. Make sure the feature '
                                           'columns passed to TPUEstimator constructor'):
        record([ete.embedding_column(identity('a'), 2)], [])
