"""Metrics, imported relatively."""
import tensorflow as tf


def metric_fn(labels, logits):
    return {'accuracy': tf.metrics.accuracy(labels, tf.round(tf.nn.sigmoid(logits)))}  # expect: I302 tensorflow.metrics.accuracy
