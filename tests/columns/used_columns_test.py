"""A model that uses other columns than its spec has: named, before anything is trained."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from tensorflow.python.tpu import feature_column as old

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import ConfigError

BATCH = {'user_id': np.array([1, 2]), 'item_id': np.array([3, 4]), 'label': np.ones(2, np.float32)}


def shared(*keys):
    return ete.shared_embedding_columns([jobs.identity_column(key) for key in keys], 2, 'sum')


def old_columns(*keys):
    return [old.embedding_column(jobs.identity_column(key), 2, 'sum') for key in keys]


def old_shared(*keys):
    return old.shared_embedding_columns(
        [jobs.identity_column(key) for key in keys], 2, 'sum')


def model_fn_of(columns, layer=tf.feature_column.input_layer):
    def model_fn(features, labels, mode, params):
        net = layer(features, columns)
        loss = tf.reduce_mean(tf.layers.dense(net, 1))
        optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1))
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(
            loss, tf.train.get_global_step()))
    return model_fn


def dense_features(features, columns):
    return tf.keras.layers.DenseFeatures(columns)(features)


def train(directory, of_spec, of_model, batch=BATCH, cores=1, **kwargs):
    jobs.estimator(model_fn_of(of_model, **kwargs), of_spec, jobs.run_config(
        directory, cores=cores), batch_size=2).train(jobs.input_fn_of([batch] * 2), max_steps=1)


USER, ITEM = jobs.embedding('user_id'), jobs.embedding('item_id')
LACKED = ('E496 column "item_id": item_id is not in EmbeddingConfigSpec(feature_columns=...), so '
          'nothing looks it up for model_fn, which uses it; columns there: ')


@pytest.mark.parametrize('of_spec, of_model, kwargs, cores', [
    ([USER], [USER, ITEM], {}, 2),
    ([USER], [ITEM, USER], {'layer': dense_features}, 1),
    (shared('user_id', 'item_id')[:1], shared('user_id', 'item_id'), {'layer': dense_features}, 1),
    (old_columns('user_id'), old_columns('user_id', 'item_id'), {}, 1),
    (old_shared('user_id', 'item_id')[:1], old_shared('user_id', 'item_id'), {}, 1)])
def test_a_column_that_the_spec_lacks_is_named(tmp_path, of_spec, of_model, kwargs, cores):
    with tf.Graph().as_default(), pytest.raises(ConfigError) as caught:
        train(tmp_path, of_spec, of_model, cores=cores, **kwargs)
    assert str(caught.value) == f'{LACKED}"user_id".  Add the column there.'
    assert not list(tmp_path.glob('model.ckpt*'))


def test_a_column_whose_ids_pass_for_its_rows_is_named_too(tmp_path):
    """Ids of shape [2] are reshaped to [2, 1] without an error, and were trained with."""
    column = jobs.embedding('item_id', dimension=1)

    def layer(features, columns):
        return tf.cast(tf.feature_column.input_layer(features, columns[:1]), tf.float32)

    with pytest.raises(ConfigError, match='E496 column "item_id": '):
        train(tmp_path, [USER], [column, USER], layer=layer)


WATCHED = tf.feature_column.sequence_categorical_column_with_identity('watched', 10)


@pytest.mark.parametrize('columns', [
    [ete.embedding_column(WATCHED, 2, 'sum', max_sequence_length=3)],
    ete.shared_embedding_columns([WATCHED], 2, 'sum', max_sequence_lengths=[3])])
def test_a_sequence_that_the_spec_lacks_is_named(tmp_path, columns):
    def layer(features, columns):
        net, _ = tf.keras.experimental.SequenceFeatures(columns)(features)
        return net[:, 0]

    batch = {**BATCH, 'watched': np.array([[1, 2, 3], [4, 5, 6]])}
    with pytest.raises(ConfigError, match='E496 column "watched": watched is not in Embedding'):
        train(tmp_path, [USER], columns, batch, layer=layer)


def test_a_column_of_another_width_than_that_of_the_spec_is_named(tmp_path):
    with pytest.raises(ConfigError) as caught:
        train(tmp_path, [jobs.embedding('user_id', dimension=4)],
              [jobs.embedding('user_id', dimension=8)])
    assert str(caught.value) == (
        'E497 column "user_id": model_fn must use the column of EmbeddingConfigSpec('
        'feature_columns=...), of dimension 4 and max_sequence_length 0; got another one of '
        'dimension 8 and max_sequence_length 0.  Make the columns once, and pass the same ones '
        'to both.')


def test_an_initializer_that_is_a_class_is_called_with_a_warning_that_names_its_table(
        tmp_path, caplog):
    column = jobs.embedding('user_id', initializer=tf.ones_initializer)
    train(tmp_path, [column], [column])
    assert ('W430 table "tbl_user_id": initializer is a class, which is called without arguments; '
            'got Ones.  If that is meant, write initializer=Ones(); else give it its arguments '
            'there.') in caplog.text
    table, = (name for name, _ in tf.train.list_variables(str(tmp_path))
              if name.endswith('embedding_weights'))
    untouched = tf.train.load_variable(str(tmp_path), table)[5:]
    assert untouched.size and (untouched == 1).all()
