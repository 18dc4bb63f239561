"""TFRS's tasks and layers train under a TPUStrategy as stock TFRS does on a plain CPU.

There TFRS looks up by TensorFlow's own operations, and the optimizer of Keras trains the tables.
"""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas, tfrs
from harness.numpy_reference import assert_close

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures('tfrs_names')]

api = tf.tpu.experimental.embedding
BATCH, STEPS, WIDTH = 16, 4, 4
ROWS = {'a': 11, 'b': 13, 'small': 5}
PLACES = np.arange(STEPS * BATCH)
SAMPLES = {**{name: 3 * PLACES % rows for name, rows in ROWS.items()},
           'label': (PLACES % 2).astype(np.float32)}


def feature_config(*names):
    return {name: api.FeatureConfig(api.TableConfig(
        ROWS[name], WIDTH, lambda shape, dtype=None, name=name: tf.constant(
            np.random.default_rng(ROWS[name]).normal(size=[ROWS[name], WIDTH]), tf.float32),
        name=name)) for name in names}


def dense(units, seed, activation=None, **kwargs):
    return tf.keras.layers.Dense(
        units, activation, kernel_initializer=tf.keras.initializers.GlorotUniform(seed), **kwargs)


def ids_of(element):
    return {name: element[name] for name in ROWS}


def retrieval_task(made, optimizer):
    """Two towers; the candidates of a query are those of its replica, here of half a batch."""
    import tensorflow_recommenders as library
    halves = 2 // made.num_replicas_in_sync

    class Model(library.Model):
        def __init__(self):
            super().__init__()
            self.embedding = library.layers.embedding.TPUEmbedding(
                feature_config('a', 'b'), optimizer)
            self.query, self.candidate = dense(3, 6), dense(3, 7)
            self.task = library.tasks.Retrieval()

        def call(self, ids):
            activations = self.embedding({'a': ids['a'], 'b': ids['b']})
            return tf.concat([self.query(activations['a']), self.candidate(activations['b'])], 1)

        def compute_loss(self, inputs, training=False):
            return tf.add_n([self.task(*tf.split(half, 2, 1), compute_metrics=not training)
                             for half in tf.split(self(inputs[0]), halves)])

    model = Model()
    model.compile(optimizer)
    return model, model.embedding, lambda element: {'a': element['a'], 'b': element['b']}


def partial_layer(made, optimizer):
    """A small table is a layer of Keras, the others are looked up by TFRS's layer."""
    import tensorflow_recommenders as library
    layer = library.experimental.layers.embedding.PartialTPUEmbedding(
        feature_config(*ROWS), optimizer, size_threshold=10)
    inputs = {name: tf.keras.Input([], BATCH, dtype=tf.int64) for name in ROWS}
    activations = layer(inputs)
    outputs = dense(1, 8)(tf.concat([activations[name] for name in ROWS], 1))
    model = tf.keras.Model(inputs, outputs)
    model.compile(optimizer, 'mse')
    return model, layer.tpu_embedding, ids_of


def trained(name, make):
    """Metrics, predictions and tables after two epochs."""
    made = replicas.make(name)
    with replicas.scope(made):
        optimizer = tf.keras.optimizers.legacy.Adagrad(.1)
        model, layer, features_of = make(made, optimizer)
    data = tfrs.feed(made, SAMPLES, lambda element: (features_of(element), element['label']),
                batch=BATCH)
    model.fit(data, epochs=2, steps_per_epoch=STEPS, verbose=0)
    metrics = model.evaluate(data, steps=STEPS, verbose=0, return_dict=True)
    predictions = model.predict(
        tfrs.feed(made, SAMPLES, features_of, batch=BATCH), steps=STEPS, verbose=0)
    # Losses are those of one replica, for which TFRS says what to do.
    return ({key: value for key, value in metrics.items() if 'loss' not in key}, predictions,
            {table: own['parameters'].numpy()
             for table, own in layer._tpu_embedding._variables.items()})


@pytest.mark.parametrize('name', ['tpu 1', 'tpu 2'])
@pytest.mark.parametrize('make', [partial_layer, retrieval_task])
def test_a_model_of_tfrs_trains_as_on_a_plain_cpu(name, make):
    metrics, predictions, tables = trained(name, make)
    expected_metrics, expected, expected_tables = trained('none', make)
    assert metrics.keys() == expected_metrics.keys()
    for key, value in expected_metrics.items():
        assert metrics[key] == pytest.approx(value, abs=1e-4)
    assert_close(predictions, expected, 1e-4)
    assert tables.keys() == expected_tables.keys()
    for table, rows in expected_tables.items():
        assert_close(tables[table], rows, 1e-4)
        initial = np.random.default_rng(ROWS[table]).normal(size=rows.shape)
        assert np.abs(rows - initial).max() > .01
