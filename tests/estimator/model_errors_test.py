"""What an error in the user's own model_fn says of the call that it ended."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.errors import ConfigError, Problem

BATCH = {'f': np.array([1, 2, 3, 4]), 'label': np.ones([4, 3], np.float32)}


def error_of(directory, model_fn, run=None, cores=2, **kwargs):
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


def test_labels_of_another_shape_are_told_below_the_error_of_tensorflow(tmp_path):
    error = error_of(tmp_path, lambda net, labels: tf.losses.mean_squared_error(
        labels, tf.layers.dense(net, 2)))
    assert type(error) is ValueError  # TensorFlow's, with its text.
    assert str(error) == 'Shapes (2, 2) and (2, 3) are incompatible'
    assert error.__notes__ == [
        "This happened in model_fn, called in mode 'train' on core 0 of 2, with features "
        "{'f': float32 [2, 2]} and labels float32 [2, 3]."]


def test_errors_of_this_package_name_their_cause_and_get_no_note(tmp_path):
    def model_fn(net, labels):
        raise ConfigError(Problem('E456', 'model_fn', 'sums must be outside of tf.cond'))

    error = error_of(tmp_path, model_fn)
    assert str(error) == 'E456 model_fn: sums must be outside of tf.cond.'
    assert not hasattr(error, '__notes__')


@pytest.mark.parametrize('returned, note', [
    (None, 'model_fn returned nothing: it may lack a return.'),
    (3, 'Return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, ...).'),
    ('spec', 'takes eval_metrics=(function, tensors) in place of eval_metric_ops')])
def test_what_is_no_spec_of_a_tpu_is_told_what_to_return(tmp_path, returned, note):
    def model_fn(net, labels):
        return _legacy.load().EstimatorSpec(
            'eval', loss=tf.reduce_mean(net)) if returned == 'spec' else returned

    error = error_of(tmp_path, model_fn, functools.partial(ete.TPUEstimator.evaluate, steps=1))
    assert str(error).startswith('estimator_spec used by TPU evaluation must have type')
    assert note in error.__notes__[0]


@pytest.mark.parametrize('function, tensors, text', [
    (lambda labels, net: {'m': tf.metrics.mean_squared_error(labels, net)}, [], 'incompatible'),
    (lambda net: {'m': tf.metrics.mean(net)}, {}, "unexpected keyword argument 'labels'")])
def test_an_error_of_the_metrics_says_what_they_were_given(tmp_path, function, tensors, text):
    def model_fn(net, labels):
        given = {'labels': labels, 'net': net} if tensors == {} else [labels, net]
        return ete.TPUEstimatorSpec(
            'eval', loss=tf.reduce_mean(net), eval_metrics=(function, given))

    error = error_of(tmp_path, model_fn, functools.partial(ete.TPUEstimator.evaluate, steps=1))
    assert text in str(error)
    note, = error.__notes__
    assert note.startswith('This happened in the function eval_metrics[0] of the '
                           'TPUEstimatorSpec, with tensors ')
    assert 'float32 [4, 3]' in note and 'float32 [4, 2]' in note


def test_columns_in_the_place_of_a_spec_are_refused(tmp_path):
    with pytest.raises(ConfigError) as caught:
        ete.TPUEstimator(
            model_fn=lambda features, params: None, config=jobs.run_config(tmp_path),
            train_batch_size=8, embedding_config_spec=[jobs.embedding('f')])
    assert str(caught.value) == (
        'E499 TPUEstimator: embedding_config_spec must be an EmbeddingConfigSpec; got list.  Give '
        'EmbeddingConfigSpec(feature_columns=columns, optimization_parameters=...).')
