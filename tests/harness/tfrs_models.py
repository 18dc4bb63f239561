"""Small models with TFRS's layer, for processes with this package and for those without it.

    python -m harness.tfrs_models restore FOLDER
    python -m harness.tfrs_models serve FOLDER

These processes lack the package. One restores with stock TFRS what was saved under an emulated TPU,
trains on, and saves that; FOLDER has a folder for each case of `tfrs_checkpoint_test`. The other
calls the functions of SavedModels with TensorFlow alone, and compares what they return; FOLDER has
`predictions.npy`, those for the batch `PREDICTED`, and SavedModels.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

api = tf.tpu.experimental.embedding
ROWS = {'user': 5, 'video': 7}
PREDICTED = 3
WIDTH, BATCH, MOST = 2, 8, 4
"""The width of tables, samples of a global batch, and how many videos a sample may have."""

_OWN = {'own adagrad': api.Adagrad, 'own adam': api.Adam, 'own ftrl': api.FTRL}
KINDS = ('sgd', 'adagrad', 'adam', 'ftrl', *_OWN)
"""Optimizers of Keras, which make the slots of tables, and those of which the layer has the slots.
"""


def of_keras(kind):
    """The legacy optimizer of Keras of a kind, for the model; SGD beside one of the layer's own."""
    legacy = tf.keras.optimizers.legacy
    with_slots = {'adagrad': legacy.Adagrad, 'adam': legacy.Adam, 'ftrl': legacy.Ftrl}
    return with_slots.get(kind, legacy.SGD)(.05)


def tables():
    """TableConfigs by name, in which rows differ."""
    return {name: api.TableConfig(
        rows, WIDTH, tf.random_uniform_initializer(-1, 1, seed=rows), combiner='sum', name=name)
        for name, rows in ROWS.items()}


def features(of_tables):
    """A FeatureConfig for each table."""
    return {name: api.FeatureConfig(table) for name, table in of_tables.items()}


def layer(kind, optimizer, of_tables=None, **kwargs):
    """A layer whose tables `optimizer` of Keras trains, unless the kind has one of its own."""
    from tensorflow_recommenders.layers.embedding import tpu_embedding_layer
    return tpu_embedding_layer.TPUEmbedding(
        features(of_tables or tables()), _OWN[kind](.05) if kind in _OWN else optimizer, **kwargs)


class Ranking(tf.keras.Model):
    """The subclassed model: the sum of what the tables have, through one dense layer."""

    def __init__(self, embedding):
        """Makes the dense layer beside `embedding`."""
        super().__init__()
        self.embedding = embedding
        self.dense = tf.keras.layers.Dense(1, kernel_initializer='ones', name='dense')

    def call(self, inputs):
        """Looks up `user`, int64 `[batch]`, and `video`, sparse `[batch, MOST]`."""
        found = self.embedding(inputs)
        return self.dense(tf.concat([found['user'], found['video']], -1))


def functional(embedding):
    """The same as a functional model."""
    inputs = {'user': tf.keras.Input((), BATCH, 'user', tf.int64),
              'video': tf.keras.Input((MOST,), BATCH, 'video', tf.int64, sparse=True)}
    found = embedding(inputs)
    dense = tf.keras.layers.Dense(1, kernel_initializer='ones', name='dense')
    return tf.keras.Model(inputs, dense(tf.concat([found['user'], found['video']], -1)))


def samples(number):
    """What a global batch has: users int64 `[BATCH]`, videos int64 `[BATCH, MOST]`, labels."""
    users = (np.arange(BATCH) * (number + 2)) % ROWS['user']
    videos = (np.arange(BATCH * MOST).reshape(BATCH, MOST) * (number + 1)) % ROWS['video']
    return users, videos, np.linspace(0, 1, BATCH, dtype=np.float32)[:, None] + number


def dense_to_sparse(videos):
    """The SparseTensor of all of `videos`, of a shape that is known while functions are traced."""
    rows, columns = np.indices(videos.shape).reshape(2, -1)
    return tf.SparseTensor(np.stack([rows, columns], -1), videos.reshape(-1), videos.shape)


def inputs(number):
    """The inputs of a model for a global batch."""
    users, videos, _ = samples(number)
    return {'user': tf.constant(users), 'video': dense_to_sparse(videos)}


def trainer(model, optimizer, strategy):
    """A function that trains `model` with a global batch; its argument is the number of the batch.

    It is a loop as TFRS documents it.
    """
    def step(ids, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(ids) - labels)**2) / BATCH
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    @tf.function
    def train(ids, labels):
        strategy.run(step, (ids, labels))

    return lambda number: train(*_of_replicas(number, strategy))


def predictor(model, strategy):
    """A function of the number of a batch that returns predictions `[BATCH, 1]`; it builds, too."""
    @tf.function
    def predict(ids):
        found = strategy.run(model, (ids,))
        return tf.concat(strategy.experimental_local_results(found), 0)

    return lambda number: predict(_of_replicas(number, strategy)[0]).numpy()


def _of_replicas(number, strategy):
    """Inputs and labels of a global batch as values of replicas."""
    users, videos, labels = samples(number)
    size = BATCH // strategy.num_replicas_in_sync

    def split(make):
        def part(context):
            first = context.replica_id_in_sync_group * size
            return make(slice(first, first + size))
        return strategy.experimental_distribute_values_from_function(part)

    return ({'user': split(lambda own: tf.constant(users[own])),
             'video': split(lambda own: dense_to_sparse(videos[own]))},
            split(lambda own: tf.constant(labels[own])))


def build(model, optimizer, strategy):
    """Makes all variables: tables, their slots, those of dense layers and those of `optimizer`."""
    predictor(model, strategy)(0)
    with strategy.scope():
        optimizer._create_all_weights(model.trainable_variables)


def make(kind, is_functional, **kwargs):
    """A new model and its optimizer, in the scope of a strategy; a functional one is compiled."""
    optimizer = of_keras(kind)
    embedding = layer(kind, optimizer, **kwargs)
    if not is_functional:
        return Ranking(embedding), optimizer
    model = functional(embedding)
    model.compile(optimizer, 'mse')
    return model, optimizer


def save(folder, model, optimizer):
    """Writes checkpoints of all forms that hold all values, and the values as `values.npz`."""
    tf.train.Checkpoint(model=model, optimizer=optimizer).write(f'{folder}/both')
    if model.optimizer is not None:
        tf.train.Checkpoint(model=model).write(f'{folder}/model')
        model.save_weights(f'{folder}/weights')
    np.savez(f'{folder}/values.npz', **values_of(model))


def restore(path, model, optimizer):
    """Reads one of the checkpoints of `save`, and returns its status."""
    if path.endswith('/weights'):
        return model.load_weights(path)
    objects = {'optimizer': optimizer} if path.endswith('/both') else {}
    return tf.train.Checkpoint(model=model, **objects).read(path)


def require_restored(folder, status, model):
    """Everything was found, on both sides, and tables and slots are the same bit for bit."""
    status.assert_consumed()
    status.assert_existing_objects_matched()
    with np.load(f'{folder}/values.npz') as expected:
        found = values_of(model)
        assert sorted(found) == sorted(expected)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, name)


def embedding_of(model):
    """The layer of a model, subclassed or functional."""
    return next(one for one in model.layers if hasattr(one, '_tpu_embedding'))


def values_of(model):
    """All that is trained: tables and their slots, and the variables of the dense layer.

    Returns:
      Arrays by names such as `video`, `video/accumulators`, `dense/kernel`.
    """
    found = {}
    for table, own in embedding_of(model)._tpu_embedding._variables.items():
        for name, variable in own.items():
            found[table if name == 'parameters' else f'{table}/{name}'] = variable.numpy()
    dense = model.get_layer('dense')
    return {**found, 'dense/kernel': dense.kernel.numpy(), 'dense/bias': dense.bias.numpy()}


def restore_all(folder):
    """Checks every case, and leaves its own checkpoints in `stock` below it."""
    strategy = tf.distribute.get_strategy()
    for case in sorted(pathlib.Path(folder).iterdir()):
        kind, shape, _ = case.name.split(', ')
        for index in sorted(case.glob('*.index')):
            for built in False, True:
                model, optimizer = make(kind, shape == 'functional')
                if built:
                    build(model, optimizer, strategy)
                status = restore(str(index.with_suffix('')), model, optimizer)
                build(model, optimizer, strategy)
                require_restored(case, status, model)
        trainer(model, optimizer, strategy)(2)
        stock = case / 'stock'
        stock.mkdir()
        save(stock, model, optimizer)
    assert 'estimator_tpu_embedding' not in sys.modules


def serve(folder):
    """Prints the names of the functions of each SavedModel; all have given the predictions."""
    predictions = np.load(f'{folder}/predictions.npy')
    for path in sorted(pathlib.Path(folder).glob('*/saved_model.pb')):
        loaded = tf.saved_model.load(str(path.parent))
        for name, function in sorted(loaded.signatures.items()):
            taken = function.structured_input_signature[1]
            users = taken.get('user', taken.get('args_0'))
            size = users.shape[0] or BATCH
            found, = function(**_named(taken, size)).values()
            np.testing.assert_allclose(found, predictions[:size], 1e-6, 1e-6)
            print(path.parent.name, name, size)
    assert not {'estimator_tpu_embedding', 'tensorflow_recommenders'} & set(sys.modules)


def _named(names, size):
    """The first samples of the batch, by names; those of Keras count the parts of a model's inputs.
    """
    users, videos, _ = samples(PREDICTED)
    sparse = dense_to_sparse(videos[:size])
    given = {'user': users[:size], 'video': videos[:size], 'args_0': users[:size],
             'args_0_1': sparse.indices, 'args_0_2': sparse.values, 'args_0_3': sparse.dense_shape}
    return {name: tf.constant(given[name]) for name in names}


if __name__ == '__main__':
    {'restore': restore_all, 'serve': serve}[sys.argv[1]](sys.argv[2])
