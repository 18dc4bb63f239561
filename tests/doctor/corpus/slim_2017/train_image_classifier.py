"""2017: the trainer of a model garden, which takes slim and a package of its own."""
# run: etpe run --tf1 --contrib
# stops: deployment
import tensorflow as tf

from nets import small_net

from deployment import model_deploy  # expect: E111 deployment

slim = tf.contrib.slim  # expect: I303 tensorflow.contrib.slim

tf.app.flags.DEFINE_string('master', '', 'The address of the master.')  # expect: I302 tensorflow.app.flags.DEFINE_string
FLAGS = tf.app.flags.FLAGS  # expect: I302 tensorflow.app.flags.FLAGS


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)  # expect: I302 tensorflow.logging.set_verbosity; I302 tensorflow.logging.INFO
    with tf.Graph().as_default():
        images = tf.random_uniform([2, 8, 8, 3])  # expect: I302 tensorflow.random_uniform
        logits = small_net.small_net(images, 10)
        slim.losses.softmax_cross_entropy(logits, [[1.] + 9 * [0.]] * 2)  # expect: I303 tensorflow.contrib.slim.losses.softmax_cross_entropy
        model_deploy.create_clones(logits)
        slim.learning.train(tf.no_op(), None, master=FLAGS.master)  # expect: I303 tensorflow.contrib.slim.learning.train


if __name__ == '__main__':
    tf.app.run()  # expect: I302 tensorflow.app.run
