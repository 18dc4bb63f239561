"""What an error in the user's own model_fn says of the call that it ended."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import ConfigError, Problem
from estimator_tpu_embedding.estimator.model_errors import described

BATCH = {'f': np.array([1, 2, 3, 4]), 'label': np.ones([4, 3], np.float32)}


def notes_of(directory, model_fn, run=None, cores=2, **kwargs):
    """The error that ends a training of `model_fn(net, labels)`."""
    columns = [jobs.embedding('f')]

    def whole(features, labels, mode, params):
        return model_fn(tf.feature_column.input_layer(features, columns), labels)

    run = run or functools.partial(ete.TPUEstimator.train, max_steps=1)
    with pytest.raises(Exception) as caught:
        run(jobs.estimator(whole, columns, jobs.run_config(directory, cores=cores),
                           batch_size=4, **kwargs), lambda params: jobs.dataset_of([
                               {key: value[:4 // cores] for key, value in BATCH.items()}]))
    return caught.value


def squared_error(net, labels):
    return tf.losses.mean_squared_error(labels, tf.layers.dense(net, 2))


def test_labels_of_another_shape_are_told_below_the_error_of_tensorflow(tmp_path):
    error = notes_of(tmp_path, squared_error)
    assert type(error) is ValueError  # TensorFlow's, with its text.
    assert str(error) == 'Shapes (2, 2) and (2, 3) are incompatible'
    assert error.__notes__ == [
        "This happened in model_fn, called in mode 'train' on core 0 of 2, with features "
        "{'f': float32 [2, 2]} and labels float32 [2, 3]."]


def test_evaluation_names_its_mode(tmp_path):
    error = notes_of(tmp_path, squared_error,
                     functools.partial(ete.TPUEstimator.evaluate, steps=1), cores=1)
    assert "in mode 'eval' on core 0 of 1, with features" in error.__notes__[0]


def test_training_without_tpu_says_it_as_well(tmp_path):
    error = notes_of(tmp_path, squared_error, cores=1, use_tpu=False)
    assert error.__notes__ == [
        "This happened in model_fn, called in mode 'train', with features {'f': int64 [4]} and "
        'labels float32 [4, 3].']


def test_errors_of_this_package_name_their_cause_and_get_no_note(tmp_path):
    def model_fn(net, labels):
        raise ConfigError(Problem('E456', 'model_fn', 'sums must be outside of tf.cond'))

    error = notes_of(tmp_path, model_fn)
    assert str(error) == 'E456 model_fn: sums must be outside of tf.cond.'
    assert not hasattr(error, '__notes__')


def test_structures_are_described_by_types_and_shapes():
    with tf.Graph().as_default():
        sparse = tf.sparse.placeholder(tf.int64, [None, 3])
        assert described((None, sparse, {2: tf.placeholder(tf.string), 'a': []}, object())) == (
            "[None, SparseTensor int64 [None, 3], {2: string of unknown shape, 'a': []}, object]")
        many = described({f'{number:02}': tf.constant(1.) for number in range(22)})
    assert many.endswith("'19': float32 [], and 2 more}")
