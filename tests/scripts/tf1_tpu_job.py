"""A job for a Cloud TPU as of 2018: tf.contrib.tpu, contrib.data, summaries in a host_call."""

from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf

from tensorflow.contrib.tpu.python.tpu import tpu_config, tpu_estimator, tpu_optimizer

tf.flags.DEFINE_string('tpu', None, 'The Cloud TPU to use for training.')
tf.flags.DEFINE_string('gcp_project', None, 'Project name for the Cloud TPU.')
tf.flags.DEFINE_string('tpu_zone', None, 'GCE zone where the Cloud TPU is located.')
tf.flags.DEFINE_string('model_dir', None, 'Where checkpoints and summaries go.')
tf.flags.DEFINE_integer('train_steps', 20, 'Steps in all.')
tf.flags.DEFINE_integer('iterations_per_loop', 5, 'Steps per loop.')
tf.flags.DEFINE_integer('num_shards', None, 'Cores.')
FLAGS = tf.flags.FLAGS


def parse(index):
    label = tf.cast(tf.equal(index % 2, 0), tf.int32)
    return tf.one_hot(tf.to_int32(index % 8), 8), label


def input_fn(params):
    files = tf.data.Dataset.range(2)
    dataset = files.apply(tf.contrib.data.parallel_interleave(
        lambda start: tf.data.Dataset.range(start, start + 64), cycle_length=2, sloppy=False))
    dataset = dataset.apply(tf.contrib.data.shuffle_and_repeat(128, seed=1))
    dataset = dataset.apply(tf.contrib.data.map_and_batch(
        parse, batch_size=params['batch_size'], num_parallel_batches=2, drop_remainder=True))
    return dataset.prefetch(tf.contrib.data.AUTOTUNE)


def model_fn(features, labels, mode, params):
    with tf.contrib.tpu.bfloat16_scope():
        logits = tf.layers.dense(tf.cast(features, tf.bfloat16), 2, name='logits')
    logits = tf.cast(logits, tf.float32)
    loss = tf.losses.softmax_cross_entropy(tf.one_hot(labels, 2), logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        def metric_fn(labels, logits):
            predictions = tf.argmax(logits, axis=1)
            return {'top_1_accuracy': tf.metrics.accuracy(labels, predictions)}
        return tpu_estimator.TPUEstimatorSpec(
            mode=mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))

    global_step = tf.train.get_global_step()
    learning_rate = tf.train.polynomial_decay(params['rate'], global_step, 100)
    optimizer = tpu_optimizer.CrossShardOptimizer(
        tf.train.MomentumOptimizer(learning_rate, momentum=0.9))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step)

    def host_call_fn(gs, loss, lr):
        gs = gs[0]
        with tf.contrib.summary.create_file_writer(
                FLAGS.model_dir, max_queue=FLAGS.iterations_per_loop).as_default():
            with tf.contrib.summary.always_record_summaries():
                tf.contrib.summary.scalar('training_loss', loss[0], step=gs)
            with tf.contrib.summary.record_summaries_every_n_global_steps(2, global_step=gs):
                tf.contrib.summary.scalar('learning_rate', lr[0], step=gs)
            with tf.contrib.summary.never_record_summaries():
                tf.contrib.summary.scalar('unwanted', lr[0], step=gs)
            return tf.contrib.summary.all_summary_ops()

    host_call = (host_call_fn, [tf.reshape(global_step, [1]), tf.reshape(loss, [1]),
                                tf.reshape(learning_rate, [1])])
    return tf.contrib.tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, train_op=train_op, host_call=host_call)


def main(unused_argv):
    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(
        FLAGS.tpu, zone=FLAGS.tpu_zone, project=FLAGS.gcp_project)
    config = tpu_config.RunConfig(
        cluster=resolver,
        model_dir=FLAGS.model_dir,
        save_checkpoints_steps=10,
        session_config=tf.ConfigProto(
            allow_soft_placement=True, log_device_placement=False),
        tpu_config=tpu_config.TPUConfig(
            iterations_per_loop=FLAGS.iterations_per_loop, num_shards=FLAGS.num_shards,
            per_host_input_for_training=tpu_config.InputPipelineConfig.PER_HOST_V2))
    estimator = tf.contrib.tpu.TPUEstimator(
        use_tpu=True, model_fn=model_fn, config=config, train_batch_size=32, eval_batch_size=32,
        params={'rate': 0.5})
    estimator.train(input_fn=input_fn, max_steps=FLAGS.train_steps)
    results = estimator.evaluate(input_fn=input_fn, steps=4)
    print('step %d, accuracy %.2f' % (results['global_step'], results['top_1_accuracy']))
    for name in sorted(estimator.get_variable_names()):
        print(name, np.shape(estimator.get_variable_value(name)))


if __name__ == '__main__':
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run()
