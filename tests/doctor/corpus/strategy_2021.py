"""2021: TF2 with a TPUStrategy, TPUEmbedding of the mid-level API and a custom loop."""
# run: etpe run
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)

table = tf.tpu.experimental.embedding.TableConfig(vocabulary_size=16, dim=4, name='words')
feature = tf.tpu.experimental.embedding.FeatureConfig(table=table)
with strategy.scope():
    embedding = tf.tpu.experimental.embedding.TPUEmbedding(
        feature_config={'text': feature},
        optimizer=tf.tpu.experimental.embedding.SGD(0.1))

rows = tf.data.Dataset.from_tensors({'text': tf.ragged.constant([[1], [2, 3]]).to_sparse()})
options = tf.distribute.InputOptions(experimental_fetch_to_device=False)
iterator = iter(strategy.experimental_distribute_dataset(rows.repeat(), options=options))


@tf.function
def step():
    def replica(activations):
        with tf.GradientTape() as tape:
            activations = embedding.dequeue()
            tape.watch(activations)
            loss = tf.reduce_sum(activations['text'] ** 2)
        embedding.apply_gradients(tape.gradient(loss, activations))
        return loss
    features = next(iterator)
    embedding.enqueue(features, training=True)
    return strategy.run(replica, args=(tf.constant(0.0),))


step()
print(tf.math.log(tf.constant(2.0)).dtype)
print('reached the last line')
