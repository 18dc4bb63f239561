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


@pytest.mark.parametrize('name, each', [
    ('absolute', np.abs(SCORES - LABELS)), ('squared', (SCORES - LABELS) ** 2)])
def test_errors_are_weighted_means(name, each):
    labels = LABELS.astype(np.float32)
    metric = N[f'streaming_mean_{name}_error']
    assert last(metric, SCORES, labels, WEIGHTS) == pytest.approx(mean(each))
    if name == 'squared':
        assert last(N['streaming_root_mean_squared_error'], SCORES, labels, WEIGHTS
                    ) == pytest.approx(np.sqrt(mean(each)))


def test_a_relative_error_is_that_of_its_predictions_to_a_normalizer():
    """Errors of 1 and 2 of 4 and 8; the other way round they would be of 5 and 6."""
    values, _ = fed(lambda x, y: N['streaming_mean_relative_error'](x, y, y),
                    np.float32([5, 6]), np.float32([4, 8]), sizes=[2])
    assert values[-1] == .25


def test_the_area_under_a_curve_is_the_part_of_pairs_in_order():
    pairs = [(positive > negative) for positive in SCORES[TRUE] for negative in SCORES[~TRUE]]
    assert last(N['streaming_auc'], SCORES, LABELS) == pytest.approx(np.mean(pairs), abs=1e-3)


@pytest.mark.parametrize('name, wrong', [
    ('streaming_false_positive_rate_at_thresholds', ~TRUE),
    ('streaming_false_negative_rate_at_thresholds', TRUE)])
def test_rates_at_thresholds(name, wrong):
    found = last(lambda x, y, w: N[name](x, y, [.25, .5], w), SCORES, LABELS, WEIGHTS)
    above = [mean(SCORES > threshold, WEIGHTS * wrong) for threshold in (.25, .5)]
    np.testing.assert_allclose(found, above if wrong[1] else 1 - np.array(above), rtol=1e-6)


def test_recall_and_precision_at_k_are_of_the_greatest_predictions():
    predictions = np.float32([[.1, .6, .3], [.5, .2, .3], [.2, .3, .5]])  # Best two: 12, 02, 21.
    labels, weights = np.array([2, 1, 1]), np.float32([1, 2, 1])
    for name, expected in (('streaming_recall_at_k', 2 / 4),
                           ('streaming_sparse_recall_at_k', 2 / 4),
                           ('streaming_sparse_precision_at_k', 2 / 8)):
        given = labels if name == 'streaming_recall_at_k' else labels[:, None]
        assert last(lambda x, y, w, name=name: N[name](x, y, 2, weights=w), predictions, given,
                    weights, sizes=[2, 1]) == pytest.approx(expected), name
    best = np.array([[1, 2], [0, 2], [2, 1]])
    assert last(N['streaming_sparse_precision_at_top_k'], best, labels[:, None], sizes=[2, 1]
                ) == pytest.approx(2 / 6)
    assert last(N['sparse_recall_at_top_k'], labels[:, None], best, sizes=[2, 1]
                ) == pytest.approx(2 / 3)


def covariance(x, y, weights):
    return np.cov(x, y, fweights=weights.astype(int))


def test_a_covariance_of_several_batches_is_that_of_all_pairs():
    x, y = SCORES * 10, LABELS.astype(np.float32) + SCORES ** 2
    values, updates = fed(N['streaming_covariance'], x, y, WEIGHTS)
    assert np.isnan(values[0])
    assert values[-1] == updates[-1] == pytest.approx(covariance(x, y, WEIGHTS)[0, 1], rel=1e-5)
    assert values[1] == pytest.approx(covariance(x[:3], y[:3], WEIGHTS[:3])[0, 1], rel=1e-5)
    assert last(N['streaming_covariance'], x, y) == pytest.approx(np.cov(x, y)[0, 1], rel=1e-5)
    assert {one.op.name for one in tf.local_variables('covariance/')} == {
        f'covariance/{name}' for name in ('count', 'mean_prediction', 'mean_label', 'comoment')}
    assert tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) and not tf.global_variables()


def test_a_covariance_far_from_zero_keeps_its_digits_and_an_empty_batch_changes_nothing():
    x = np.float32([10001, 10002, 10003, 10004])
    assert last(N['streaming_covariance'], x, x, sizes=[1, 0, 1, 2]) == pytest.approx(5 / 3)


def test_a_correlation_is_that_of_numpy():
    x, y = SCORES, LABELS.astype(np.float32)
    assert last(N['streaming_pearson_correlation'], x, y) == pytest.approx(
        np.corrcoef(x, y)[0, 1], rel=1e-5)
    matrix = covariance(x, y, WEIGHTS)
    assert last(N['streaming_pearson_correlation'], x, y, WEIGHTS) == pytest.approx(
        matrix[0, 1] / np.sqrt(matrix[0, 0] * matrix[1, 1]), rel=1e-5)


@pytest.mark.parametrize('axis', [0, 1, -1])
def test_concat_keeps_all_batches_along_an_axis(axis):
    whole = np.arange(24).reshape(8, 3)
    given = whole.swapaxes(0, axis)
    holder = tf.placeholder(tf.int64, [None, 3] if axis == 0 else [3, None])
    value, update = N['streaming_concat'](holder, axis)
    assert value.shape.as_list() == holder.shape.as_list()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for end, start in ((1, 0), (1, 1), (6, 1), (8, 6)):
            size = session.run(update, {holder: np.take(given, range(start, end), axis)})
            assert size == end
            assert (session.run(value) == np.take(given, range(end), axis)).all()


def test_concat_drops_what_is_beyond_its_size():
    values, updates = fed(lambda x: N['streaming_concat'](x, max_size=5), LABELS)
    assert updates == [3, 5, 5] and (values[-1] == LABELS[:5]).all()


@pytest.mark.parametrize('shape, axis, text', [
    (None, 0, 'must have known statically known rank'), ([2], 1, r'axis = 1 not in \[0, 1\)'),
    ([2, None], 0, 'other than the dimension to concatenate along')])
def test_concat_refuses_shapes_that_say_too_little(shape, axis, text):
    with pytest.raises(ValueError, match=text):
        N['streaming_concat'](tf.placeholder(tf.float32, shape), axis)


def test_count_is_of_values_or_weights():
    assert last(N['count'], SCORES) == 8
    assert last(N['count'], SCORES, WEIGHTS) == WEIGHTS.sum()


def test_kappa_compares_agreement_with_chance():
    """Of weights 1, 1, 1, 1, 2 raters agree in 4 of 6; by chance in (3 * 3 + 3 * 3) / 6 = 3."""
    one, other = np.array([0, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 0])
    agreed = 3 / 5
    by_chance = (2 * 4 + 3 * 1) / 25
    assert last(lambda x, y: N['cohen_kappa'](x, y, 2), one, other, sizes=[2, 3]
                ) == pytest.approx((agreed - by_chance) / (1 - by_chance))
    weights = np.float32([1, 1, 1, 1, 2])
    agreed, by_chance = 3 / 6, (2 * 5 + 4 * 1) / 36
    assert last(lambda x, y, w: N['cohen_kappa'](x, y, 2, w), one, other, weights, sizes=[2, 3]
                ) == pytest.approx((agreed - by_chance) / (1 - by_chance))
    with pytest.raises(ValueError, match='`num_classes` must be >= 2.Found: 1'):
        N['cohen_kappa'](one, other, 1)


def test_f1_is_the_best_of_all_thresholds():
    """Above .35 are .9 .4 .7 .6 .8 with four of four positives: precision 4/5, recall 1."""
    assert last(N['f1_score'], LABELS, SCORES) == pytest.approx(2 * .8 / 1.8, rel=1e-5)


def test_accuracy_is_of_one_batch():
    with tf.Session() as session:
        one, two = tf.constant([1, 2, 3]), tf.constant([1, 5, 3])
        assert session.run(N['accuracy'](tf.constant(['a', 'b']), tf.constant(['a', 'c']))) == .5
        assert session.run(N['accuracy'](one, two, [1., 2., 1.])) == .5
    with pytest.raises(ValueError, match='should have bool, integer, or string dtype, not'):
        N['accuracy'](tf.constant([1.]), tf.constant([1.]))
    with pytest.raises(ValueError, match='Dtypes of predictions and labels should match'):
        N['accuracy'](one, one > 1)


def test_metrics_are_aggregated_and_put_into_collections():
    pair = N['streaming_mean'](SCORES, metrics_collections='values', updates_collections=['steps'])
    other = N['count'](tf.constant(SCORES), metrics_collections='values',
                       updates_collections=['steps'])
    values, updates = N['aggregate_metrics'](pair, other)
    assert tf.get_collection('values') == values and tf.get_collection('steps') == updates
    named = N['aggregate_metric_map']({'mean': pair, 'count': other})
    assert named == (dict(zip(('mean', 'count'), values)), dict(zip(('mean', 'count'), updates)))
    with pytest.raises(ValueError, match='Expected at least one value_tensor/update_op pair'):
        N['aggregate_metrics']()


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
