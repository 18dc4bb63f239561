"""Tables get the gradient of the very loss that the user's optimizer differentiates."""

import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import jobs

import estimator_tpu_embedding as ete

TABLE = 'dense_features/f_embedding/embedding_weights'
STEP = {'f': np.array([3, 3, 5, 0]), 'label': np.zeros(4, np.float32)}
# Rows start at 1. With w = 1 and width 1 the activations are 1 and the loss is mean(a**2), so
# each sample adds 2 * 1 / 4 = .5 to the gradient of its row: id 3 twice, ids 5 and 0 once.
GRADIENT = {3: 1., 5: .5, 0: .5}


def train(tmp_path, minimize, hosts=1, cores=1):
    """One step of SGD(1) on the table; `minimize(loss, activation)` gives the train_op.

    Returns the gradient that each row received: initial minus final value.
    """
    columns = [jobs.embedding('f', 10, 1, initializer=tf.ones_initializer())]

    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        w = tf.get_variable('w', [1, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(net, w)[:, 0] - labels))
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=minimize(loss, net))

    jobs.estimator(model_fn, columns, jobs.run_config(tmp_path, hosts, cores, 1), batch_size=4,
                   optimizer=ete.StochasticGradientDescentParameters(1.)).train(
                       jobs.input_fn_of([STEP]), max_steps=1)
    change = 1 - jobs.stored(tmp_path, TABLE, hosts=hosts)[:, 0]
    return {row: float(change[row]) for row in np.flatnonzero(change)}


def sgd(**kwargs):
    return ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1), **kwargs)


def step():
    return tf.train.get_global_step()


@pytest.mark.parametrize('hosts, cores', [(1, 1), (2, 2)])
def test_the_mean_reduction_gives_the_gradient_of_the_mean_over_the_global_batch(
        tmp_path, hosts, cores):
    assert train(tmp_path, lambda loss, net: sgd().minimize(loss, step()), hosts, cores) == (
        pytest.approx(GRADIENT))


def test_the_sum_reduction_gives_the_sum_over_cores(tmp_path):
    def minimize(loss, net):
        return sgd(reduction=tf.losses.Reduction.SUM).minimize(loss, step())
    # Each of 4 cores has one sample and a mean over that: 4 times the gradient of the mean.
    assert train(tmp_path, minimize, 2, 2) == pytest.approx(
        {row: 4 * value for row, value in GRADIENT.items()})


def test_a_regularised_loss_given_to_minimize_counts_not_the_loss_of_the_spec(tmp_path):
    def minimize(loss, net):
        return sgd().minimize(loss + 3 * tf.reduce_mean(tf.square(net)), step())
    # loss + 3 mean(a**2) = 4 mean(a**2) at w = 1
    assert train(tmp_path, minimize) == pytest.approx(
        {row: 4 * value for row, value in GRADIENT.items()})


def test_what_is_done_to_gradients_after_compute_gradients_does_not_reach_the_tables(tmp_path):
    def minimize(loss, net):
        optimizer = sgd()
        clipped = [(tf.clip_by_value(gradient, -1e-9, 1e-9), variable)
                   for gradient, variable in optimizer.compute_gradients(loss)]
        return optimizer.apply_gradients(clipped, step())
    assert train(tmp_path, minimize) == pytest.approx(GRADIENT)


def test_a_var_list_without_the_dummies_warns_that_the_table_does_not_train(tmp_path, caplog):
    def minimize(loss, net):
        return sgd().minimize(loss, step(), var_list=tf.global_variables('w'))
    with caplog.at_level(logging.WARNING, 'tensorflow'):
        assert train(tmp_path, minimize) == {}
    assert 'Table "tbl_f" does not train' in caplog.text


def test_two_gradients_of_one_activation_are_refused(tmp_path):
    def minimize(loss, net):
        return tf.group(sgd().minimize(loss, step()), sgd().minimize(2 * loss))
    with pytest.raises(RuntimeError, match=r'Duplicate gradients \(w.r.t. TPUEmbedding'):
        train(tmp_path, minimize)
