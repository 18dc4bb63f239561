"""2018: the model of a trainer that takes the TPU classes by their private paths."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import six
import tensorflow as tf

from tensorflow.contrib.tpu.python.tpu import tpu_estimator  # expect: I303 tensorflow.contrib.tpu.python.tpu.tpu_estimator
from tensorflow.contrib.training.python.training import hparam  # expect: I303 tensorflow.contrib.training.python.training.hparam

from . import metrics


def default_hparams():
    return hparam.HParams(hidden_size=4, learning_rate=0.1, vocab_size=10)  # expect: I303 tensorflow.contrib.training.python.training.hparam.HParams


def model_fn(features, labels, mode, params):
    hparams = default_hparams()
    with tf.variable_scope('body'):  # expect: I302 tensorflow.variable_scope
        table = tf.get_variable('emb', [hparams.vocab_size, hparams.hidden_size])  # expect: I302 tensorflow.get_variable
        net = tf.nn.embedding_lookup(table, features['inputs'])
        logits = tf.layers.dense(tf.reduce_mean(net, 1), 1)[:, 0]  # expect: I302 tensorflow.layers.dense
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)  # expect: I302 tensorflow.losses.sigmoid_cross_entropy
    optimizer = tf.contrib.tpu.CrossShardOptimizer(  # expect: I303 tensorflow.contrib.tpu.CrossShardOptimizer
        tf.train.AdamOptimizer(hparams.learning_rate))  # expect: I302 tensorflow.train.AdamOptimizer
    train_op = optimizer.minimize(loss, tf.train.get_global_step())  # expect: I302 tensorflow.train.get_global_step
    return tpu_estimator.TPUEstimatorSpec(  # expect: I303 tensorflow.contrib.tpu.python.tpu.tpu_estimator.TPUEstimatorSpec
        mode, loss=loss, train_op=train_op, eval_metrics=(metrics.metric_fn, [labels, logits]))


def describe(params):
    return ', '.join('%s=%s' % pair for pair in sorted(six.iteritems(params)))
