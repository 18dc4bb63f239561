"""Makes TFRS layers under strategies, and feeds them.

A test module that uses it needs the names that `install()` puts in place: `names_in_place`.
"""

import contextlib

import numpy as np
import tensorflow as tf
from harness import replicas

from estimator_tpu_embedding._tf import distribute
from estimator_tpu_embedding.compat import import_paths, tf2

TO_HOST = tf.distribute.InputOptions(experimental_fetch_to_device=False)
_REPLACED = ('TPUStrategy', 'TPUStrategyV1', 'TPUStrategyV2', 'InputOptions', 'TPUEmbedding')


@contextlib.contextmanager
def names_in_place():
    """Puts the emulated classes where TFRS looks for them, and TensorFlow's own back at the end."""
    modules = [distribute.tpu_strategy_module(), *(
        module for path in ('distribute', 'distribute.experimental', 'tpu.experimental.embedding')
        for module in import_paths.namespaces(path))]
    before = [(module, name, getattr(module, name)) for module in modules for name in _REPLACED
              if hasattr(module, name)]
    tf2.put_in_place()
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def layer_under(made, *args, kernels='native', policy='error', **kwargs):
    """A `TPUEmbedding` layer of TFRS under a strategy, alone there; arguments as the layer's.

    Optimizers of Keras, and models, are made in `replicas.scope`, beside the layer.
    """
    from tensorflow_recommenders.layers.embedding import tpu_embedding_layer
    with replicas.scope(made, kernels=kernels, policy=policy):
        return tpu_embedding_layer.TPUEmbedding(*args, **kwargs)


def weighted_sum(values, coefficients):
    """The sum over all elements of their products."""
    return tf.reduce_sum(values * coefficients)


def joined(made, results):
    """The results of all replicas, tensors in some structure, as of one global batch."""
    return tf.nest.map_structure(
        lambda one: tf.concat(made.experimental_local_results(one), 0), results)


def feed(made, samples, element_of, *, batch, repeat=True):
    """A distributed dataset whose elements stay on the host, in the order of the samples.

    Keras puts predictions into the order in which hosts take turns to get a batch of a replica.

    Args:
      made: the strategy.
      samples: by name an array `[samples, ...]`, or a list of each sample's ids.
      element_of: a dict of such tensors, ragged ones for lists -> what the model gets.
      batch: samples of all replicas per step.
      repeat: whether it begins anew at its end.
    """
    values = {name: value if isinstance(value, np.ndarray)
              else tf.ragged.constant(value, tf.int64, ragged_rank=1)
              for name, value in samples.items()}

    def dataset_fn(context):
        dataset = tf.data.Dataset.from_tensor_slices(values).ragged_batch(
            batch // context.num_replicas_in_sync, drop_remainder=True).shard(
                context.num_input_pipelines, context.input_pipeline_id).map(element_of)
        return dataset.repeat() if repeat else dataset

    return made.distribute_datasets_from_function(dataset_fn, TO_HOST)


def values_of(layer):
    """Tables and slots as arrays, by the name of the table, then `'parameters'` or the slot."""
    return replicas.values_of(layer._tpu_embedding)
