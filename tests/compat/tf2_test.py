"""The TF2 side by the names of TensorFlow, in processes of their own: `install()` is global."""

from harness.processes import run_python

BEGINNING = '''
import estimator_tpu_embedding as ete
ete.install(hosts=2, cores=2)
import tensorflow as tf
api = tf.tpu.experimental.embedding
def raised(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        return str(error)
'''


def check(code):
    done = run_python('-c', BEGINNING + code, loaded=True)
    assert done.returncode == 0


def test_there_is_one_device_until_there_is_a_strategy_whenever_that_is():
    check('''
tf.config.threading.set_inter_op_parallelism_threads(2)  # Fails once devices are initialized.
before = iter(tf.data.Dataset.range(9).map(lambda n: n + 1).prefetch(2))
variable = tf.Variable(1.)
step = tf.function(lambda: variable.assign_add(1.))
assert (int(next(before)), float(step())) == (1, 2)
assert len(tf.config.list_logical_devices('CPU')) == 1
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    assert len(session.list_devices()) == 1
ete.install(hosts=3, cores=1)  # After operations have run.
resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)
assert strategy.num_replicas_in_sync == len(tf.config.list_logical_devices('CPU')) == 3
assert (int(next(before)), float(step())) == (2, 3)
assert isinstance(strategy, tf.distribute.experimental.TPUStrategy)
assert isinstance(strategy, tf.compat.v1.distribute.experimental.TPUStrategy)
assert not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
ete.install(hosts=1)
assert tf.distribute.experimental.TPUStrategy().num_replicas_in_sync == 1
said = raised(tf.distribute.TPUStrategy, ete.TPUClusterResolver(cores=4))
assert said == (
    'E007 tf.config: a TPUStrategy of 4 replicas needs 4 logical CPU devices, and their '
    'number can be set once only; got 3.  Call install(hosts=..., cores=...) for the largest '
    'system before the first strategy is made, and leave the devices to it.'), said
''')


def test_tensorflows_own_classes_know_the_strategy():
    check('''
import numpy as np
def rows(shape, dtype):
    return tf.reshape(tf.range(8, dtype=dtype), shape)
table = api.TableConfig(4, 2, rows, combiner='mean', name='table')
config = {'dense': api.FeatureConfig(table), 'ragged': api.FeatureConfig(table),
          'sparse': api.FeatureConfig(table), 'sequence': api.FeatureConfig(table, 3)}
with (strategy := tf.distribute.TPUStrategy()).scope():
    embedding = api.TPUEmbeddingV0(config, api.SGD(.1))
    optimizer = tf.keras.optimizers.legacy.SGD(.1)
    assert raised(api.TPUEmbeddingForServing, config, None) == (
        'Serving on TPU is not yet supported.')
    said = raised(api.TPUEmbeddingV2(api.FeatureConfig(
        table, output_shape=[2]), api.SGD(.1)).build)
    assert said.startswith('E924 TPUEmbeddingV2: the emulated TPU has no SparseCores'), said
assert 'should be created under TPUStrategy' in raised(api.TPUEmbeddingV0, config, None)
ids = tf.sparse.from_dense([[1, 3], [2, 0]])
features = {'dense': tf.constant([0, 3]), 'ragged': tf.ragged.constant([[1, 2], []]),
            'sparse': ids, 'sequence': ids}
weights = {'dense': None, 'ragged': None, 'sequence': None, 'sparse': tf.SparseTensor(
    ids.indices, [1., 3., .5], ids.dense_shape)}

@tf.function
def step():
    def replica():
        with tf.GradientTape() as tape:
            found = embedding(features, weights)
            loss = tf.reduce_sum(found['dense'])
        tables = list(embedding.embedding_tables.values())
        optimizer.apply_gradients(zip(tape.gradient(loss, tables), tables))
        return found
    return strategy.run(replica)

found = {name: strategy.experimental_local_results(value)[3].numpy().tolist()
         for name, value in step().items()}
assert found['dense'] == [[0, 1], [6, 7]], found
assert found['ragged'] == [[3, 4], [0, 0]], found
assert found['sparse'] == [[5, 6], [4, 5]], found  # (1 * [2, 3] + 3 * [6, 7]) / 4
assert found['sequence'][0] == [[2, 3], [6, 7], [0, 0]], found  # The second has padding of id 0.
np.testing.assert_allclose(  # Summed over four replicas.
    embedding.embedding_tables[table].numpy()[[0, 1, 3]], [[-.4, .6], [2, 3], [5.6, 6.6]],
    rtol=1e-6)

serving = api.TPUEmbeddingForServing(config, None)
assert serving(features)['ragged'].numpy().tolist() == [[3, 4], [0, 0]]
found_here = api.serving_embedding_lookup(features, weights, serving.embedding_tables, config)
assert found_here['sparse'].numpy().tolist() == found['sparse']
''')


OF_TFRS = '''
import sys
import estimator_tpu_embedding as ete
ete.install(hosts=1, cores=2)
assert 'tensorflow_recommenders' not in sys.modules
import tensorflow as tf
import tensorflow_recommenders as tfrs

api = tf.tpu.experimental.embedding
features, labels = {'watched': tf.range(4)}, tf.ones([4, 1])
mirrored = lambda: tf.distribute.MirroredStrategy(['/cpu:0'])

def model_under(strategy):
    with strategy.scope():
        layer = tfrs.layers.embedding.TPUEmbedding({'watched': api.FeatureConfig(
            api.TableConfig(10, 2, tf.ones_initializer(), combiner='sum', name='video'))},
            api.Adagrad(.1))
        inputs = {'watched': tf.keras.Input((), batch_size=4, dtype=tf.int32)}
        dense = tf.keras.layers.Dense(1, kernel_initializer='ones')
        model = tf.keras.Model(inputs, dense(layer(inputs)['watched']))
        model.compile(tf.keras.optimizers.legacy.SGD(.25), 'mse')
    return model
'''
SAID = ('WARNING:tensorflow:W008 table "video": the optimizer that applies the model\'s gradients '
        'trains it, and not its own by the rules of the TPU; got {}.  For those, create the model '
        'in the scope of a tf.distribute.TPUStrategy, under etpe run --hosts H --cores C.')


def lines(code):
    """The lines about who trains which a program logs."""
    done = run_python('-c', OF_TFRS + code, loaded=True)
    assert done.returncode == 0
    return [line for line in done.stderr.splitlines() if 'W008' in line]


def test_the_first_fit_says_it_once_and_trains_by_the_optimizer_of_keras():
    """Of 4 samples each has an error of 2 - 1, and each row a gradient of 2 * 1 / 4."""
    assert lines('''
model = model_under(mirrored())
model.evaluate(features, labels, batch_size=4, verbose=0)
model.predict(features, batch_size=4, verbose=0)
print('fit', file=sys.stderr, flush=True)
model.fit(features, labels, batch_size=4, verbose=0)
rows = model.layers[1].weights[0].numpy()
assert rows[0, 0] == 1 - .25 * .5, rows
assert rows[4, 0] == 1, rows
model.fit(features, labels, batch_size=4, verbose=0)
model_under(mirrored()).fit(features, labels, batch_size=4, verbose=0)
''') == [SAID.format('MirroredStrategy')]


def test_nothing_is_said_where_no_declared_optimizer_is_left_out():
    assert lines('''
model_under(mirrored()).evaluate(features, labels, batch_size=4, verbose=0)
strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver(''))
model = model_under(strategy)
data = strategy.distribute_datasets_from_function(
    lambda _: tf.data.Dataset.from_tensors(({'watched': tf.range(2)}, tf.ones([2, 1]))).repeat(),
    tf.distribute.InputOptions(experimental_fetch_to_device=False))
model.fit(data, steps_per_epoch=2, verbose=0)
''') == []
