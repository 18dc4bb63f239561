"""Helpers of the package."""
import tensorflow as tf


def model_fn(features, labels, mode, params):
    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_identity('item', 30), params['width'])
    net = tf.compat.v1.feature_column.input_layer(features, [column])
    logits = tf.compat.v1.layers.dense(net, 1)
    loss = tf.reduce_mean(tf.square(logits - labels), name='loss_of_step')
    optimizer = tf.compat.v1.train.AdagradOptimizer(params['rate'])
    if params['use_tpu']:
        optimizer = tf.compat.v1.tpu.CrossShardOptimizer(optimizer)
    return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, train_op=optimizer.minimize(
            loss, tf.compat.v1.train.get_global_step()))


def input_fn(params):
    size = params['batch_size']
    return tf.data.Dataset.from_tensors((
        {'item': tf.range(size, dtype=tf.int64)}, tf.ones([size, 1]))).repeat()
