"""A classifier in plain TensorFlow 1.x: placeholders, tf.layers, a session."""

from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer('steps', 200, 'Training steps.')
flags.DEFINE_float('learning_rate', 0.05, 'Learning rate.')
tf.flags.DEFINE_string('output_dir', None, 'Where to save.')
FLAGS = tf.flags.FLAGS


def network(images, is_training):
    with tf.variable_scope('network', reuse=tf.AUTO_REUSE):
        net = tf.layers.dense(images, 16, activation=tf.nn.relu, name='hidden',
                              kernel_initializer=tf.glorot_uniform_initializer(seed=1))
        net = tf.layers.dropout(net, 0.1, training=is_training)
        cell = tf.nn.rnn_cell.BasicLSTMCell(8)
        outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(net, [-1, 4, 4]), dtype=tf.float32)
        return tf.layers.dense(outputs[:, -1], 2, name='logits')


def main(unused_argv):
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.logging.info('TensorFlow %s', tf.VERSION)
    tf.set_random_seed(1)
    tf.gfile.MakeDirs(FLAGS.output_dir)
    rng = np.random.RandomState(0)
    images = rng.rand(256, 6).astype(np.float32)
    labels = (images.sum(axis=1) > 3).astype(np.int32)

    x = tf.placeholder(tf.float32, [None, 6], name='x')
    y = tf.placeholder(tf.int32, [None], name='y')
    is_training = tf.placeholder_with_default(False, [], name='is_training')
    logits = network(x, is_training)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.to_int32(tf.argmax(logits, 1)), y)))
    global_step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(FLAGS.learning_rate, global_step, 100, 0.9)
    train_op = tf.train.AdamOptimizer(rate).minimize(loss, global_step=global_step)
    tf.summary.scalar('loss', loss)
    summaries = tf.summary.merge_all()
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(256, seed=1)
    batch = dataset.repeat().batch(64).make_one_shot_iterator().get_next()
    assert x.shape[1].value == 6 and tf.trainable_variables()[0].name == 'network/hidden/kernel:0'

    saver = tf.train.Saver(max_to_keep=1)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        writer = tf.summary.FileWriter(FLAGS.output_dir, sess.graph)
        sess.run(tf.global_variables_initializer())
        for _ in range(FLAGS.steps):
            features, targets = sess.run(batch)
            _, written, step = sess.run([train_op, summaries, global_step], {
                x: features, y: targets, is_training: True})
            writer.add_summary(written, step)
        writer.close()
        saver.save(sess, FLAGS.output_dir + '/model.ckpt', global_step=global_step)
        print('step %d, accuracy %.2f' % (step, sess.run(accuracy, {x: images, y: labels})))
    with tf.gfile.GFile(FLAGS.output_dir + '/done.txt', 'w') as done:
        done.write('%s\n' % tf.__version__)


if __name__ == '__main__':
    flags.mark_flag_as_required('output_dir')
    tf.app.run()
