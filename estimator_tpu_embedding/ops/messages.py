"""Reads and writes the messages of `exchange.py` at the owner, with TensorFlow's own operations."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from .ids import IdBatch


def read_message(owner: Plan, message: tf.Tensor) -> tuple[dict[str, IdBatch], tf.Tensor]:
    """Returns the ids of a message by feature, and int32 `[F]`, the number of groups of each."""
    count = len(owner.features)
    ids, lengths = message[:count], message[count:2 * count]
    total = tf.reduce_sum(ids)
    weighted = [number for number, feature in enumerate(owner.features)
                if feature.weight_feature]
    rows, samples, weights = tf.split(message[2 * count:], tf.stack([
        total, total, tf.reduce_sum(tf.gather(ids, tf.constant(weighted, tf.int32)))]))
    of_rows = tf.split(tf.cast(rows, tf.int64), ids, num=count)
    of_samples = tf.split(samples, ids, num=count)
    of_weights = dict(zip(weighted, tf.split(
        tf.bitcast(weights, tf.float32), tf.gather(ids, weighted), num=len(weighted))
        if weighted else []))
    return {feature.name: IdBatch(
        tf.ensure_shape(of_samples[number], [None]), tf.ensure_shape(of_rows[number], [None]),
        owner.num_samples(feature), of_weights.get(number))
        for number, feature in enumerate(owner.features)}, lengths


def write_sums(owner: Plan, activations: Mapping[str, tf.Tensor], lengths: tf.Tensor
               ) -> tf.Tensor:
    """Returns the sums that an owner sends: the first activations of each feature, flat."""
    return tf.concat([tf.reshape(activations[feature.name][:lengths[number]], [-1])
                      for number, feature in enumerate(owner.features)], 0)


def read_gradients(owner: Plan, gradients: tf.Tensor, lengths: tf.Tensor
                   ) -> dict[str, tf.Tensor]:
    """Returns the gradients of a core by feature; samples beyond its groups have zeros."""
    widths = [owner.table(feature.table).dimension for feature in owner.features]
    parts = tf.split(gradients, lengths * tf.constant(widths), num=len(widths))
    padded = {}
    for number, (feature, part) in enumerate(zip(owner.features, parts)):
        samples = owner.num_samples(feature)
        whole = tf.pad(tf.reshape(part, [-1, widths[number]]),
                       [[0, samples - lengths[number]], [0, 0]])
        padded[feature.name] = tf.ensure_shape(whole, [samples, widths[number]])
    return padded
