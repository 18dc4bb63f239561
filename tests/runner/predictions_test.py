"""What predict promises: a row for every sample, none for padding, in an order one can state."""

import contextlib
import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs
from harness.parts import soak_except
from harness.waiting import until

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import InputPipelineError, InputShapeError
from estimator_tpu_embedding.runner import job_run, progress

ROWS, BATCH = 13, 4
TABLE = 'dense_features/f_embedding/embedding_weights'
VALUES = np.stack([np.arange(ROWS), np.arange(ROWS) ** 2], 1).astype(np.float32)


def make(tmp_path, hosts=1, cores=1, strategy='div', model_fn=None, columns=None, **kwargs):
    columns = columns or [jobs.embedding('f', ROWS)]
    return jobs.estimator(
        (model_fn or jobs.linear_model_fn)(columns), columns,
        jobs.run_config(tmp_path, hosts, cores), strategy=strategy,
        **{'batch_size': BATCH * hosts * cores, **kwargs})


def with_values(strategy='div'):
    return jobs.AssignTable(TABLE, VALUES, strategy)


def ids_input_fn(*ids_of_host, drop_remainder=False):
    """The ids of each host, one per sample, in batches as asked for."""
    def input_fn(params):
        ids = np.asarray(ids_of_host[params['context'].current_host], np.int64)
        return tf.data.Dataset.from_tensor_slices({'f': ids}).batch(
            params['batch_size'], drop_remainder=drop_remainder)
    return input_fn


def predicted_ids(estimator, input_fn, strategy='div', **kwargs):
    """The ids that `estimator` saw, told by the rows that it predicts."""
    rows = list(estimator.predict(input_fn, hooks=[with_values(strategy)], **kwargs))
    assert all((row['net'] == VALUES[int(row['net'][0])]).all() for row in rows)
    assert all(row['y'] == row['net'].sum() for row in rows)
    return [int(row['net'][0]) for row in rows]


def dealt(ids_of_host, cores):
    """The documented order: per step host by host, and of each as much as its cores take."""
    per_step = cores * BATCH
    steps = max(-(-len(ids) // per_step) for ids in ids_of_host)
    return [one for step in range(steps) for ids in ids_of_host
            for one in ids[step * per_step:(step + 1) * per_step]]


@pytest.mark.parametrize('hosts, cores, strategy', soak_except([
    (1, 1, 'div'), (1, 3, 'mod'), (2, 2, 'div'), (2, 2, 'mod'), (3, 1, 'div'), (3, 1, 'mod')],
    3))
def test_i14_there_is_one_row_per_sample_in_order_for_any_number_of_samples(
        tmp_path, hosts, cores, strategy):
    estimator = make(tmp_path, hosts, cores, strategy)
    whole = BATCH * cores
    for size in sorted({0, 1, BATCH - 1, BATCH, BATCH + 1, whole, whole + 1, 2 * whole}):
        ids_of_host = [[(host + one) % ROWS for one in range(size)] for host in range(hosts)]
        assert predicted_ids(estimator, ids_input_fn(*ids_of_host), strategy) == dealt(
            ids_of_host, cores), size


@pytest.mark.parametrize('sizes', [(0, 5), (3, 17)])
def test_hosts_whose_data_ends_at_different_times_all_give_all_their_rows(tmp_path, sizes):
    ids_of_host = [[one % ROWS for one in range(size)] for size in sizes]
    estimator = make(tmp_path, 2, 2, 'mod')
    assert predicted_ids(estimator, ids_input_fn(*ids_of_host), 'mod') == dealt(ids_of_host, 2)


@pytest.mark.parametrize('form', ['sparse', 'ragged', 'matrix', 'weighted', 'sequence', 'words'])
def test_i14_padding_has_no_ids_whatever_the_form_of_the_feature(tmp_path, form):
    lists = [[1, 2], [3], [4, 5], [6, 1], [2]]  # the last one alone in its batch
    categorical = jobs.identity_column('f', ROWS)
    if form == 'words':
        categorical = tf.feature_column.categorical_column_with_vocabulary_list(
            'f', [str(one) for one in range(ROWS)])
    elif form == 'weighted':
        categorical = tf.feature_column.weighted_categorical_column(categorical, 'w')
    elif form == 'sequence':
        categorical = tf.feature_column.sequence_categorical_column_with_identity('f', ROWS)
    columns = [ete.embedding_column(categorical, 2, 'sum',
                                    max_sequence_length=2 if form == 'sequence' else 0)]

    def input_fn(params):
        texts = [[str(one) if form == 'words' else one for one in ids] for ids in lists]

        def of(ids):
            if form in ('matrix', 'words'):
                return {'f': ids.to_tensor()}
            value = ids if form == 'ragged' else ids.to_sparse()
            return {'f': value, 'w': value.with_values(tf.ones_like(value.values, tf.float32))
                    } if form == 'weighted' else {'f': value}
        return tf.data.Dataset.from_tensor_slices(tf.ragged.constant(texts)).batch(
            params['batch_size']).map(of)

    def model_fn(features, mode, params):
        if form == 'sequence':
            net, lengths = tf.keras.experimental.SequenceFeatures(columns)(features)
            return ete.TPUEstimatorSpec(mode, predictions={
                'net': tf.reduce_sum(net, 1), 'lengths': lengths})
        return ete.TPUEstimatorSpec(mode, predictions={
            'net': tf.keras.layers.DenseFeatures(columns)(features)})

    table = {'weighted': 'dense_features/f_weighted_by_w_embedding/embedding_weights',
             'sequence': 'sequence_features/f_embedding/embedding_weights'}.get(form, TABLE)
    rows = list(make(tmp_path, 1, 2, model_fn=lambda _: model_fn, columns=columns).predict(
        input_fn, hooks=[jobs.AssignTable(table, VALUES, 'div')]))
    assert [row['net'].tolist() for row in rows] == [VALUES[ids].sum(0).tolist() for ids in lists]
    if form == 'sequence':
        assert [row['lengths'] for row in rows] == [2, 1, 2, 2, 1]
    counts = progress.reports()[-1].counts['f']
    # The matrix of the first batch of four has one place without an id.
    assert (counts.seen, counts.missing) == (8, int(form in ('matrix', 'words')))


def plain_model_fn(make_predictions, **kwargs):
    """A model of the feature `x`, without tables."""
    def model_fn(features, labels, mode, params):
        predictions = make_predictions(features['x'])
        return ete.TPUEstimatorSpec(mode, predictions=predictions, **kwargs)
    return model_fn


def plain(tmp_path, make_predictions, hosts=1, cores=1, **kwargs):
    """An estimator without tables; four samples per core."""
    return ete.TPUEstimator(
        plain_model_fn(make_predictions, **kwargs), config=jobs.run_config(tmp_path, hosts, cores),
        train_batch_size=BATCH * hosts * cores, predict_batch_size=BATCH * hosts * cores)


def numbers_input_fn(count):
    return lambda params: tf.data.Dataset.range(count).map(
        lambda one: {'x': tf.cast(one, tf.float32)}).batch(params['batch_size'])


def test_predictions_may_be_one_tensor(tmp_path):
    estimator = plain(tmp_path, lambda x: 2 * x, cores=2)
    assert list(estimator.predict(numbers_input_fn(6))) == [0, 2, 4, 6, 8, 10]
    with pytest.raises(ValueError, match='not valid in case of non-dict predictions'):
        next(estimator.predict(numbers_input_fn(6), predict_keys=['y']))


def test_keys_filter_and_whole_steps_may_be_asked_for(tmp_path):
    estimator = plain(tmp_path, lambda x: {'a': x, 'b': -x}, hosts=1, cores=2)
    assert list(estimator.predict(numbers_input_fn(2), predict_keys=['b'])) == [
        {'b': 0}, {'b': -1}]
    steps = list(estimator.predict(numbers_input_fn(11), yield_single_examples=False))
    assert [step['a'].tolist() for step in steps] == [list(range(8)), [8, 9, 10]]
    with pytest.raises(ValueError, match='Expected to run at least one output from'):
        next(estimator.predict(numbers_input_fn(2), predict_keys=['c']))


def test_a_prediction_without_a_row_per_sample_is_for_whole_steps_of_full_batches(tmp_path):
    estimator = plain(tmp_path, lambda x: {'x': x, 'sum': tf.reduce_sum(x, keepdims=True)}, cores=2)
    steps = estimator.predict(numbers_input_fn(9), yield_single_examples=False)
    first = next(steps)
    assert first['x'].tolist() == list(range(8)) and first['sum'].tolist() == [6, 22]
    with pytest.raises(InputShapeError, match='E523 prediction "sum": .*batch of 4 samples'):
        next(steps)
    with pytest.raises(ValueError, match='Batch length of predictions should be same. sum has'):
        next(estimator.predict(numbers_input_fn(8)))


@pytest.mark.parametrize('make_predictions, error, text', [
    (lambda x: {'y': tf.reduce_sum(x)}, RuntimeError,
     'All tensors outfed from TPU should preserve batch size dimension, but got scalar'),
    (lambda x: {'y': tf.boolean_mask(x, x > 0)}, ValueError,
     'The tensor with key (y) in TPUEstimatorSpec.predictions has dynamic shape (should be '
     'static). Tensor: '),
    (lambda x: {'y': tf.zeros([BATCH, 2**26])}, ValueError,
     'The estimated size for TPUEstimatorSpec.predictions is too large. The transfer size is '),
    (lambda x: [x], TypeError, 'predictions must be Tensor, given: ['),
    (lambda x: None, ValueError, 'Missing predictions.')])
def test_predictions_that_are_no_rows_get_the_errors_of_the_original(
        tmp_path, make_predictions, error, text):
    with pytest.raises(error) as caught:
        next(plain(tmp_path, make_predictions).predict(numbers_input_fn(4)))
    assert text in str(caught.value)


@pytest.mark.parametrize('element, text', [
    ({'x': np.zeros(5, np.float32)}, 'The real batch size should not be greater than batch_size'),
    ({'x': np.zeros(3, np.float32), 'z': np.zeros(2, np.float32)},
     'must have as many samples; got 3, 2'),
    ({'x': np.float32(0)}, 'the first dimension of every tensor must be that of samples')])
def test_batches_that_cannot_be_filled_up_are_refused(tmp_path, element, text):
    with pytest.raises(ete.EteError, match='E511 input of host 0') as caught:
        list(plain(tmp_path, lambda x: {'x': x}).predict(
            lambda params: tf.data.Dataset.from_tensors(element)))
    assert text in str(caught.value)


def threads():
    """All but the one that TensorFlow keeps per directory of event files."""
    return {thread.name for thread in threading.enumerate()} - {'EventLoggerThread'}


@contextlib.contextmanager
def no_thread_left():
    before = threads()
    yield
    # tf.data may notice late that its iterator is gone.
    until(lambda: threads() <= before, 'the end of the threads of the test')


def test_a_prediction_that_is_closed_early_leaves_no_thread_and_no_graph_behind(tmp_path):
    endless = ids_input_fn(range(ROWS))
    with no_thread_left():
        steps = make(tmp_path, cores=2).predict(
            lambda params: endless(params).repeat(), hooks=[with_values()])
        outside = tf.get_default_graph()
        assert [int(next(steps)['net'][0]) for _ in range(3)] == [0, 1, 2]
        assert 'infeed-0' in threads() and tf.get_default_graph() is outside
        steps.close()
    with pytest.raises(StopIteration):
        next(steps)


def test_several_predictions_may_be_under_way_and_another_run_between_their_rows(tmp_path):
    estimator = make(tmp_path, cores=2)
    with no_thread_left():
        first = estimator.predict(ids_input_fn(range(9)), hooks=[with_values()])
        second = estimator.predict(ids_input_fn(range(9)), hooks=[with_values()])
        rows = [int(next(one)['net'][0]) for _ in range(3) for one in (first, second)]
        estimator.evaluate(jobs.input_fn_of(
            [{'f': np.arange(8), 'label': np.ones(8, np.float32)}]), steps=1)
        rows += [int(row['net'][0]) for row in first]
        rows += [int(row['net'][0]) for row in second]
    assert rows == [0, 0, 1, 1, 2, 2, *range(3, 9), *range(3, 9)]


def test_a_prediction_whose_session_is_lost_does_not_give_rows_twice(tmp_path):
    class Lose(tf.train.SessionRunHook):
        runs = 0

        def after_run(self, run_context, run_values):
            self.runs += 1
            if self.runs == at:
                raise tf.errors.UnavailableError(None, None, 'lost')

    estimator = plain(tmp_path, lambda x: {'x': x})
    at = 2
    rows = estimator.predict(numbers_input_fn(12), hooks=[Lose()])
    assert [next(rows)['x'] for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(InputPipelineError, match='E524 predict: it must not begin again'):
        next(rows)


def test_a_host_that_has_ended_and_is_slow_to_fill_up_batches_ends_no_other(
        tmp_path, monkeypatch):
    plain = job_run.drawing

    def slow(of_session, number, feed):
        draw = plain(of_session, number, feed)

        def one():
            time.sleep(0.3 * number)  # Host 0 is ahead of host 1, which has no data.
            return draw()
        return one

    monkeypatch.setattr(job_run, 'drawing', slow)
    ids = [list(range(3 * BATCH)), []]
    assert predicted_ids(make(tmp_path, hosts=2), ids_input_fn(*ids)) == ids[0]


def test_input_that_ends_before_a_whole_batch_gives_no_row_and_a_warning_with_counts(
        tmp_path, caplog):
    estimator = make(tmp_path, cores=2)
    assert predicted_ids(estimator, ids_input_fn([1, 2, 3], drop_remainder=True)) == []
    assert 'W525 predict: the input should give a batch; got 0 batches' in caplog.text
    assert 'gives none below 4 samples' in caplog.text  # The batch of one core.
