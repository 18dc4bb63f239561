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
    done = run_python('-c', BEGINNING + code)
    assert done.returncode == 0


def test_install_leaves_the_devices_alone_until_there_is_a_strategy():
    check('''
tf.config.threading.set_inter_op_parallelism_threads(2)  # Fails once devices are initialized.
assert len(tf.config.list_logical_devices('CPU')) == 1
tf.ones([2]) + 1
ete.install(hosts=2, cores=1)
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    assert len(session.list_devices()) == 1
resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)
assert strategy.num_replicas_in_sync == 2  # What was said last, and after operations have run.
assert len(tf.config.list_logical_devices('CPU')) == 2
assert isinstance(strategy, tf.distribute.experimental.TPUStrategy)
assert isinstance(strategy, tf.compat.v1.distribute.experimental.TPUStrategy)
assert not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
assert tf.distribute.experimental.TPUStrategy().cluster_resolver.emulated_system.is_explicit
ete.install(hosts=4)
said = raised(tf.distribute.TPUStrategy)
assert said.startswith('E007 '), said
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
assert api.serving_embedding_lookup(
    {'sparse': ids}, {'sparse': weights['sparse']}, serving.embedding_tables, config
)['sparse'].numpy().tolist() == found['sparse']
''')
