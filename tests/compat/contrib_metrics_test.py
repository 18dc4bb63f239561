"""`tf.contrib.metrics`: numbers of several batches with weights, redone by NumPy."""

import inspect
import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.compat.contrib import slim

N = slim.AREAS['metrics']
LABELS = np.array([1, 0, 1, 1, 0, 1, 0, 0], np.int64)
SCORES = np.array([.9, .2, .4, .7, .6, .8, .1, .3], np.float32)
WEIGHTS = np.array([1, 2, 0, 3, 1, 1, 2, 1], np.float32)
TRUE = LABELS == 1


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def fed(make, *arrays, sizes=(3, 4, 1)):
    """(The values after each batch, the results of the updates) of a metric over slices."""
    holders = [tf.placeholder(array.dtype, [None, *array.shape[1:]]) for array in arrays]
    value, update = make(*holders)
    ends = [0, *itertools.accumulate(sizes)]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        values, updates = [session.run(value)], []
        for start, end in itertools.pairwise(ends):
            updates.append(session.run(update, {
                holder: array[start:end] for holder, array in zip(holders, arrays)}))
            values.append(session.run(value))
    return values, updates


def last(make, *arrays, **kwargs):
    """The value after all batches, which the last update gave too."""
    values, updates = fed(make, *arrays, **kwargs)
    np.testing.assert_allclose(updates[-1], values[-1], rtol=1e-6)
    return values[-1]


def mean(values, weights=WEIGHTS):
    return np.sum(values * weights) / np.sum(weights)


@pytest.mark.parametrize('name, predictions, expected', [
    ('streaming_accuracy', np.round(SCORES), mean(np.round(SCORES) == LABELS)),
    ('streaming_precision', SCORES > .5, mean(TRUE, WEIGHTS * (SCORES > .5))),
    ('streaming_recall', SCORES > .5, mean(SCORES > .5, WEIGHTS * TRUE)),
    ('streaming_false_positive_rate', SCORES > .5, mean(SCORES > .5, WEIGHTS * ~TRUE)),
    ('streaming_false_negative_rate', SCORES > .3, mean(SCORES <= .3, WEIGHTS * TRUE)),
    ('streaming_true_positives', SCORES > .5, np.sum(WEIGHTS * (SCORES > .5) * TRUE)),
    ('streaming_false_positives', SCORES > .5, np.sum(WEIGHTS * (SCORES > .5) * ~TRUE)),
    ('streaming_true_negatives', SCORES > .5, np.sum(WEIGHTS * (SCORES <= .5) * ~TRUE)),
    ('streaming_false_negatives', SCORES > .5, np.sum(WEIGHTS * (SCORES <= .5) * TRUE))])
def test_counts_and_parts_take_predictions_before_labels(name, predictions, expected):
    assert last(N[name], predictions, LABELS, WEIGHTS) == pytest.approx(expected)


def test_sets_and_confusions_are_those_of_today():
    with tf.Session() as session:
        a, b = tf.constant([[1, 2, 3]]), tf.constant([[2, 9, 9]])
        assert session.run(N['set_size'](N['set_union'](a, b))) == [4]
        assert session.run(N['set_size'](N['set_intersection'](a, b))) == [1]
        assert session.run(N['set_size'](N['set_difference'](a, b))) == [2]
        assert session.run(N['confusion_matrix']([0, 1], [1, 1])).tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize('name, first', [
    (name, ['predictions', 'labels', *extra]) for names, extra in (
        ('accuracy auc mean_absolute_error mean_squared_error root_mean_squared_error precision '
         'recall true_positives covariance pearson_correlation false_positive_rate', ['weights']),
        ('precision_at_thresholds recall_at_thresholds false_positives_at_thresholds',
         ['thresholds', 'weights']),
        ('mean_cosine_distance', ['dim', 'weights']), ('mean_iou', ['num_classes', 'weights']),
        ('specificity_at_sensitivity', ['sensitivity', 'weights', 'num_thresholds']),
        ('recall_at_k', ['k', 'weights']),
        ('sparse_recall_at_k sparse_precision_at_k', ['k', 'class_id', 'weights']))
    for name in names.split()])
def test_arguments_have_the_names_and_the_order_of_contrib(name, first):
    assert list(inspect.signature(N[f'streaming_{name}']).parameters)[:len(first)] == first
