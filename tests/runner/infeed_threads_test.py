"""What the infeed threads promise: overlap, order, and an honest end."""

import re
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import InputPipelineError

BATCH = 4


def generator_input_fn(generate):
    """An input_fn over single (id, label) pairs from `generate(host)`."""
    def input_fn(params):
        host = params['context'].current_host
        return tf.data.Dataset.from_generator(
            lambda: (({'f': one}, 0.) for one in generate(host)),
            ({'f': tf.int64}, tf.float32), ({'f': []}, [])).batch(
                params['batch_size'], drop_remainder=True)
    return input_fn


def job(tmp_path, hosts=1, cores=1, iterations=1, observe=None, columns=None, **kwargs):
    columns = columns or [jobs.embedding('f', 10)]
    return jobs.estimator(jobs.linear_model_fn(columns, observe=observe), columns,
                          jobs.run_config(tmp_path, hosts, cores, iterations, **kwargs),
                          batch_size=BATCH)


def without_prefetch(dataset):
    """tf.data draws ahead by itself unless it is told not to."""
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    return dataset.with_options(options)


def test_batch_k_plus_1_is_produced_while_step_k_runs(tmp_path):
    steps = 8
    change = threading.Condition()
    events = []

    def generate(host):
        for number in range(steps * BATCH):
            yield number % 10
            if number % BATCH == BATCH - 2:  # the last sample of the batch is asked for
                with change:
                    events.append(f'batch {number // BATCH + 1}')
                    change.notify_all()

    def wait_inside_the_step():
        step = sum(event.startswith('step') for event in events) + 1
        following = f'batch {min(step + 1, steps)}'
        with change:
            overlaps = change.wait_for(lambda: following in events, timeout=240)
            events.append(f'step {step} {"ran beside" if overlaps else "missed"} {following}')
        return np.float32(0)

    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        with tf.control_dependencies([net]):
            waited = tf.py_func(wait_inside_the_step, [], tf.float32)
        loss = tf.reduce_mean(net) + tf.reshape(waited, [])
        return jobs.trained_spec(mode, loss)

    columns = [jobs.embedding('f', 10)]
    jobs.estimator(model_fn, columns, jobs.run_config(tmp_path, iterations=3),
                   batch_size=BATCH).train(
        lambda params: without_prefetch(generator_input_fn(generate)(params)), max_steps=steps)
    assert [event for event in events if event.startswith('step')] == [
        f'step {step} ran beside batch {min(step + 1, steps)}' for step in range(1, steps + 1)]


def test_no_batch_is_drawn_that_no_step_uses(tmp_path):
    drawn = []

    def generate(host):
        for number in range(1000):
            drawn.append(number)
            yield number % 10

    job(tmp_path, iterations=3).train(
        lambda params: without_prefetch(generator_input_fn(generate)(params)), max_steps=5)
    assert len(drawn) == 5 * BATCH


def test_each_core_gets_what_its_host_drew_for_it_in_order(tmp_path):
    columns = [jobs.embedding('f', 16, 1)]
    seen = []

    def input_fn(params):
        host = params['context'].current_host
        assert params['context'].current_input_fn_deployment()[2:] == (2, 2)
        return tf.data.Dataset.range(host * 8, host * 8 + 8).map(
            lambda one: ({'f': one}, 0.)).batch(params['batch_size'], drop_remainder=True)

    class Look(tf.train.SessionRunHook):
        def before_run(self, run_context):
            scopes = '', 'core_1/', 'core_2/', 'core_3/'
            return tf.train.SessionRunArgs([
                run_context.session.graph.get_operation_by_name(f'{scope}w/MatMul').inputs[0]
                for scope in scopes])

        def after_run(self, run_context, run_values):
            seen.append([core[:, 0].tolist() for core in run_values.results])

    jobs.estimator(
        jobs.linear_model_fn(columns), columns, jobs.run_config(tmp_path, 2, 2, 1), batch_size=8,
        optimizer=ete.StochasticGradientDescentParameters(0.)).train(
            input_fn, max_steps=2, hooks=[Look(), jobs.AssignTable(
                'dense_features/f_embedding/embedding_weights', np.arange(16.)[:, None], 'div')])
    # Two samples per core and step; host 0 has ids from 0 on, host 1 from 8 on.
    assert seen == [[[0, 1], [2, 3], [8, 9], [10, 11]], [[4, 5], [6, 7], [12, 13], [14, 15]]]


@pytest.mark.parametrize('sizes, host, steps', [
    ([12, 12], '[01]', 6),  # Whoever is noticed first.
    ([100, 10], '1', 5)])
def test_i18_data_that_ends_early_stops_all_hosts_at_one_step_which_is_saved(
        tmp_path, sizes, host, steps):
    estimator = job(tmp_path, 2, 1)  # two samples per host and step
    with pytest.raises(tf.errors.OutOfRangeError) as caught:
        estimator.train(generator_input_fn(lambda at: (one % 10 for one in range(sizes[at]))),
                        max_steps=25)
    assert re.search(f'host {host} ended', str(caught.value))
    for fact in (f'made {steps} steps', 'reach step 25', '.repeat()'):
        assert fact in str(caught.value)
    assert estimator.latest_checkpoint().endswith(f'model.ckpt-{steps}')


def test_i17_an_out_of_range_error_of_the_model_is_not_taken_for_the_end_of_the_data(tmp_path):
    def stop():
        raise StopIteration('this is how py_func makes an OutOfRangeError')

    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        w = tf.get_variable('w', [2, 1])
        loss = tf.reduce_mean(tf.matmul(net, w)) + tf.reshape(
            tf.py_func(stop, [], tf.float32), [])
        return jobs.trained_spec(mode, loss)

    columns = [jobs.embedding('f', 10)]
    estimator = jobs.estimator(model_fn, columns, jobs.run_config(tmp_path), batch_size=BATCH)
    with pytest.raises(RuntimeError, match='E526 model_fn: OutOfRangeError in the model; got '):
        estimator.train(generator_input_fn(lambda host: range(8)), max_steps=2)


def test_i17_what_tf_data_takes_for_an_end_is_an_error_where_steps_are_missing(tmp_path):
    def stop(_):
        raise StopIteration('py_func makes it an OutOfRangeError, and map of v1 ends at such')

    def input_fn(params):
        return generator_input_fn(lambda host: range(8))(params).map(
            lambda features, label: (features, tf.ensure_shape(
                tf.py_func(stop, [label], tf.float32), [BATCH])))

    with pytest.raises(tf.errors.OutOfRangeError, match='The input of host 0 ended: this train '
                       'made 0 steps and was to reach step 2'):
        job(tmp_path).train(input_fn, max_steps=2)


@pytest.mark.parametrize('cut', [1, 11])
def test_i17_a_file_of_records_that_is_cut_short_is_an_error_and_no_end(tmp_path, cut):
    path = tmp_path / 'records'
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(8):
            writer.write(b'%d' % number * 8)
    path.write_bytes(path.read_bytes()[:-cut])

    def input_fn(params):
        return tf.data.TFRecordDataset(str(path)).map(
            lambda text: ({'f': tf.cast(tf.strings.length(text), tf.int64)}, 0.)).batch(
                params['batch_size'], drop_remainder=True)

    estimator = job(tmp_path / 'model')
    with pytest.raises(tf.errors.DataLossError, match='truncated record') as caught:
        estimator.train(input_fn, steps=9)
    assert isinstance(caught.value, InputPipelineError)
    assert 'raised by the infeed of host 0 at its batch 2' in caught.value.__notes__
    assert estimator.latest_checkpoint().endswith('model.ckpt-0')


class CallableInput:
    """An input_fn that is an object."""

    def __init__(self, input_fn):
        self.input_fn = input_fn

    def __call__(self, params):
        return self.input_fn(params)


def line_of(function):
    return f'{function.__code__.co_name} ({__file__}:{function.__code__.co_firstlineno})'


@pytest.mark.parametrize('error, legacy, wrap, line', [
    (ValueError, tf.errors.InvalidArgumentError, lambda made: made,
     line_of(generator_input_fn(None))),
    (MemoryError, tf.errors.ResourceExhaustedError, CallableInput,
     line_of(CallableInput.__call__))])
def test_i16_an_error_of_the_generator_keeps_its_class_and_text_and_names_its_place(
        tmp_path, error, legacy, wrap, line):
    def generate(host):
        yield from range(3 * BATCH // 2)  # A batch of a core has two.
        raise error('of the user')

    estimator = job(tmp_path, 1, 2)
    with pytest.raises(legacy) as caught:
        estimator.train(wrap(generator_input_fn(generate)), max_steps=5)
    failure = caught.value
    assert isinstance(failure, InputPipelineError) and isinstance(failure, RuntimeError)
    assert str(failure).startswith(f'{error.__name__}: ') and 'of the user' in str(failure)
    assert failure.message in str(failure)
    assert (failure.code, failure.error_code) == ('E520', legacy(None, None, '').error_code)
    assert [problem.code for problem in failure.problems] == ['E520']
    assert failure.__notes__ == [
        f'E520 input of host 0: its pipeline must give a batch for step 2; got {legacy.__name__}. '
        f' The dataset is that of {line}.', 'raised by the infeed of host 0 at its batch 2']
    assert estimator.latest_checkpoint().endswith('model.ckpt-0')
