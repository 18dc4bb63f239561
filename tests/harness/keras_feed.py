"""Feeds Keras models that have a TPUEmbedding layer of TFRS, as a TPU needs it."""

import numpy as np
import tensorflow as tf

TO_HOST = tf.distribute.InputOptions(experimental_fetch_to_device=False)


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
