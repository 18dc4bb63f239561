"""2019: a TPUEstimator job by tf.contrib.tpu, with flags, a host_call and bfloat16."""
# run: etpe run --tf1 --contrib
from __future__ import absolute_import

import tempfile

from absl import flags
import tensorflow as tf

FLAGS = flags.FLAGS
flags.DEFINE_string('tpu', None, 'Name of the TPU.')
flags.DEFINE_integer('num_shards', 8, 'Cores.')
flags.DEFINE_bool('use_tpu', True, 'On a TPU.')


def model_fn(features, labels, mode, params):
    with tf.contrib.tpu.bfloat16_scope():  # expect: I303 tensorflow.contrib.tpu.bfloat16_scope
        logits = tf.layers.dense(tf.cast(features, tf.bfloat16), 1)  # expect: I302 tensorflow.layers.dense
    logits = tf.to_float(logits)[:, 0]  # expect: I302 tensorflow.to_float
    loss = tf.losses.mean_squared_error(labels, logits)  # expect: I302|I304 tensorflow.losses.mean_squared_error
    optimizer = tf.train.GradientDescentOptimizer(0.01)  # expect: I302 tensorflow.train.GradientDescentOptimizer
    if FLAGS.use_tpu:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)  # expect: I303 tensorflow.contrib.tpu.CrossShardOptimizer
    train_op = optimizer.minimize(loss, tf.train.get_global_step())  # expect: I302 tensorflow.train.get_global_step
    return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)  # expect: I303 tensorflow.contrib.tpu.TPUEstimatorSpec


def input_fn(params):
    rows = tf.data.Dataset.from_tensors(([1.0, 2.0], 1.0)).repeat()
    return rows.batch(params['batch_size'], drop_remainder=True)


def main(unused_argv):
    del unused_argv
    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu)  # expect: I303 tensorflow.contrib.cluster_resolver.TPUClusterResolver
    config = tf.contrib.tpu.RunConfig(  # expect: I303 tensorflow.contrib.tpu.RunConfig
        cluster=resolver,
        model_dir=tempfile.mkdtemp(),
        tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=2, num_shards=FLAGS.num_shards))  # expect: I303 tensorflow.contrib.tpu.TPUConfig
    estimator = tf.contrib.tpu.TPUEstimator(  # expect: I303 tensorflow.contrib.tpu.TPUEstimator
        model_fn=model_fn, config=config, use_tpu=FLAGS.use_tpu, train_batch_size=16)
    tf.logging.info('training')  # expect: I302 tensorflow.logging.info
    estimator.train(input_fn=input_fn, max_steps=4)
    print('reached the last line')


if __name__ == '__main__':
    tf.app.run(main)  # expect: I302 tensorflow.app.run
