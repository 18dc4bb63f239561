"""What the infeed threads promise: overlap, order, and an honest end."""

import functools
import os
import re
import signal
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import blocking_job, jobs

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import IdRangeError, InputPipelineError, InputShapeError

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


@pytest.mark.section('9.4')
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
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=tf.train.AdamOptimizer(
            ).minimize(loss, tf.train.get_global_step()))

    columns = [jobs.embedding('f', 10)]
    jobs.estimator(model_fn, columns, jobs.run_config(tmp_path, iterations=3),
                   batch_size=BATCH).train(
        lambda params: without_prefetch(generator_input_fn(generate)(params)), max_steps=steps)
    assert [event for event in events if event.startswith('step')] == [
        f'step {step} ran beside batch {min(step + 1, steps)}' for step in range(1, steps + 1)]


@pytest.mark.section('9.4')
def test_no_batch_is_drawn_that_no_step_uses(tmp_path):
    drawn = []

    def generate(host):
        for number in range(1000):
            drawn.append(number)
            yield number % 10

    job(tmp_path, iterations=3).train(
        lambda params: without_prefetch(generator_input_fn(generate)(params)), max_steps=5)
    assert len(drawn) == 5 * BATCH


@pytest.mark.section('5', '9.4')
def test_each_core_gets_what_its_host_drew_for_it_in_order(tmp_path):
    columns = [jobs.embedding('f', 16, 1)]
    activations, seen = [], []

    def input_fn(params):
        host = params['context'].current_host
        assert params['context'].current_input_fn_deployment()[2:] == (2, 2)
        return tf.data.Dataset.range(host * 8, host * 8 + 8).map(
            lambda one: ({'f': one}, 0.)).batch(params['batch_size'], drop_remainder=True)

    class Look(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(activations[-4:])

        def after_run(self, run_context, run_values):
            seen.append([core[:, 0].tolist() for core in run_values.results])

    jobs.estimator(
        jobs.linear_model_fn(columns, observe=lambda features, _: activations.append(
            features['f'])), columns, jobs.run_config(tmp_path, 2, 2, 1), batch_size=8,
        optimizer=ete.StochasticGradientDescentParameters(0.)).train(
            input_fn, max_steps=2, hooks=[Look(), jobs.AssignTable(
                'dense_features/f_embedding/embedding_weights', np.arange(16.)[:, None], 'div')])
    # Two samples per core and step; host 0 has ids from 0 on, host 1 from 8 on.
    assert seen == [[[0, 1], [2, 3], [8, 9], [10, 11]], [[4, 5], [6, 7], [12, 13], [14, 15]]]


@pytest.mark.section('16')
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


@pytest.mark.section('10', '16')
def test_an_evaluation_that_runs_out_of_data_says_so(tmp_path):
    with pytest.raises(tf.errors.OutOfRangeError, match=r'made 2 steps.*reach step 3.*repeat'):
        job(tmp_path).evaluate(generator_input_fn(lambda host: range(8)), steps=3)


@pytest.mark.section('16')
def test_i16_an_error_of_the_pipeline_itself_is_the_root_cause(tmp_path):
    def input_fn(params):
        def fail(features, label):
            content = tf.io.read_file('/nonexistent')
            return features, label + tf.cast(tf.strings.length(content), tf.float32)
        return generator_input_fn(lambda host: range(8))(params).map(fail)

    with pytest.raises(tf.errors.NotFoundError, match='nonexistent') as caught:
        job(tmp_path).train(input_fn, max_steps=2)
    assert isinstance(caught.value, InputPipelineError)
    assert 'raised by the infeed of host 0 at its batch 1' in caught.value.__notes__


@pytest.mark.section('16')
def test_i17_an_out_of_range_error_of_the_model_is_not_taken_for_the_end_of_the_data(tmp_path):
    def stop():
        raise StopIteration('this is how py_func makes an OutOfRangeError')

    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        w = tf.get_variable('w', [2, 1])
        loss = tf.reduce_mean(tf.matmul(net, w)) + tf.reshape(
            tf.py_func(stop, [], tf.float32), [])
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=tf.train.AdamOptimizer(
            ).minimize(loss, tf.train.get_global_step()))

    columns = [jobs.embedding('f', 10)]
    estimator = jobs.estimator(model_fn, columns, jobs.run_config(tmp_path), batch_size=BATCH)
    with pytest.raises(RuntimeError, match='E526 model_fn: OutOfRangeError in the model; got '):
        estimator.train(generator_input_fn(lambda host: range(8)), max_steps=2)


@pytest.mark.section('16')
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


@pytest.mark.section('16')
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


def partial_of(input_fn):
    return functools.partial(lambda which, params: which(params), input_fn)


@pytest.mark.section('16')
@pytest.mark.parametrize('error, legacy, wrap, line', [
    (ValueError, tf.errors.InvalidArgumentError, lambda made: made,
     line_of(generator_input_fn(None))),
    (KeyError, tf.errors.UnknownError, CallableInput, line_of(CallableInput.__call__)),
    (OSError, tf.errors.UnknownError, lambda made: CallableInput(made).__call__,
     line_of(CallableInput.__call__)),
    (MemoryError, tf.errors.ResourceExhaustedError, partial_of,
     line_of(partial_of(None).func))])
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


def test_i16_the_step_of_a_training_that_goes_on_counts_from_its_checkpoint(tmp_path):
    def generate(host):
        yield from range(BATCH)
        raise ValueError('of the user')

    estimator = job(tmp_path)
    estimator.train(generator_input_fn(lambda host: [1] * 3 * BATCH), steps=3)
    with pytest.raises(InputPipelineError) as caught:
        estimator.train(generator_input_fn(generate), max_steps=9)
    assert 'at its batch 2' in caught.value.__notes__[1] and 'step 5;' in caught.value.__notes__[0]
    assert estimator.latest_checkpoint().endswith('model.ckpt-3')
    with pytest.raises(InputPipelineError) as caught:
        estimator.evaluate(generator_input_fn(generate), steps=3)
    assert 'step 2;' in caught.value.__notes__[0]


@pytest.mark.parametrize('bad, value', [([1, 2, -3, 4], '-3'), ([10, 1, 1, 1], '10'),
                                        ([1, 1, 1, 2**32 + 1], '4294967297')])
def test_i01_i02_i03_an_id_out_of_range_stops_the_run_before_its_step(tmp_path, bad, value):
    estimator = job(tmp_path)
    with pytest.raises(IdRangeError) as caught:
        estimator.train(generator_input_fn(lambda host: [1, 2, 3, 4, *bad]), max_steps=5)
    assert str(caught.value).startswith(
        'E501 feature "f" on core 0: ids must be in [0, 10), the vocabulary size of its table; '
        f'got {value} in sample')
    assert isinstance(caught.value, ValueError)
    assert estimator.latest_checkpoint().endswith('model.ckpt-0')


def test_a_dense_batch_of_another_size_than_asked_for_is_refused(tmp_path):
    def input_fn(params):
        return generator_input_fn(lambda host: range(8))({**params, 'batch_size': 3})

    with pytest.raises(InputShapeError,
                       match='E511 feature "f" on core 0: the batch must have 4 samples'):
        job(tmp_path).train(input_fn, max_steps=1)


@pytest.mark.section('16')
def test_an_input_that_produces_nothing_is_an_error_after_the_deadline(tmp_path, monkeypatch):
    blocks, go_on = threading.Event(), threading.Event()
    blocking_job.Clock(monkeypatch, blocks, 700.)

    def generate(host):
        yield from range(4)
        blocks.set()
        go_on.wait()
        yield from range(40)

    try:
        with pytest.raises(InputPipelineError,
                           match=r'E522 input of host 0.*nothing for \d+00 s') as caught:
            job(tmp_path, input_deadline_secs=700.).train(
                generator_input_fn(generate), max_steps=5)
        assert any(', in generate\n' in note for note in caught.value.__notes__)
    finally:
        go_on.set()


@pytest.fixture
def ctrl_c():
    """Python's own handler: a shell that starts tests in the background has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.serial
@pytest.mark.section('16', '17')
def test_ctrl_c_ends_a_long_loop_and_all_threads(tmp_path, ctrl_c):
    class Interrupt(tf.train.SessionRunHook):
        def before_run(self, run_context):
            threading.Timer(.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        job(tmp_path, iterations=10**6).train(
            generator_input_fn(lambda host: (number % 10 for number in iter(int, 1))),
            max_steps=10**6, hooks=[Interrupt()])


@pytest.mark.serial
@pytest.mark.section('16', '17')
def test_ctrl_c_ends_a_wait_for_input(tmp_path, ctrl_c):
    go_on = threading.Event()

    def generate(host):
        yield from range(4)
        threading.Timer(.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        waited.append(go_on.wait())
        yield from range(4)

    waited = []
    handler, wakeup = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    try:
        with pytest.raises(KeyboardInterrupt):
            job(tmp_path).train(generator_input_fn(generate), max_steps=5)
        assert not waited  # It waits still.
    finally:
        go_on.set()
    assert (signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)) == (handler, wakeup)


def test_a_run_in_another_thread_works(tmp_path):
    estimator = job(tmp_path)
    thread = threading.Thread(target=estimator.train, args=(
        generator_input_fn(lambda host: range(8)),), kwargs={'max_steps': 2})
    thread.start()
    thread.join()
    assert estimator.latest_checkpoint().endswith('model.ckpt-2')


def test_bad_ids_on_several_hosts_are_one_error_with_readable_notes(tmp_path):
    with pytest.raises(IdRangeError) as caught:
        job(tmp_path, 2, 1).train(generator_input_fn(lambda host: [1, 99, 2, 3]), max_steps=1)
    assert len(caught.value.problems) == 1
    assert not any('|ete|' in note for note in caught.value.__notes__)


def test_counts_of_a_run_are_exact(tmp_path):
    columns = [ete.embedding_column(tf.feature_column.categorical_column_with_vocabulary_list(
        'f', ['a', 'b', 'c']), 2)]
    words = np.array([[b'a', b'', b'x'], [b'b', b'c', b''], [b'', b'', b''], [b'y', b'a', b'a']])

    def input_fn(params):
        return tf.data.Dataset.from_tensors(({'f': words}, np.zeros(4, np.float32))).repeat()

    from estimator_tpu_embedding.runner import progress
    job(tmp_path, columns=columns).train(input_fn, max_steps=3)
    counts = progress.reports()[-1].counts['f']
    # Per batch 12 places: 5 empty, 2 unknown words, 5 ids.
    assert (counts.seen, counts.missing) == (15, 21)
