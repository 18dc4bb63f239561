"""Random plans and ids for tests of the exchange between cores and owners, and a naive exchange."""

import numpy as np
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.ops.ids import IdBatch

SAMPLES = 4


def as_tensors(exchange, batch):
    """The same as an `IdBatch` of each feature."""
    return {feature.name: IdBatch(
        tf.constant(samples), tf.constant(ids, tf.int64), count,
        None if weights is None else tf.constant(weights))
        for feature, count in zip(exchange.features, exchange.samples)
        for samples, ids, weights in [batch[feature.name]]}


def bits_of(weight):
    """The int32 that has the bits of a float32."""
    return int(np.float32(weight).view(np.int32))
