"""2017: canned models of tf.contrib.learn with columns of tf.contrib.layers."""
# run: etpe run --tf1 --contrib
# stops: tensorflow.contrib.learn.python.learn
from __future__ import absolute_import
from __future__ import print_function

import tensorflow as tf
from tensorflow.contrib.learn.python.learn import learn_runner  # expect: E103 tensorflow.contrib.learn
import tensorflow.contrib.layers as layers  # expect: I303 tensorflow.contrib.layers

flags = tf.app.flags  # expect: I302 tensorflow.app.flags
FLAGS = flags.FLAGS  # expect: I302 tensorflow.app.flags.FLAGS
flags.DEFINE_string('output_dir', '/tmp/wide', 'where to')  # expect: I302 tensorflow.app.flags.DEFINE_string

CITY = tf.contrib.layers.sparse_column_with_hash_bucket('city', 100)  # expect: E103 tensorflow.contrib.layers.sparse_column_with_hash_bucket
AGE = layers.real_valued_column('age')  # expect: E103 tensorflow.contrib.layers.real_valued_column


def build_estimator(model_dir):
    return tf.contrib.learn.DNNLinearCombinedClassifier(  # expect: E103 tensorflow.contrib.learn.DNNLinearCombinedClassifier
        model_dir=model_dir,
        linear_feature_columns=[CITY],
        dnn_feature_columns=[layers.embedding_column(CITY, 8), AGE],  # expect: E103 tensorflow.contrib.layers.embedding_column
        dnn_hidden_units=[16])


def experiment_fn(output_dir):
    return tf.contrib.learn.Experiment(  # expect: E103 tensorflow.contrib.learn.Experiment
        build_estimator(output_dir), train_input_fn=None, eval_input_fn=None)


def main(_):
    learn_runner.run(experiment_fn, FLAGS.output_dir)  # expect: E103 tensorflow.contrib.learn.python.learn.learn_runner.run


if __name__ == '__main__':
    tf.app.run()  # expect: I302 tensorflow.app.run
