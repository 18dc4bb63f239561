"""Pipelined execution: exactly one step stale in training, and nothing else."""

import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, jobs
from harness.numpy_reference import assert_close
from harness.parts import soak_except
from harness.waiting import until

import estimator_tpu_embedding as ete

TABLE = 'dense_features/f_embedding/embedding_weights'
ROWS = np.arange(1., 11.)[:, None]
RATE = .125


def make(directory, hosts=1, cores=1, iterations=2, strategy='div', pipelined=True,
         model_fn=None, **kwargs):
    columns = [jobs.embedding('f', 10, 1, initializer=tf.constant_initializer(ROWS))]
    batch = 4
    return ete.TPUEstimator(
        model_fn=(model_fn or still_model_fn)(columns),
        config=jobs.run_config(directory, hosts, cores, iterations, **kwargs),
        train_batch_size=batch, eval_batch_size=batch,
        embedding_config_spec=ete.EmbeddingConfigSpec(
            columns, ete.StochasticGradientDescentParameters(RATE), partition_strategy=strategy,
            pipeline_execution_with_tensor_core=pipelined))


def still_model_fn(columns, observe=lambda activations: activations):
    """Loss mean(a**2) / 2, so the gradient of a row is the mean of its activations."""
    def model_fn(features, labels, mode, params):
        net = observe(tf.keras.layers.DenseFeatures(columns)(features))
        loss = tf.reduce_mean(tf.square(net)) / 2 + 0. * tf.get_variable('w', [])
        return jobs.trained_spec(mode, loss)
    return model_fn


def steps_of(count):
    generator = np.random.default_rng(3)
    return [{'f': generator.integers(0, 10, 4), 'label': np.zeros(4, np.float32)}
            for _ in range(count)]


def reference(steps, lag, rows=ROWS[:, 0]):
    """Rows after SGD whose activations are `lag` updates old."""
    history = [rows]
    for number, step in enumerate(steps):
        seen = history[max(number - lag, 0)]
        rows = history[-1].copy()
        for one in step['f']:
            rows[one] -= RATE * seen[one] / 4
        history.append(rows)
    return history[-1]


@pytest.mark.parametrize('kernels, hosts, cores, strategy, iterations', soak_except([
    graphs.of_backend(*one) for one in (
        ('native', 1, 1, 'div', 1), ('stock', 1, 1, 'div', 3), ('native', 2, 2, 'mod', 3),
        ('stock', 1, 4, 'div', 50))], 1, 2))
@pytest.mark.parametrize('pipelined', [True, False])
def test_a_step_sees_all_updates_but_the_last_if_pipelined(
        tmp_path, kernels, hosts, cores, strategy, iterations, pipelined):
    steps = steps_of(7)
    make(tmp_path, hosts, cores, iterations, strategy, pipelined, kernels=kernels).train(
        jobs.input_fn_of(steps), max_steps=7)
    stored = jobs.stored(tmp_path, TABLE, strategy, hosts)[:, 0]
    assert_close(stored, reference(steps, lag=int(pipelined)))
    assert np.abs(reference(steps, 1) - reference(steps, 0)).max() > 1e-3


def test_a_resumed_run_begins_with_fresh_rows_and_evaluation_is_never_stale(tmp_path):
    steps = steps_of(3)
    for _ in range(2):  # Two sessions; each begins with nothing in flight.
        make(tmp_path).train(jobs.input_fn_of(steps), steps=3)
    rows = reference(steps, 1, reference(steps, 1))
    assert_close(jobs.stored(tmp_path, TABLE)[:, 0], rows)
    found = make(tmp_path).evaluate(jobs.input_fn_of(steps), steps=1)
    assert found['loss'] == pytest.approx((rows[steps[0]['f']]**2).mean() / 2, rel=1e-5)


def test_the_next_look_up_is_done_while_the_model_of_a_step_still_runs(tmp_path):
    ahead, waited = {}, []

    class Look(tf.train.SessionRunHook):
        def begin(self):
            queue = tf.get_default_graph().get_operation_by_name('looked_up_for_core_0')
            ahead['size'] = tf.raw_ops.QueueSizeV2(handle=queue.outputs[0])

        def after_create_session(self, session, coord):
            ahead['session'] = session

    def wait_until_the_next_is_looked_up(value):
        if len(waited) < 3:
            until(lambda: ahead['session'].run(ahead['size']), 'the look-up of the next step')
        else:  # Nothing follows the last step. What comes too late to be seen is no failure.
            time.sleep(.3)
        waited.append(bool(ahead['session'].run(ahead['size'])))
        return value

    def observe(net):
        seen = tf.py_func(wait_until_the_next_is_looked_up, [net], tf.float32)
        seen.set_shape(net.shape)
        return net + tf.stop_gradient(seen - net)

    make(tmp_path, model_fn=lambda columns: still_model_fn(columns, observe)).train(
        jobs.input_fn_of(steps_of(4)), max_steps=4, hooks=[Look()])
    assert waited == [True, True, True, False]
