"""Makes strategies of TF2, and feeds a TPUEmbedding under any of them with global batches."""

import contextlib
import dataclasses
import functools

import numpy as np
import tensorflow as tf

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.core.specs import Kernels
from estimator_tpu_embedding.midlevel import strategy
from estimator_tpu_embedding.midlevel.replicas import forget_initialized
from estimator_tpu_embedding.midlevel.tpu_embedding_v2 import TPUEmbedding

MOST = 8


@functools.cache
def make(name):
    """A strategy by its name: `'none'`, `'one device'`, `'mirrored 2'`, `'tpu 8'`..."""
    kind, _, number = name.rpartition(' ')
    if name == 'none':
        return tf.distribute.get_strategy()
    if name == 'one device':
        return tf.distribute.OneDeviceStrategy('/cpu:0')
    strategy.configure_devices(MOST)  # Their number is set once in a process.
    if kind == 'mirrored':
        return tf.distribute.MirroredStrategy([f'/cpu:{i}' for i in range(int(number))])
    hosts = 2 if int(number) > 2 else 1
    return strategy.TPUStrategyV2(
        ete.TPUClusterResolver(hosts=hosts, cores=int(number) // hosts))


@contextlib.contextmanager
def scope(made, *, kernels='native', policy='error'):
    """The scope of a strategy whose emulated TPU is new, with these settings for what is made."""
    before = defaults.current()
    defaults.set_current(dataclasses.replace(
        before, kernels=Kernels(kernels), id_policy=policy))
    try:
        forget_initialized()
        with made.scope():
            yield
    finally:
        defaults.set_current(before)


def embedding_under(made, *args, kernels='native', policy='error', **kwargs):
    """A TPUEmbedding, alone, under a strategy."""
    with scope(made, kernels=kernels, policy=policy):
        return TPUEmbedding(*args, **kwargs)


def split(made, value, dtype=tf.int64):
    """A global batch, a list of a sample's ids or an array by sample, as values of replicas."""
    number = made.num_replicas_in_sync
    parts = [value[i * len(value) // number:(i + 1) * len(value) // number]
             for i in range(number)]

    def part(context):
        own = parts[context.replica_id_in_sync_group]
        return tf.constant(own) if isinstance(own, np.ndarray) else sparse(own, dtype)

    return made.experimental_distribute_values_from_function(part)


def sparse(rows, dtype=tf.int64):
    """A SparseTensor of up to 4 numbers per row."""
    return tf.SparseTensor(
        tf.constant([[i, j] for i, row in enumerate(rows) for j in range(len(row))], tf.int64,
                    [sum(map(len, rows)), 2]),
        tf.constant([one for row in rows for one in row], dtype),
        [len(rows), 4])  # Of one shape in all steps, for one trace.


def values_of(embedding):
    """Tables and slots as arrays, by the name of the table, then `'parameters'` or the slot."""
    return {table: {name: variable.numpy() for name, variable in own.items()}
            for table, own in embedding._variables.items()}
