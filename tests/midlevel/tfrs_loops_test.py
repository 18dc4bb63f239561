"""The loops of the TFRS layer's own documentation train as the NumPy reference does."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas, tfrs
from harness.numpy_reference import ReferenceTable, assert_close
from harness.parts import soak_except

from estimator_tpu_embedding.midlevel import optimizers

pytestmark = pytest.mark.soak

api, keras = tf.tpu.experimental.embedding, tf.keras.optimizers.legacy
BATCH, STEPS, EVALUATIONS, RATE = 16, 5, 3, .05
ROWS, WIDTH = {'one': 11, 'two': 7}, 4
TABLE_OF = {'feature_one': 'one', 'feature_three': 'two', 'feature_two': 'one'}
KINDS = {'feature_one': 'dense', 'feature_two': 'ragged', 'feature_three': 'dense',
         'label': 'dense'}


@pytest.fixture(scope='module', autouse=True)
def names():
    with tfrs.names_in_place():
        yield


def initial(name):
    return np.random.default_rng(ROWS[name]).normal(size=(ROWS[name], WIDTH)).astype(np.float32)


def feature_config():
    tables = {name: api.TableConfig(
        vocabulary_size=ROWS[name], dim=WIDTH, combiner='mean', name=name,
        initializer=lambda shape, dtype, name=name: tf.constant(initial(name)))
        for name in ROWS}
    return {feature: api.FeatureConfig(table=tables[table])
            for feature, table in TABLE_OF.items()}


def batch_of(step):
    generator = np.random.default_rng(step)
    return {'feature_one': generator.integers(ROWS['one'], size=BATCH),
            'feature_two': [generator.integers(ROWS['one'], size=generator.integers(0, 4)).tolist()
                            for _ in range(BATCH)],
            'feature_three': generator.integers(ROWS['two'], size=BATCH),
            'label': np.float32(generator.normal(size=BATCH))}


class Reference(tfrs.Reference):
    """The model of the documentation in float64: a Dense(1) above all activations."""

    def __init__(self, optimizer):
        super().__init__({name: ReferenceTable(
            initial(name), optimizers.core_optimizer(optimizer), 'mean')
            for name in ROWS}, TABLE_OF)
        self.kernel = np.ones(3 * WIDTH)

    def step(self, number, *, training):
        """The loss of a global batch."""
        batch = batch_of(number)
        x = np.hstack(list(self.lookup(batch).values()))
        wrong = x @ self.kernel - batch['label']
        if training:
            of_x = np.outer(2 / BATCH * wrong, self.kernel)
            self.kernel = self.kernel - RATE * x.T @ (2 / BATCH * wrong)
            self.update(batch, dict(zip(TABLE_OF, np.hsplit(of_x, 3))))
        return np.mean(wrong ** 2)

    def check(self, layer, kernel):
        assert_close(kernel.numpy()[:, 0], self.kernel, 1e-5)
        for table, values in tfrs.values_of(layer).items():
            assert_close(values.pop('parameters'), self.tables[table].rows, 1e-5)
            slots = self.tables[table].slots.values()
            for found, wanted in zip(values.values(), slots, strict=True):
                assert_close(found, wanted, 1e-5)


class SubclassModel(tf.keras.Model):
    def __init__(self, layer):
        super().__init__()
        self.embedding_layer = layer
        self.dense = dense_layer()

    def call(self, inputs):
        embedding = self.embedding_layer(inputs)
        return self.dense(tf.concat(tf.nest.flatten(embedding), 1))


def dense_layer():
    return tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='ones')


def functional_model(layer):
    inputs = {name: tf.keras.Input(
        batch_size=BATCH, shape=(), dtype=tf.int64, ragged=KINDS[name] == 'ragged', name=name)
        for name in TABLE_OF}
    model = tf.keras.Model(inputs, dense_layer()(tf.concat(tf.nest.flatten(layer(inputs)), 1)))
    model.embedding_layer = layer
    return model


def iterator(made, steps):
    """Elements are (labels, features), as in the documentation."""
    return tfrs.iterator(made, [batch_of(step) for step in steps], KINDS, lambda element: (
        element['label'], {name: element[name] for name in TABLE_OF}))


def loss_of(model_output, labels):
    return tf.reduce_sum((model_output[:, 0] - labels) ** 2) / BATCH


def make_model(made, style, embedding_optimizer):
    layer = tfrs.layer_under(made, feature_config(), embedding_optimizer)
    with made.scope():
        return {'subclass': SubclassModel, 'functional': functional_model}[style](layer)


def kernel_of(model):
    return next(one for one in model.variables if 'kernel' in one.name)


@pytest.mark.parametrize('style', ['subclass', 'functional'])
@pytest.mark.parametrize('strategy', soak_except(['tpu 2', 'tpu 1', 'tpu 8'], 0))
def test_training_and_evaluation_steps_of_the_documentation(strategy, style):
    strategy = replicas.make(strategy)
    with replicas.scope(strategy):
        optimizer = keras.SGD(RATE)
    model = make_model(strategy, style, optimizer)
    with strategy.scope():
        losses = tf.keras.metrics.Sum()

    @tf.function
    def training_step(dataset_iterator, num_steps):
        def tpu_step(inputs):
            labels, features = inputs
            with tf.GradientTape() as tape:
                model_output = model(features)
                loss = loss_of(model_output, labels)

            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))

        for _ in tf.range(num_steps):
            strategy.run(tpu_step, args=(next(dataset_iterator), ))

    @tf.function
    def evaluation_step(dataset_iterator, num_steps):
        def tpu_step(inputs):
            labels, features = inputs
            model_output = model(features)
            losses.update_state(loss_of(model_output, labels))

        for _ in tf.range(num_steps):
            strategy.run(tpu_step, args=(next(dataset_iterator), ))

    batches = iterator(strategy, range(2 * STEPS + EVALUATIONS))
    reference = Reference(api.SGD(RATE))
    training_step(batches, tf.constant(STEPS))
    evaluation_step(batches, tf.constant(EVALUATIONS))
    training_step(batches, tf.constant(STEPS))
    expected = 0
    for number in range(2 * STEPS + EVALUATIONS):
        training = not STEPS <= number < STEPS + EVALUATIONS
        loss = reference.step(number, training=training)
        expected += 0 if training else loss
    assert_close(losses.result().numpy(), expected, 1e-5)
    reference.check(model.embedding_layer, kernel_of(model))


@pytest.mark.parametrize('style', ['subclass', 'functional'])
@pytest.mark.parametrize('strategy', soak_except(['tpu 2', 'tpu 1', 'tpu 8', 'none'], 0, 3))
def test_the_step_with_a_separate_optimizer_trains_the_same_on_tpu_and_cpu(strategy, style):
    """The documentation says: "The above training step works both on TPU and on CPU"."""
    strategy = replicas.make(strategy)
    with replicas.scope(strategy):
        embedding_optimizer = keras.Adagrad(learning_rate=0.1)
        dense_optimizer = keras.SGD(RATE)
    model = make_model(strategy, style, embedding_optimizer)

    @tf.function
    def training_step(dataset_iterator, num_steps):
        def tpu_step(inputs):
            labels, features = inputs
            with tf.GradientTape() as tape:
                model_output = model(features)
                loss = loss_of(model_output, labels)

            gradients = tape.gradient(loss, model.trainable_variables)
            grads_and_vars = list(zip(gradients, model.trainable_variables))
            embedding_var_ids = [id(v) for v in model.embedding_layer.trainable_variables]
            dense_grads_and_vars = [
                (g, v) for g, v in grads_and_vars if id(v) not in embedding_var_ids]
            dense_optimizer.apply_gradients(dense_grads_and_vars)
            embedding_grads_and_vars = [
                (g, v) for g, v in grads_and_vars if id(v) in embedding_var_ids]
            embedding_optimizer.apply_gradients(embedding_grads_and_vars)

        for _ in tf.range(num_steps):
            strategy.run(tpu_step, args=(next(dataset_iterator), ))

    training_step(iterator(strategy, range(STEPS)), tf.constant(STEPS))
    reference = Reference(api.Adagrad(.1))
    for number in range(STEPS):
        reference.step(number, training=True)
    reference.check(model.embedding_layer, kernel_of(model))
