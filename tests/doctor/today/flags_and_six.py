"""absl, six and TensorFlow 1 by compat.v1, as jobs of 2020 had them."""
from absl import app
from absl import flags
from absl import logging
import six
from six.moves import range
from six.moves.urllib import parse
import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2

FLAGS = flags.FLAGS
flags.DEFINE_integer('steps', 2, 'Steps.')
tf.flags.DEFINE_string('output', '', 'Where to.')


def main(_):
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        session.run(tf.global_variables_initializer())
        for _ in range(FLAGS.steps):
            session.run(tf.assign_add(step, 1))
        logging.info('%s of %s', session.run(step), tf.flags.FLAGS.output)
    print(six.text_type(parse.quote('a b')), FLAGS['steps'].value, tf2.__version__)
    print('reached the last line')


if __name__ == '__main__':
    tf.disable_eager_execution()
    app.run(main)
