"""Rows U01 to U04: what a program may do wrong, or differently, with the package."""

import logging
import sys
import textwrap

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs, legacy_api
from harness.processes import path_with_harness, run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import ConfigError

ROWS = [{'f': np.array([1, 2]), 'g': np.array([3, 4]), 'label': np.ones(2, np.float32)}] * 4


def columns():
    return [jobs.embedding('f'), jobs.embedding('g')]


def train(directory, model_fn):
    jobs.estimator(model_fn, columns(), jobs.run_config(directory), batch_size=2).train(
        jobs.input_fn_of(ROWS), max_steps=2)


def spec_of(net, labels, mode):
    """The spec of a linear model over a layer."""
    w = tf.get_variable('w', [net.shape[1], 1])
    loss = tf.reduce_mean(tf.square((net @ w)[:, 0] - labels))
    return ete.TPUEstimatorSpec(mode, loss=loss, train_op=tf.train.GradientDescentOptimizer(
        .1).minimize(loss, tf.train.get_global_step()))


def of_one_feature(features, labels, mode, params):
    """Uses the activation of `f` only."""
    net = tf.keras.layers.DenseFeatures(columns())(features)[:, :2]  # Those of f come first.
    return spec_of(net, labels, mode)


def of_nothing(features, labels, mode, params):
    """Has one input layer, of `f`, so that no gradient can reach `g`."""
    net = tf.keras.layers.DenseFeatures(columns()[:1])(features)
    with tf.variable_scope('unused'):
        tf.keras.layers.DenseFeatures(columns()[1:])(features)
    return spec_of(net, labels, mode)


def test_u02_a_feature_that_the_loss_ignores_is_named_and_its_table_stays(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, 'tensorflow'):
        train(tmp_path, of_nothing)
    assert "does not train: no gradient reaches the activations of its features ['g']" in (
        caplog.text)
    assert "features ['f']" not in caplog.text
    slots = [name for name, _ in tf.train.list_variables(str(tmp_path))
             if name.endswith('g_embedding/embedding_weights/Adagrad')]
    # Adagrad accumulates squares of gradients: 0.1 is where it starts.
    np.testing.assert_allclose(tf.train.load_variable(str(tmp_path), slots[0]), .1)


def test_u01_u02_the_emulated_tpu_updates_a_part_of_a_layer_that_is_ignored_by_zero(tmp_path):
    train(tmp_path, of_one_feature)  # Its `use_tpu` is true.
    assert tf.train.load_variable(str(tmp_path), 'global_step') == 2
    slots = {name.split('/')[1]: tf.train.load_variable(str(tmp_path), name)
             for name, _ in tf.train.list_variables(str(tmp_path)) if name.endswith('/Adagrad')}
    np.testing.assert_allclose(slots['g_embedding'], .1)
    assert (slots['f_embedding'][1:3] > .1).any()


def raw_embedding():
    return legacy_api.TPUEmbedding(
        {'t': legacy_api.TableConfig(5, 1, tf.zeros_initializer(), combiner='sum')},
        {'f': legacy_api.FeatureConfig('t')}, 4, legacy_api.TRAINING,
        optimization_parameters=legacy_api.StochasticGradientDescentParameters(1.),
        device_config=legacy_api.DeviceConfig(1, 1, '/job:worker'))


def enqueue(made):
    return made.generate_enqueue_ops([{'f': legacy_api.EnqueueData(
        tf.constant([0, 1, 2, 3], tf.int64), tf.constant([[0, 0], [1, 0], [2, 0], [3, 0]],
                                                         tf.int64))}])


def test_u03_a_look_up_that_is_updated_twice_is_refused():
    with tf.Graph().as_default():
        made = raw_embedding()
        made.create_variables_and_ops()
        enqueue(made)
        activations = made.get_activations()
        made.generate_send_gradients_op(activations)
        with pytest.raises(ConfigError, match='E466 .*must follow get_activations.*, once'):
            made.generate_send_gradients_op(activations)


def test_u03_a_look_up_that_is_never_updated_changes_nothing_and_holds_up_nobody():
    with tf.Graph().as_default():
        made = raw_embedding()
        variables = made.create_variables_and_ops()
        fed = enqueue(made)
        activations = made.get_activations()
        limit = tf.RunOptions(timeout_in_ms=240_000)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(variables.load_ops())
            for _ in range(6):  # Far more than fit into a queue.
                session.run(fed, options=limit)
                assert not session.run(activations, options=limit)['f'].any()
            with pytest.raises(tf.errors.DeadlineExceededError):  # Nobody enqueued: no hang.
                session.run(activations, options=tf.RunOptions(timeout_in_ms=200))


BAD_JOBS = textwrap.dedent("""
    import os, sys
    os.environ['TF_USE_LEGACY_KERAS'] = '1'
    import numpy as np
    from harness import jobs
    import estimator_tpu_embedding as ete

    columns = [jobs.embedding('f')]
    good = dict(f=np.array([1, 2]), label=np.ones(2, np.float32))

    def train(rows, name, **kwargs):
        directory = os.path.join(sys.argv[1], name)
        jobs.estimator(jobs.linear_model_fn(columns), columns, jobs.run_config(directory),
                       batch_size=2, **kwargs).train(jobs.input_fn_of([rows] * 2), max_steps=2)

    def show(name, job):
        try:
            job()
            print(name, 'works')
        except Exception as error:
            print(name, type(error).__name__, error)

    show('id', lambda: train({**good, 'f': np.array([1, 10])}, 'a'))
    show('key', lambda: train({'h': good['f'], 'label': good['label']}, 'b'))
    show('rate', lambda: ete.AdagradParameters(-1.) and train(
        good, 'c', optimizer=ete.AdagradParameters(float('nan'))))
    show('strategy', lambda: train(good, 'd', strategy='modulo'))
    show('size', lambda: jobs.run_config(sys.argv[1], 0))
    show('steps', lambda: train(good, 'e'))
    """)


@pytest.mark.soak
def test_u04_without_assertions_bad_jobs_fail_in_the_same_way(tmp_path):
    shown = []
    for flag in ('-Wignore', '-O'):
        done = run_python(flag, '-c', BAD_JOBS, tmp_path / flag, PYTHONPATH=path_with_harness())
        assert done.returncode == 0
        shown.append(done.stdout.splitlines())
    assert shown[0] == shown[1]
    assert [line.split()[:2] for line in shown[0]][-1] == ['steps', 'works']
    assert len(shown[0]) >= 6 and sum(' works' in line for line in shown[0]) == 1
    assert sys.flags.optimize == 0  # The suite itself keeps its assertions.
