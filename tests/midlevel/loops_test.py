"""The loops of TensorFlow's own documentation, with a small model."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas
from harness.numpy_reference import ReferenceTable, assert_close
from harness.parts import soak_except

from estimator_tpu_embedding.midlevel import optimizers

api = tf.tpu.experimental.embedding
BATCH, STEPS, EVALUATIONS, RATE = 16, 6, 3, .05
ROWS, WIDTH = {'one': 11, 'two': 7}, 4
TABLE_OF = {'feature_one': 'one', 'feature_two': 'one', 'feature_three': 'two'}
TO_HOST = tf.distribute.InputOptions(experimental_fetch_to_device=False)


def initial(name):
    return np.random.default_rng(ROWS[name]).normal(size=(ROWS[name], WIDTH)).astype(np.float32)


def ids_of(step):
    """By feature the ids of each sample, dense for the last, and the labels."""
    generator = np.random.default_rng(step)
    lists = {name: [generator.integers(ROWS['one'], size=generator.integers(0, 4)).tolist()
                    for _ in range(BATCH)] for name in ('feature_one', 'feature_two')}
    dense = generator.integers(ROWS['two'], size=BATCH).tolist()
    return {**lists, 'feature_three': [[one] for one in dense]}, generator.normal(size=BATCH)


def feature_config():
    tables = {name: api.TableConfig(
        vocabulary_size=ROWS[name], dim=WIDTH, combiner='mean', name=name,
        initializer=lambda shape, dtype, name=name: tf.constant(initial(name)))
        for name in ROWS}
    return {feature: api.FeatureConfig(table=tables[table])
            for feature, table in TABLE_OF.items()}


def dataset_fn(context):
    """Batches of a replica: feature_one is sparse, feature_two ragged, feature_three dense."""
    # As distributed datasets deal out: replica by replica, those of a host from its input.
    own = context.num_replicas_in_sync // context.num_input_pipelines
    share = BATCH // context.num_replicas_in_sync
    batches = []
    for features, labels in map(ids_of, range(STEPS + EVALUATIONS)):
        first = context.input_pipeline_id * own
        for replica in range(first, first + own):
            rows = slice(replica * share, (replica + 1) * share)
            batches.append([*(features[name][rows] for name in TABLE_OF), labels[rows]])
    one, two, three, labels = zip(*batches)
    ragged = [tf.ragged.constant(ids, tf.int64, ragged_rank=2) for ids in (one, two)]
    dataset = tf.data.Dataset.from_tensor_slices((*ragged, np.array(three), np.float32(labels)))
    return dataset.map(lambda one, two, three, labels: (
        {'feature_one': one.to_sparse(), 'feature_two': two, 'feature_three': three[:, 0]},
        labels))


class Reference:
    """The job in float64 on one machine."""

    def __init__(self, optimizer):
        self.tables = {name: ReferenceTable(
            initial(name), optimizers.core_optimizer(optimizer), 'mean') for name in ROWS}
        self.kernel = np.ones(3 * WIDTH)

    def step(self, number, *, training):
        """The loss of a global batch."""
        features, labels = ids_of(number)
        x = np.hstack([self.tables[table].lookup(features[name])
                       for name, table in TABLE_OF.items()])
        wrong = x @ self.kernel - labels
        if training:
            of_x = np.outer(2 / BATCH * wrong, self.kernel)
            self.kernel = self.kernel - RATE * x.T @ (2 / BATCH * wrong)
            parts = dict(zip(TABLE_OF, np.hsplit(of_x, 3)))
            for table in ROWS:
                self.tables[table].update([(features[name], parts[name], None)
                                           for name in TABLE_OF if TABLE_OF[name] == table])
        return np.mean(wrong ** 2)


@pytest.mark.parametrize('name', soak_except([
    'tpu 1', 'tpu 2', 'tpu 8', 'none', 'one device', 'mirrored 2'], 1))
def test_the_training_and_evaluation_loops_of_the_documentation_equal_the_reference(name):
    strategy = replicas.make(name)
    embedding = replicas.embedding_under(
        strategy, feature_config=feature_config(), batch_size=BATCH, optimizer=api.Adagrad(.1))
    with strategy.scope():
        model = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='ones')
        model.build([None, 3 * WIDTH])
        optimizer = tf.keras.optimizers.legacy.SGD(RATE)
        losses = tf.keras.metrics.Sum()

    def loss_of(activations, labels):
        outputs = model(tf.concat([activations[name] for name in TABLE_OF], 1))
        return tf.reduce_sum((outputs[:, 0] - labels) ** 2) / BATCH

    @tf.function
    def training_step(dataset_iterator, num_steps):
        def tpu_step(tpu_features):
            with tf.GradientTape() as tape:
                activations = embedding.dequeue()
                tape.watch(activations)
                loss = loss_of(activations, tpu_features)
            embedding_gradients, gradients = tape.gradient(
                loss, [activations, model.trainable_variables])
            embedding.apply_gradients(embedding_gradients)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))

        for _ in tf.range(num_steps):
            embedding_features, tpu_features = next(dataset_iterator)
            embedding.enqueue(embedding_features, training=True)
            strategy.run(tpu_step, args=(tpu_features,))

    @tf.function
    def evaluation_step(dataset_iterator, num_steps):
        def tpu_step(tpu_features):
            losses.update_state(loss_of(embedding.dequeue(), tpu_features))

        for _ in tf.range(num_steps):
            embedding_features, tpu_features = next(dataset_iterator)
            embedding.enqueue(embedding_features, training=False)
            strategy.run(tpu_step, args=(tpu_features,))

    iterator = iter(strategy.distribute_datasets_from_function(dataset_fn, TO_HOST))
    training_step(iterator, tf.constant(STEPS))
    evaluation_step(iterator, tf.constant(EVALUATIONS))

    reference = Reference(api.Adagrad(.1))
    for number in range(STEPS):
        reference.step(number, training=True)
    expected = sum(reference.step(STEPS + number, training=False)
                   for number in range(EVALUATIONS))
    assert_close(losses.result().numpy(), expected, 1e-5)
    assert_close(model.kernel.numpy()[:, 0], reference.kernel, 1e-5)
    for table, values in replicas.values_of(embedding).items():
        assert_close(values['parameters'], reference.tables[table].rows, 1e-5)
        assert_close(values['accumulators'], reference.tables[table].slots['Adagrad'], 1e-5)
