"""Jobs over the tasks of a cluster: the same numbers as in one process, in few messages."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import crossings, jobs
from harness.tasks import Owners, Tasks, hosted_by

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.runner import run

COLUMNS = [jobs.embedding(name) for name in 'ab']
STEPS = 4


class Trace(tf.train.SessionRunHook):
    """Traces the last step of each loop."""

    def before_run(self, run_context):
        return tf.train.SessionRunArgs([], options=crossings.OPTIONS)

    def after_run(self, run_context, run_values):
        self.metadata = run_values.run_metadata


def batches(cores):
    generator = np.random.default_rng(5)
    return [{'a': generator.integers(1, 10, (2 * cores, 1)),
             'b': generator.integers(1, 10, (2 * cores, 1)),
             **{f'd{n}': generator.random((2 * cores, 1), np.float32) for n in range(5)},
             'label': generator.random(2 * cores).astype(np.float32)} for _ in range(STEPS)]


def model_fn_of(function=lambda net: net):
    """A model of two dense layers, whose inputs pass through `function`."""
    def model_fn(features, labels, mode, params):
        del params
        net = tf.concat([tf.feature_column.input_layer(features, COLUMNS),
                         *[features[f'd{n}'] for n in range(5)]], 1)
        hidden = tf.layers.dense(function(net), 3, tf.nn.relu)
        logits = tf.layers.dense(hidden, 1)[:, 0]
        loss = tf.reduce_mean(tf.square(logits - labels))
        rate = tf.train.exponential_decay(.1, tf.train.get_global_step(), 2, .9)
        train_op = ete.CrossShardOptimizer(tf.train.AdagradOptimizer(rate)).minimize(
            loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
    return model_fn


def trained(tmp_path, cluster, model_fn, *, hosts=2, cores=2, hooks=()):
    """The bytes of all that a training saved, by name."""
    config = jobs.run_config(tmp_path / type(cluster).__name__, hosts, cores)
    estimator = jobs.estimator(model_fn, COLUMNS, config, batch_size=2 * hosts * cores)
    with hosted_by(cluster):
        estimator.train(jobs.input_fn_of(batches(hosts * cores)), steps=STEPS, hooks=hooks)
    return {name: estimator.get_variable_value(name).tobytes()
            for name in estimator.get_variable_names()}


def assert_same(tmp_path, model_fn, *, hosts=2):
    alone = trained(tmp_path, Owners(hosts), model_fn, hosts=hosts)
    assert trained(tmp_path, Tasks(hosts), model_fn, hosts=hosts) == alone


@pytest.mark.soak
def test_a_step_sends_few_messages_and_the_numbers_of_one_process(tmp_path, monkeypatch):
    fed = []

    def drawing(session, number, feed):
        def draw():
            values, metadata = crossings.traced(session, [feed.counts, feed.has_data, feed.step])
            fed.append(crossings.messages(metadata))
            return tuple(values[:2])
        return draw

    model_fn, trace = model_fn_of(), Trace()
    alone = trained(tmp_path, Owners(2), model_fn)
    monkeypatch.setattr(run, 'drawing', drawing)
    assert trained(tmp_path, Tasks(2), model_fn, hooks=[trace]) == alone
    sent = crossings.messages(trace.metadata)
    # Variables of the model, sums of rows, and sums of gradients with gradients of rows.
    assert sent['tpu_worker 0', 'tpu_worker 1'] == 3
    # Without variables, but gradients of the model, whose shapes are known, by themselves.
    assert sent['tpu_worker 1', 'tpu_worker 0'] == 3
    assert max(sent.values()) <= 8
    # Seven features and labels of two cores and their ids; both owners get ids.
    assert all(each['coordinator 0', f'tpu_worker {host}'] <= 2 for each in fed for host in (0, 1))


def scaled(net):
    return (net * tf.get_variable('scale', [], initializer=tf.ones_initializer()) + 1) * 2


def scaled_elsewhere(net):
    """The same, on devices that no job has."""
    with tf.device('/job:worker/task:3'):
        net = net * tf.get_variable('scale', [], initializer=tf.ones_initializer())
    with tf.device('/gpu:0'):
        net = net + 1
    with tf.device(None):
        return net * 2


@pytest.mark.soak
def test_devices_that_a_model_names_mean_nothing(tmp_path):
    assert trained(tmp_path, Tasks(2), model_fn_of(scaled_elsewhere)) == trained(
        tmp_path, Owners(2), model_fn_of(scaled))


def python(net):
    doubled = tf.ensure_shape(tf.numpy_function(lambda x: x * 2, [net], tf.float32), net.shape)
    return net + tf.stop_gradient(doubled)


def batch_norm(net):
    cores = ete.cross_replica_sum(tf.constant(1.))
    mean = ete.cross_replica_sum(tf.reduce_mean(net, 0)) / cores
    variance = ete.cross_replica_sum(tf.reduce_mean(tf.square(net - mean), 0)) / cores
    return (net - mean) * tf.rsqrt(variance + .1)


def grouped(net):
    return net + ete.cross_replica_sum(tf.reduce_mean(net, 0), [[0, 3], [2, 1]])


def branches(net):
    weight = tf.get_variable('weight', [], initializer=tf.ones_initializer())
    chosen = tf.cond(tf.reduce_sum(net) > 0, lambda: net * weight, lambda: net - weight)
    _, looped = tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x * weight),
                              [tf.constant(0), chosen])
    return looped


def rows(net):
    table = tf.get_variable('table', [3, 2])
    return tf.concat([net, tf.nn.embedding_lookup(table, tf.cast(net[:, 0] > 0, tf.int32))], 1)


@pytest.mark.soak
@pytest.mark.parametrize('function', [python, batch_norm, grouped, branches, rows])
def test_a_model_computes_on_tasks_what_it_computes_in_one_process(tmp_path, function):
    assert_same(tmp_path, model_fn_of(function))


@pytest.mark.soak
@pytest.mark.parametrize('hosts', [1, 3])
def test_one_and_three_tasks_compute_what_one_process_computes(tmp_path, hosts):
    assert_same(tmp_path, model_fn_of(batch_norm), hosts=hosts)


def test_python_that_must_stay_with_a_variable_is_refused_before_a_session(tmp_path):
    def with_variable(net):
        weight = tf.get_variable('weight', [], initializer=tf.ones_initializer())
        return net * tf.cond(tf.reduce_sum(net) > 0, lambda: tf.ensure_shape(tf.numpy_function(
            np.abs, [weight.read_value()], tf.float32), []), lambda: 1.)

    with pytest.raises(ConfigError, match='^E732'):
        trained(tmp_path, Tasks(2), model_fn_of(with_variable))
