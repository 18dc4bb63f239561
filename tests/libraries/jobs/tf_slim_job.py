"""A few steps of a model of tf_slim, with batch normalization."""

import tempfile

import tensorflow as tf
import tf_slim as slim


def model_fn(features, labels, mode):
    with slim.arg_scope([slim.fully_connected], normalizer_fn=slim.batch_norm):
        inner = slim.fully_connected(features['x'], 4)
    loss = tf.compat.v1.losses.mean_squared_error(
        labels, slim.fully_connected(inner, 1, activation_fn=None))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=slim.learning.create_train_op(
        loss, tf.compat.v1.train.GradientDescentOptimizer(.01)))


def input_fn():
    return tf.data.Dataset.from_tensors(({'x': [[1.], [2.]]}, [[1.], [2.]])).repeat(5)


estimator = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
estimator.train(input_fn)
print('trained', estimator.get_variable_value('global_step'))
