"""2018: argparse, a module and a data file beside the script, `from ... import estimator`."""
from __future__ import absolute_import, division, print_function

import argparse
import os

import tensorflow.compat.v1 as tf
from tensorflow.compat.v1 import estimator as tf_estimator

import reading

parser = argparse.ArgumentParser()
parser.add_argument('--steps', type=int, default=4, help='of training')
parser.add_argument('--data', default=os.path.join(os.path.dirname(__file__), 'ratings.csv'))


def my_model(features, labels, mode, params):
    """The model of the tutorial, more or less."""
    item = tf.feature_column.categorical_column_with_vocabulary_list(
        'item', ['tea', 'coffee', 'milk'])
    net = tf.feature_column.input_layer(
        features, [tf.feature_column.embedding_column(item, dimension=params['width'])])
    predicted = tf.layers.dense(net, 1)[:, 0]
    loss = tf.losses.mean_squared_error(labels, predicted)
    if mode == tf_estimator.ModeKeys.EVAL:
        return tf_estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={
            'mae': tf.metrics.mean_absolute_error(labels, predicted)})
    train_op = tf.train.AdagradOptimizer(0.1).minimize(
        loss, global_step=tf.train.get_global_step())
    return tf_estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    args = parser.parse_args()
    model = tf_estimator.Estimator(my_model, params={'width': 2})
    model.train(lambda: reading.dataset(args.data).repeat(), steps=args.steps)
    result = model.evaluate(lambda: reading.dataset(args.data))
    print('step %d, metrics %s' % (result['global_step'], sorted(result)))


if __name__ == '__main__':
    main()
