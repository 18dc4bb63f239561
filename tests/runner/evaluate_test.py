"""Section 10 of the runner's specification: evaluations, and losses that only one core has."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete

X = np.arange(8, dtype=np.float32)


def make(directory, hosts=2, cores=2, model_fn=None, **kwargs):
    """A model whose loss is `w * mean of x`, w = 1."""
    def plain(features, labels, mode, params):
        w = tf.get_variable('w', [], initializer=tf.ones_initializer())
        loss = w * tf.reduce_mean(features['x'])
        return jobs.trained_spec(mode, loss, 0.)._replace(eval_metrics=(
            lambda x: {'largest': tf.metrics.mean(tf.reduce_max(x))}, [features['x']]))

    return ete.TPUEstimator(
        model_fn or plain, train_batch_size=8, eval_batch_size=8,
        config=jobs.run_config(directory, hosts, cores), **kwargs)


def steps_of(*arrays):
    return jobs.input_fn_of([{'x': array, 'label': np.zeros(8, np.float32)} for array in arrays])


@pytest.mark.parametrize('hosts, cores', [(1, 1), (1, 4), (2, 2), (4, 1)])
def test_the_loss_is_the_mean_over_cores_and_steps_and_metrics_see_all_samples(
        tmp_path, hosts, cores):
    results = make(tmp_path, hosts, cores).evaluate(steps_of(X, 3 * X), steps=2)
    # Means 3.5 and 10.5; the largest of each step are 7 and 21.
    assert results == {'loss': 7., 'largest': 14., 'global_step': 0}
    assert isinstance(results['loss'], np.float32)


def test_a_loss_that_is_no_number_on_core_3_alone_is_seen(tmp_path):
    bad = X.copy()
    bad[7] = np.nan  # The last core has the samples 6 and 7.
    estimator = make(tmp_path)
    assert np.isnan(estimator.evaluate(steps_of(X, bad), steps=2)['loss'])
    for steps in ([bad], [X, bad, X, X]):  # At the end of a loop of two steps, and inside one.
        with pytest.raises(tf.train.NanLossDuringTrainingError):
            estimator.train(steps_of(*steps), steps=len(steps))


def test_results_go_to_the_directory_of_the_name_at_their_step_with_the_path(tmp_path):
    estimator = make(tmp_path)
    estimator.train(steps_of(X, X, X), steps=3)
    estimator.evaluate(steps_of(X), steps=1, name='other')
    events = [(event.step, value) for path in (tmp_path / 'eval_other').glob('events*')
              for event in tf.train.summary_iterator(str(path)) for value in event.summary.value]
    assert {(step, value.tag) for step, value in events} == {
        (3, 'loss'), (3, 'largest'), (3, 'checkpoint_path')}
    assert not (tmp_path / 'eval').exists()
    path = next(value for _, value in events if value.tag.startswith('checkpoint_path'))
    assert path.tensor.string_val == [str(tmp_path / 'model.ckpt-3').encode()]


def test_all_steps_are_one_run_for_hooks(tmp_path):
    counted = []
    hook = jobs.EveryRun(lambda session: counted.append(
        session.run(tf.get_collection(tf.GraphKeys.EVAL_STEP)[0])))
    make(tmp_path).evaluate(steps_of(*[X] * 5), steps=5, hooks=[hook])
    assert hook.runs == 1 and counted == [5]


def test_data_that_ends_early_is_an_error_and_without_a_tpu_an_end(tmp_path):
    with pytest.raises(tf.errors.OutOfRangeError, match='Call .repeat'):
        make(tmp_path).evaluate(steps_of(X), steps=2)

    def input_fn(params):
        assert params['batch_size'] == 8 and 'context' not in params
        return tf.data.Dataset.from_tensors(({'x': X}, np.zeros(8, np.float32))).repeat(3)

    assert make(tmp_path, eval_on_tpu=False).evaluate(input_fn)['loss'] == 3.5


def summed(x):
    tf.summary.scalar('lost', tf.reduce_sum(x))
    return {}


@pytest.mark.parametrize('function, error, text', [
    (lambda x: [tf.metrics.mean(x)], TypeError, 'eval_metric_ops must be a dict, given: ['),
    (lambda x: {'m': tf.reduce_mean(x)}, TypeError, 'Values of eval_metric_ops must be '
     '(metric_value, update_op) tuples, given: Tensor("Mean'),
    (lambda x: {'m': tf.keras.metrics.Mean()}, TypeError, '(metric_value, update_op) tuples, '
     'given: Mean(name=mean'),
    (summed, ValueError, 'Please use tf.contrib.summary instead of tf.summary inside of '
     'host_calls.')])
def test_a_function_of_metrics_returns_pairs_by_name_and_makes_no_summary(
        tmp_path, function, error, text):
    def model_fn(features, labels, mode, params):
        return ete.TPUEstimatorSpec(mode, loss=tf.reduce_mean(features['x']),
                                    eval_metrics=(function, [features['x']]))

    with pytest.raises(error) as caught:
        make(tmp_path, model_fn=model_fn).evaluate(steps_of(X), steps=1)
    assert text in str(caught.value)
