"""2018: a trainer over a package of its own, which runs to its end."""
# run: etpe run --tf1 --contrib
from __future__ import print_function

import tempfile

import tensorflow as tf
from tensorflow.contrib.tpu.python.tpu import tpu_config  # expect: I303 tensorflow.contrib.tpu.python.tpu.tpu_config
from tensorflow.contrib.tpu.python.tpu import tpu_estimator  # expect: I303 tensorflow.contrib.tpu.python.tpu.tpu_estimator

from utils import t2t_model

flags = tf.flags  # expect: I302 tensorflow.flags
FLAGS = flags.FLAGS  # expect: I302 tensorflow.flags.FLAGS
flags.DEFINE_integer('train_steps', 2, 'Steps.')  # expect: I302 tensorflow.flags.DEFINE_integer
flags.DEFINE_integer('iterations_per_loop', 2, 'Steps of a loop.')  # expect: I302 tensorflow.flags.DEFINE_integer


def input_fn(params):
    rows = tf.data.Dataset.from_tensors(({'inputs': [1, 2, 3]}, 1.0)).repeat()
    return rows.apply(tf.contrib.data.batch_and_drop_remainder(params['batch_size']))  # expect: I303 tensorflow.contrib.data.batch_and_drop_remainder


def main(_):
    config = tpu_config.RunConfig(  # expect: I303 tensorflow.contrib.tpu.python.tpu.tpu_config.RunConfig
        model_dir=tempfile.mkdtemp(),
        tpu_config=tpu_config.TPUConfig(FLAGS.iterations_per_loop, 2))  # expect: I303 tensorflow.contrib.tpu.python.tpu.tpu_config.TPUConfig
    estimator = tpu_estimator.TPUEstimator(t2t_model.model_fn, config=config, train_batch_size=8)  # expect: I303 tensorflow.contrib.tpu.python.tpu.tpu_estimator.TPUEstimator
    estimator.train(input_fn, max_steps=FLAGS.train_steps)
    print('reached the last line')


if __name__ == '__main__':
    tf.app.run(main)  # expect: I302 tensorflow.app.run
