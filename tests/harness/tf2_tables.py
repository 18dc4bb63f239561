"""Makes small TPUEmbeddings, ours and TensorFlow's, with a table for each optimizer."""

import numpy as np
import tensorflow as tf
from tensorflow.python.tpu import tpu_embedding_v2

from . import replicas

api = tf.tpu.experimental.embedding
OPTIMIZERS = {
    'sgd': api.SGD(.1), 'a/b.c': api.Adagrad(.1), 'momentum': api.AdagradMomentum(.1, .5),
    'ftrl': api.FTRL(.1), 'adam': api.Adam(.1)}
BATCH, ROWS = 8, 7


def module(**attributes):
    """An object with these attributes."""
    made = tf.Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def features(optimizers=None, width=2):
    """A feature for a table of each optimizer, by the name of the table."""
    tables = [
        api.TableConfig(ROWS + number, width, tf.random_uniform_initializer(-1, 1, seed=number),
                        optimizer, 'sum', name)
        for number, (name, optimizer) in enumerate((optimizers or OPTIMIZERS).items())]
    return [api.FeatureConfig(table, output_shape=[BATCH]) for table in tables]


def make(strategy='none', kernels='native', optimizers=None, pipelined=False, width=2):
    """Ours, not built; see `replicas.make`."""
    return replicas.embedding_under(
        replicas.make(strategy), features(optimizers, width),
        api.SGD(1.) if strategy.startswith('tpu') else None, pipelined, kernels=kernels)


def stock(own_features=None):
    """TensorFlow's, built, which holds tables on a CPU."""
    made = tpu_embedding_v2.TPUEmbedding(own_features or features(), None)
    made.build()
    return made


def trainer(embedding, strategy='none'):
    """A function that trains one step on what its number gives."""
    made, count = replicas.make(strategy), len(embedding._declared.features)

    @tf.function
    def train(ids):
        def step():
            activations = embedding.dequeue()
            embedding.apply_gradients([.3 * one + 1. for one in activations])
        embedding.enqueue([ids] * count)
        made.run(step)

    def train_step(number):
        ids = np.arange(BATCH * made.num_replicas_in_sync) * (number + 1) % ROWS
        train(replicas.split(made, ids))

    return train_step


def trained(strategy='none', kernels='native', steps=2, **kwargs):
    """Ours, after some steps."""
    embedding = make(strategy, kernels, **kwargs)
    embedding.build()
    step = trainer(embedding, strategy)
    for number in range(steps):
        step(number)
    return embedding


def assert_equal(found, expected):
    """All tables and slots are the same bit for bit, in objects or in what `values_of` gives."""
    found, expected = (one if isinstance(one, dict) else replicas.values_of(one)
                       for one in (found, expected))
    assert found.keys() == expected.keys()
    for table, own in expected.items():
        assert found[table].keys() == own.keys()
        for name, value in own.items():
            np.testing.assert_array_equal(found[table][name], value, f'{table} {name}')
