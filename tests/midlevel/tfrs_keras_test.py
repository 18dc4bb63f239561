"""Keras models with TFRS's layer train, evaluate and predict under a TPUStrategy as NumPy says."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas, tfrs
from harness.numpy_reference import ReferenceTable, assert_close

from estimator_tpu_embedding.midlevel import feature_configs

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures('tfrs_names')]

api = tf.tpu.experimental.embedding
BATCH, STEPS, RATE, WIDTH = 16, 6, .05, 2
ROWS = {'video': 11, 'user': 7}
TABLE_OF = {'watched': 'video', 'liked': 'video', 'user': 'user'}
LABEL = 'label'


def initial(table):
    return np.random.default_rng(ROWS[table]).normal(size=(ROWS[table], WIDTH)).astype(np.float32)


def samples_of(steps, seed=0):
    """Up to 3 videos watched, up to 3 liked, one user and a label, for each sample."""
    generator = np.random.default_rng(seed)
    lists = {name: [generator.integers(ROWS['video'], size=generator.integers(0, 4)).tolist()
                    for _ in range(steps * BATCH)] for name in ('watched', 'liked')}
    return {**lists, 'user': generator.integers(ROWS['user'], size=steps * BATCH),
            LABEL: generator.normal(size=steps * BATCH).astype(np.float32)}


def features_of(element):
    """The inputs of the model: `watched` is sparse, `liked` ragged, `user` dense."""
    return {**{name: element[name] for name in TABLE_OF}, 'watched': element['watched'].to_sparse()}


def with_label(element):
    return features_of(element), element[LABEL]


def layer_of(optimizer):
    from tensorflow_recommenders.layers import embedding
    tables = {name: api.TableConfig(
        ROWS[name], WIDTH, lambda shape, dtype=None, name=name: tf.constant(initial(name)),
        combiner='mean', name=name) for name in ROWS}
    return embedding.TPUEmbedding({
        name: api.FeatureConfig(tables[table])
        for name, table in TABLE_OF.items()}, optimizer)


def functional(optimizer):
    inputs = {
        'watched': tf.keras.Input([None], BATCH, sparse=True, dtype=tf.int64),
        'liked': tf.keras.Input([None], BATCH, ragged=True, dtype=tf.int64),
        'user': tf.keras.Input([], BATCH, dtype=tf.int64)}
    layer = layer_of(optimizer)
    activations = layer(inputs)
    joined = tf.keras.layers.Concatenate()([activations[name] for name in TABLE_OF])
    model = tf.keras.Model(inputs, dense()(joined))
    return model, layer


def dense():
    return tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='ones')


def job(name, optimizer=api.Adagrad(.1), **kwargs):
    """A strategy, a compiled model and its layer."""
    made = replicas.make(name)
    with replicas.scope(made):
        model, layer = functional(optimizer)
        model.compile(tf.keras.optimizers.legacy.SGD(RATE), 'mse', **kwargs)
    return made, model, layer


def ids_of(samples, name):
    """The ids of each sample as a list."""
    return [np.atleast_1d(ids).tolist() for ids in samples[name]]


class Reference:
    """The job in float64 on one machine."""

    def __init__(self, optimizer=api.Adagrad(.1)):
        self.tables = {name: ReferenceTable(
            initial(name), feature_configs.core_optimizer(optimizer), 'mean') for name in ROWS}
        self.kernel = np.ones(3 * WIDTH)

    def look_up(self, samples):
        """The inputs of the dense layer: the activations of all features side by side."""
        return np.hstack([self.tables[table].lookup(ids_of(samples, name))
                          for name, table in TABLE_OF.items()])

    def predict(self, samples):
        return self.look_up(samples) @ self.kernel

    def loss(self, samples):
        return np.mean((self.predict(samples) - samples[LABEL]) ** 2)

    def fit(self, samples, rate=RATE):
        """One epoch; returns the mean of the losses of its steps."""
        losses = []
        for first in range(0, len(samples[LABEL]), BATCH):
            batch = {name: value[first:first + BATCH] for name, value in samples.items()}
            losses.append(self.loss(batch))
            wrong = 2 / BATCH * (self.predict(batch) - batch[LABEL])
            x = self.look_up(batch)
            of_x = dict(zip(TABLE_OF, np.hsplit(np.outer(wrong, self.kernel), 3)))
            for name, table in self.tables.items():
                table.update([(ids_of(batch, feature), of_x[feature], None)
                              for feature, its in TABLE_OF.items() if its == name])
            self.kernel = self.kernel - rate * x.T @ wrong
        return np.mean(losses)


def assert_holds(layer, reference):
    for name, values in tfrs.values_of(layer).items():
        assert_close(values['parameters'], reference.tables[name].rows, 1e-5)
        for slot in values.keys() - {'parameters'}:
            assert_close(values[slot], reference.tables[name].slots['Adagrad'], 1e-5)


@pytest.mark.parametrize('name, steps_per_execution', [('tpu 2', 1), ('tpu 4', 4), ('tpu 8', 10)])
def test_fit_evaluate_and_predict_equal_the_reference(name, steps_per_execution):
    """On 2 hosts too, from `tpu 4` on; predictions come in the order of samples."""
    made, model, layer = job(name, steps_per_execution=steps_per_execution, metrics=['mae'])
    samples, others = samples_of(STEPS), samples_of(3, seed=1)
    history = model.fit(tfrs.feed(made, samples, with_label, batch=BATCH), epochs=2,
                        steps_per_epoch=STEPS, verbose=0).history
    reference = Reference()
    assert_close(history['loss'], [reference.fit(samples) for _ in range(2)], 1e-5)
    assert_holds(layer, reference)

    found = model.evaluate(tfrs.feed(made, others, with_label, batch=BATCH), steps=3, verbose=0,
                           return_dict=True)
    assert_close(found['loss'], reference.loss(others), 1e-5)
    expected = reference.predict(others)
    assert_close(found['mae'], np.mean(np.abs(expected - others[LABEL])), 1e-5)
    predicted = model.predict(tfrs.feed(made, others, features_of, batch=BATCH), steps=3, verbose=0)
    assert_close(predicted[:, 0], expected, 1e-5)
    assert_holds(layer, reference)


class Watch(tf.keras.callbacks.Callback):
    """Notes the rows of a table at both ends of evaluations."""

    def __init__(self, layer):
        super().__init__()
        self.rows, self._layer = [], layer

    def on_test_begin(self, logs=None):
        self.rows.append(tfrs.values_of(self._layer)['video']['parameters'])

    on_test_end = on_test_begin


def test_callbacks_of_fit_do_what_they_do_elsewhere(tmp_path):
    """A rate per epoch, also of the tables; an end that comes early; weights that come back."""
    rates = {}
    made, model, layer = job('tpu 1', optimizer=api.SGD(lambda: rates['optimizer'].lr))
    rates['optimizer'] = model.optimizer
    samples, watch = samples_of(2), Watch(layer)
    data = tfrs.feed(made, samples, with_label, batch=BATCH)
    history = model.fit(
        data, epochs=4, steps_per_epoch=2, validation_data=data, validation_steps=2, verbose=0,
        callbacks=[
            tf.keras.callbacks.LearningRateScheduler(lambda epoch: [.1, .05, 0., 0.][epoch]),
            tf.keras.callbacks.EarlyStopping('val_loss'), watch,
            tf.keras.callbacks.ModelCheckpoint(f'{tmp_path}/{{epoch}}', save_weights_only=True)])
    reference, losses, rows = Reference(api.SGD(.1)), [], []
    for rate in (.1, .05, 0.):
        for table in reference.tables.values():
            table.rate = rate
        reference.fit(samples, rate)
        losses.append(reference.loss(samples))
        rows.append(reference.tables['video'].rows.copy())
    assert_close(history.history['val_loss'], losses, 1e-5)  # The fourth epoch never began.
    assert_close(np.array(watch.rows), np.repeat(rows, 2, 0), 1e-5)
    model.load_weights(f'{tmp_path}/1')
    assert_close(tfrs.values_of(layer)['video']['parameters'], rows[0], 1e-5)
    assert_close(model.evaluate(data, steps=2, verbose=0), losses[0], 1e-5)
