"""Makes TFRS layers under strategies, feeds and trains them, and says what they must hold then.

A test module that uses it needs the names that `install()` puts in place:

    @pytest.fixture(scope='module', autouse=True)
    def names():
        with tfrs.names_in_place():
            yield
"""

import contextlib

import numpy as np
import tensorflow as tf
from harness import replicas

from estimator_tpu_embedding._tf import distribute
from estimator_tpu_embedding.compat import import_paths, tf2

TO_HOST = tf.distribute.InputOptions(experimental_fetch_to_device=False)
LONGEST = 5
"""The width of sparse ids: of one shape in all steps, for one trace."""

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


def iterator(made, batches, kinds, arrange=lambda element: element):
    """An iterator of a distributed dataset whose elements stay on the host.

    Args:
      made: the strategy.
      batches: for each step a dict with the value of a global batch by name: an array
        `[samples, ...]`, or a list of a sample's numbers.
      kinds: by name `'dense'`, or `'sparse'` or `'ragged'` for lists.
      arrange: makes an element of the dict of a replica's values.
    """
    def dataset_fn(context):
        # As distributed datasets deal out: replica by replica, those of a host from its input.
        number, inputs = context.num_replicas_in_sync, context.num_input_pipelines
        first = context.input_pipeline_id * (number // inputs)
        own = [{name: _share(value, replica, number) for name, value in batch.items()}
               for batch in batches for replica in range(first, first + number // inputs)]
        samples = {name: len(value) for name, value in own[0].items()}
        return tf.data.Dataset.from_tensor_slices(
            {name: _stacked([one[name] for one in own], kinds[name]) for name in kinds}).map(
                lambda element: arrange({name: _of_kind(value, kinds[name], samples[name])
                                         for name, value in element.items()}))

    made_iterator = iter(made.distribute_datasets_from_function(dataset_fn, TO_HOST))
    return made_iterator


def training_step(made, layer, optimizer=None):
    """A tf.function of one step, whose loss is the sum of activations times coefficients.

    So coefficients are the gradients of activations. Their structure is that of the activations.

    Args:
      made: the strategy.
      layer: the layer.
      optimizer: of Keras, for the variables of the layer; under a TPUStrategy there is only its
        dummy variable.

    Returns:
      (ids, coefficients, weights or `None`) of replicas -> activations of the global batch.
    """
    def step(ids, coefficients, weights):
        with tf.GradientTape() as tape:
            activations = layer(ids, weights)
            loss = sum(map(weighted_sum, tf.nest.flatten(activations),
                           tf.nest.flatten(coefficients)))
        gradients = tape.gradient(loss, layer.trainable_variables)
        if optimizer is not None:
            optimizer.apply_gradients(zip(gradients, layer.trainable_variables))
        return activations

    @tf.function
    def train(ids, coefficients, weights=None):
        return joined(made, made.run(step, (ids, coefficients, weights)))
    return train


def weighted_sum(values, coefficients):
    """The sum over all elements of their products."""
    return tf.reduce_sum(values * coefficients)


def joined(made, results):
    """The results of all replicas, tensors in some structure, as of one global batch."""
    return tf.nest.map_structure(
        lambda one: tf.concat(made.experimental_local_results(one), 0), results)


def values_of(layer):
    """Tables and slots as arrays, by the name of the table, then `'parameters'` or the slot."""
    return replicas.values_of(layer._tpu_embedding)


class Reference:
    """What the layer must hold, in float64 on one machine.

    Attributes:
      tables: by name `harness.numpy_reference.ReferenceTable`.
    """

    def __init__(self, tables, table_of, sequences=()):
        """Declares features.

        Args:
          tables: by name.
          table_of: the name of the table of each feature.
          sequences: the length by name of features that are sequences.
        """
        self.tables, self._table_of, self._sequences = tables, table_of, dict(sequences)

    def lookup(self, ids, weights=None):
        """Activations by feature, of lists of each sample's ids, and of weights by feature."""
        found = {}
        for name, table in self._table_of.items():
            flat = self.tables[table].lookup(*self._flat(name, ids, weights or {}))
            found[name] = flat.reshape(len(ids[name]), -1, flat.shape[1]) if (
                name in self._sequences) else flat
        return found

    def update(self, ids, gradients, weights=None, cores=1):
        """One step with gradients by feature, of the shapes of activations."""
        for name, table in self.tables.items():
            own = [feature for feature, its in self._table_of.items() if its == name]
            flat = [self._flat(feature, ids, weights or {}) for feature in own]
            table.update([
                (batch, np.reshape(gradients[feature], [len(batch), -1]), weight)
                for feature, (batch, weight) in zip(own, flat)], cores)

    def _flat(self, name, ids, weights):
        """The ids and weights of a feature; each place of a sequence is a sample of its own."""
        batch, weight = ids[name], weights.get(name)
        if name not in self._sequences:
            return [np.atleast_1d(row).tolist() for row in batch], weight
        places = range(self._sequences[name])
        return [list(row[place:place + 1]) for row in batch for place in places], None


def _share(value, replica, number):
    return value[replica * len(value) // number:(replica + 1) * len(value) // number]


def _stacked(values, kind):
    if kind == 'dense':
        return np.stack(values)
    numbers = [one for value in values for row in value for one in row]
    return tf.ragged.constant(values, tf.float32 if any(
        isinstance(one, float) for one in numbers) else tf.int64, ragged_rank=2)


def _of_kind(value, kind, samples):
    """An element of a static number of samples, because layers are built from shapes of inputs."""
    if kind == 'dense':
        return value
    if kind == 'ragged':
        return tf.RaggedTensor.from_row_splits(
            value.values, tf.ensure_shape(value.row_splits, [samples + 1]), validate=False)
    sparse = value.to_sparse()
    return tf.SparseTensor(sparse.indices, sparse.values, [samples, LONGEST])
