"""Runner spec 7.2 and 7.3: what a host_call gets, when, and how often."""

import pathlib

import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete


def input_fn(params):
    return tf.data.Dataset.range(1000).map(lambda one: ({'x': one}, one)).repeat().batch(
        params['batch_size'], drop_remainder=True)


def model_fn_with(host_call):
    """A model whose loss is 0; `host_call` makes the pair from features."""
    def model_fn(features, labels, mode, params):
        weight = tf.get_variable('w', [], initializer=tf.zeros_initializer())
        if mode == 'infer':
            return ete.TPUEstimatorSpec(mode, predictions={'x': features['x']},
                                        host_call=host_call(features))
        loss = weight * 0.
        step = tf.train.get_global_step()
        optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(1.))
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, step),
                                    host_call=host_call(features))
    return model_fn


def make(directory, host_call, hosts=1, cores=2, iterations=21, every=1, **kwargs):
    summary_steps = kwargs.pop('save_summary_steps', 0)
    config = jobs.run_config(directory, hosts, cores, save_summary_steps=summary_steps).replace(
        tpu_config=ete.TPUConfig(
            iterations_per_loop=iterations, experimental_host_call_every_n_steps=every,
            per_host_input_for_training=kwargs.pop('mode', ete.InputPipelineConfig.PER_HOST_V2)))
    return ete.TPUEstimator(
        model_fn_with(host_call), config=config, train_batch_size=4, eval_batch_size=4,
        predict_batch_size=4, **kwargs)


def recording(seen, *tensors_of):
    """A host_call that appends the values of its tensors to `seen`."""
    def host_fn(*tensors):
        return tf.numpy_function(
            lambda *values: seen.append([value.tolist() for value in values]), tensors, [])

    return lambda features: (host_fn, [make(features) for make in tensors_of])


def of_step(features):
    return tf.reshape(tf.train.get_global_step(), [1])


def of_x(features):
    return features['x']


@pytest.mark.parametrize('every, expected', [
    (1, list(range(42))), (2, [*range(0, 21, 2), *range(21, 42, 2)])])
def test_it_gets_the_step_from_before_its_increment_in_every_nth_step_of_a_loop(
        tmp_path, every, expected):
    seen = []
    make(tmp_path, recording(seen, of_step), every=every, cores=1).train(input_fn, steps=42)
    assert [steps for steps, in seen] == [[step] for step in expected]


@pytest.mark.parametrize('has_names', [False, True])
def test_it_gets_the_tensors_of_all_cores_one_after_another(tmp_path, has_names):
    seen = []
    host_call = recording(seen, of_step, of_x)

    def by_name(features):
        host_fn, (step, x) = host_call(features)
        return (lambda x, step: host_fn(step, x)), {'step': step, 'x': x}

    make(tmp_path, by_name if has_names else host_call, 1, 2).train(input_fn, steps=2)
    assert seen == [[[0, 0], [0, 1, 2, 3]], [[1, 1], [4, 5, 6, 7]]]


def test_it_runs_in_every_step_of_an_evaluation_and_a_prediction(tmp_path):
    seen = []
    made = make(tmp_path, recording(seen, of_x), every=2)
    made.evaluate(input_fn, steps=3)
    assert seen == [[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[8, 9, 10, 11]]]
    seen.clear()
    assert len(list(made.predict(lambda params: tf.data.Dataset.range(8).map(
        lambda one: {'x': one}).batch(params['batch_size'])))) == 8
    assert seen[:2] == [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]


@pytest.mark.parametrize('use_tpu', [True, False])
def test_summaries_of_a_file_writer_are_in_its_file(tmp_path, use_tpu):
    def host_fn(step, x):
        with tf.compat.v2.summary.create_file_writer(str(tmp_path / 'events')).as_default():
            tf.compat.v2.summary.scalar('sum of x', tf.reduce_sum(x), step=step[0])
            return tf.summary.all_v2_summary_ops()

    make(tmp_path / 'model', lambda features: (host_fn, [of_step(features), of_x(features)]),
         use_tpu=use_tpu).train(input_fn, steps=2)
    path, = pathlib.Path(tmp_path / 'events').iterdir()
    found = {(event.step, int(tf.make_ndarray(value.tensor)))
             for event in tf.train.summary_iterator(str(path)) for value in event.summary.value}
    assert found == {(0, 6), (1, 22)}


def test_without_a_tpu_it_runs_in_every_step_of_every_mode_before_the_increment(tmp_path):
    seen = []
    made = make(tmp_path, recording(seen, of_step), every=2, use_tpu=False)
    made.train(input_fn, steps=3)
    assert seen == [[[0]], [[1]], [[2]]]
    seen.clear()
    made.evaluate(input_fn, steps=2)
    assert seen == [[[3]], [[3]]]
    seen.clear()
    rows = made.predict(lambda params: tf.data.Dataset.from_tensors({'x': [1, 2]}))
    assert [row['x'] for row in rows] == [1, 2]
    assert seen[0] == [[3]]  # The run that finds the end of the data may call it too.


@pytest.mark.parametrize('host_call, error, text', [
    (lambda features: (lambda x: tf.summary.scalar('x', x[0]), [of_x(features)]), ValueError,
     'Please use tf.contrib.summary instead of tf.summary inside of host_calls.'),
    (lambda features: (lambda x: x, [tf.constant(1)]), RuntimeError,
     'should preserve batch size dimension, but got scalar')])
def test_what_cannot_be_is_told_as_the_original_does(tmp_path, host_call, error, text):
    with pytest.raises(error, match=text):
        make(tmp_path, host_call).train(input_fn, steps=1)
