"""A few steps of a groupwise ranking model."""

import tempfile

import tensorflow as tf
import tensorflow_ranking as tfr


def transform(features, mode):
    return {}, {'x': tf.cast(features['x'], tf.float32)}


def score(context, group, mode, params, config):
    return tf.compat.v1.layers.dense(tf.compat.v1.layers.flatten(group['x']), 1)


def train_op(loss):
    return tf.compat.v1.train.AdagradOptimizer(.1).minimize(
        loss, global_step=tf.compat.v1.train.get_global_step())


def input_fn():
    return tf.data.Dataset.from_tensors(
        ({'x': [[[1.], [2.], [3.]]]}, [[0., 1., 2.]])).repeat(5)


head = tfr.head.create_ranking_head(
    loss_fn=tfr.losses.make_loss_fn('pairwise_logistic_loss'), train_op_fn=train_op)
estimator = tf.estimator.Estimator(tfr.model.make_groupwise_ranking_fn(
    group_score_fn=score, group_size=1, transform_fn=transform, ranking_head=head),
    model_dir=tempfile.mkdtemp())
estimator.train(input_fn)
print('trained', estimator.get_variable_value('global_step'))
