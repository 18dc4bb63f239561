"""Data and numbers that do not fit, as a job meets them: what is said, and what is left alone."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import InputError

PLACES = np.array([[0, 0], [0, 1], [1, 0]])  # Two ids, and one, of the two samples of a core.


def weighted_column():
    return ete.embedding_column(tf.feature_column.weighted_categorical_column(
        jobs.identity_column('f'), 'how_much'), 2, 'sum', initializer=tf.ones_initializer())


def estimator_of(directory, column=None, optimizer=None):
    columns = [column or jobs.embedding('f', initializer=tf.ones_initializer())]
    return jobs.estimator(
        jobs.linear_model_fn(columns), columns,
        jobs.run_config(directory, hosts=2, iterations=1, save_checkpoints_steps=1),
        batch_size=4, optimizer=optimizer)


def input_fn_of(features):
    """Batches for two samples; host 1 calls `features(True)` for its third and later ones."""
    def input_fn(params):
        host = params['context'].current_host
        return tf.data.Dataset.range(9).map(
            lambda number: (features((number >= 2) & bool(host)), tf.ones([2])))
    return input_fn


def sparse(places, values, shape=(2, 2)):
    return tf.SparseTensor(tf.cast(places, tf.int64), values, tf.cast(shape, tf.int64))


def three_ids():
    return tf.constant([1, 2, 3], tf.int64)


def sample_beyond_the_batch(bad):
    return {'f': sparse(tf.where(bad, [[0, 0], [0, 1], [2, 0]], PLACES), three_ids())}


def too_many_samples(bad):
    return {'f': sparse(PLACES, three_ids(), [tf.where(bad, 3, 2), 2])}


def id_beyond_the_vocabulary(bad):
    return {'f': sparse(PLACES, tf.where(bad, tf.constant([1, 10, 3], tf.int64), three_ids()))}


def weights_at_fewer_places(bad):
    kept = tf.where(bad, 2, 3)
    return {'f': sparse(PLACES, three_ids()),
            'how_much': sparse(tf.constant(PLACES)[:kept], tf.ones([3])[:kept])}


def weight_that_is_no_number(bad):
    return {'f': sparse(PLACES, three_ids()),
            'how_much': sparse(PLACES, tf.where(bad, [1., np.nan, 1.], [1., 1., 1.]))}


@pytest.mark.parametrize('features, column, code, text', [
    (sample_beyond_the_batch, None, 'E511', 'samples must be in [0, 2); got 2.'),
    (too_many_samples, None, 'E511', 'the batch must have 2 samples per core; got 3.'),
    (id_beyond_the_vocabulary, None, 'E501', 'ids must be in [0, 10), the vocabulary size of its '
     'table; got 10 in sample 0 (1 in all).'),
    (weights_at_fewer_places, weighted_column, 'E518', 'weights must be at the places of the ids; '
     'got 2 weights for 3 ids.'),
    (weight_that_is_no_number, weighted_column, 'E518', 'weights must be finite; got nan.')])
def test_i01_i05_i08_i09_a_bad_batch_ends_the_run_before_its_step_and_names_its_place(
        tmp_path, features, column, code, text):
    estimator = estimator_of(tmp_path, column and column())
    with pytest.raises(InputError) as caught:
        estimator.train(input_fn_of(features), max_steps=9)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).startswith(f'{code} feature "f" on core 1: {text}')
    assert 'raised by the infeed of host 1 at its batch 3' in caught.value.__notes__
    assert estimator.get_variable_value('global_step') <= 2
    table, = [name for name in estimator.get_variable_names() if name.endswith('weights')]
    assert np.isfinite(estimator.get_variable_value(table)).all()


@pytest.mark.parametrize('splits, text', [
    ([1, 2, 3], 'first element of ragged splits  must be 0'),
    ([0, 5, 3], 'ragged splits must be monotonically increasing'),
    ([0, 1, 9], 'last element of ragged splits must be the number of ragged values')])
def test_i10_ragged_splits_that_do_not_fit_are_refused_by_the_dataset_that_made_them(
        tmp_path, splits, text):
    def features(bad):
        return {'f': tf.RaggedTensor.from_row_splits(three_ids(), tf.where(
            bad, tf.constant(splits, tf.int64), tf.constant([0, 1, 3], tf.int64)),
            validate=False)}

    estimator = estimator_of(tmp_path)
    with pytest.raises(tf.errors.InvalidArgumentError, match=text) as caught:
        estimator.train(input_fn_of(features), max_steps=9)
    assert 'raised by the infeed of host 1 at its batch 3' in caught.value.__notes__
    assert estimator.get_variable_value('global_step') <= 2


def sequence_column():
    return ete.embedding_column(tf.feature_column.sequence_categorical_column_with_identity(
        'f', 10), 2, max_sequence_length=3)


@pytest.mark.parametrize('value, column, text', [
    (np.ones([2], np.float32), None, 'E510 feature "f" on core 0: ids must be int32 or int64; got '
     'float32.'),
    (np.array(['a', 'b']), None, 'E510 feature "f" on core 0: '),
    (np.ones([2, 3, 1, 1], np.int64), sequence_column, 'E516 feature "f" on core 0: a sequence '
     'must have a known rank of 2 or 3; got shape (2, 3, 1, 1).'),
    (np.ones([2], np.int64), sequence_column, 'E516 feature "f" on core 0: a sequence must have a '
     'known rank of 2 or 3; got shape (2,).'),
    (np.ones([3], np.int64), None, 'E511 feature "f" on core 0: the batch must have 2 samples per '
     'core; got shape (3,).')])
def test_what_is_known_to_be_wrong_when_the_graph_is_built_is_refused_then(
        tmp_path, value, column, text):
    with pytest.raises(InputError) as caught:
        estimator_of(tmp_path, column and column()).train(
            input_fn_of(lambda bad: {'f': value}), max_steps=1)
    assert str(caught.value).startswith(text)
    assert not list(tmp_path.glob('model.ckpt*'))
