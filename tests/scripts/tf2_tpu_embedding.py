"""A TF2 job of the time: tables on the TPU, a Keras model beside them, a loop on the device."""

import argparse
import os

import numpy as np
import tensorflow as tf

VOCABULARY, DIM, GLOBAL_BATCH, STEPS = 20, 4, 16, 10


def make_feature_config():
    api = tf.tpu.experimental.embedding
    video = api.TableConfig(
        vocabulary_size=VOCABULARY, dim=DIM, combiner='mean', name='video',
        initializer=tf.initializers.Constant(.5))
    user = api.TableConfig(
        vocabulary_size=8, dim=DIM, name='user', optimizer=api.Adagrad(.1, .1),
        initializer=tf.initializers.Constant(.25))
    return {'watched': api.FeatureConfig(table=video), 'user': api.FeatureConfig(table=user)}


def make_dataset(context):
    """Batches of one replica: ({'watched': sparse, 'user': dense}, label)."""
    batch = context.get_per_replica_batch_size(GLOBAL_BATCH)

    def parse(n):
        watched = tf.stack([n % VOCABULARY, (3 * n + 1) % VOCABULARY], axis=1)
        label = tf.cast(n % 2, tf.float32)
        return {'watched': tf.sparse.from_dense(watched + 1), 'user': n % 8}, label

    def shift(features, label):
        watched = features['watched']
        return {**features, 'watched': tf.SparseTensor(
            watched.indices, watched.values - 1, watched.dense_shape)}, label

    return (tf.data.Dataset.range(48).shard(context.num_input_pipelines, context.input_pipeline_id)
            .repeat().batch(batch, drop_remainder=True).map(parse).map(shift))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--tpu', default='')
    parser.add_argument('--model_dir', required=True)
    flags = parser.parse_args()

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=flags.tpu)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    per_replica = GLOBAL_BATCH // strategy.num_replicas_in_sync
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(
            1, kernel_initializer='ones', input_shape=[2 * DIM])])
        optimizer = tf.keras.optimizers.legacy.SGD(.1)
        mean_loss = tf.keras.metrics.Mean()
        embedding = tf.tpu.experimental.embedding.TPUEmbedding(
            feature_config=make_feature_config(),
            optimizer=tf.tpu.experimental.embedding.SGD(.1))
    embedding.build({'watched': tf.TensorShape([per_replica, 2]),
                     'user': tf.TensorShape([per_replica])})
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, embedding=embedding)
    iterator = iter(strategy.distribute_datasets_from_function(
        make_dataset, tf.distribute.InputOptions(experimental_fetch_to_device=False)))

    def loss_of(activations, labels):
        logits = model(tf.concat([activations['watched'], activations['user']], axis=1))
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels[:, None], logits)
        return tf.reduce_sum(losses) / GLOBAL_BATCH

    @tf.function
    def train(iterator, steps):
        def tpu_step(labels):
            with tf.GradientTape() as tape:
                activations = embedding.dequeue()
                tape.watch(activations)
                loss = loss_of(activations, labels)
            of_model, of_embedding = tape.gradient(loss, [model.trainable_variables, activations])
            embedding.apply_gradients(of_embedding)
            optimizer.apply_gradients(zip(of_model, model.trainable_variables))

        for _ in tf.range(steps):
            features, labels = next(iterator)
            embedding.enqueue(features, training=True)
            strategy.run(tpu_step, args=(labels,))

    @tf.function
    def evaluate(iterator, steps):
        def tpu_step(labels):
            loss = loss_of(embedding.dequeue(), labels)
            mean_loss.update_state(loss * strategy.num_replicas_in_sync)

        for _ in tf.range(steps):
            features, labels = next(iterator)
            embedding.enqueue(features, training=False)
            strategy.run(tpu_step, args=(labels,))

    train(iterator, tf.constant(STEPS))
    evaluate(iterator, tf.constant(3))
    path = checkpoint.save(os.path.join(flags.model_dir, 'job'))
    reader = tf.train.load_checkpoint(path)
    shapes = reader.get_variable_to_shape_map()
    suffix = '/.ATTRIBUTES/VARIABLE_VALUE'
    names = sorted(key.removesuffix(suffix) for key in shapes
                   if key.startswith('embedding/') and shapes[key])
    print(f'{strategy.num_replicas_in_sync} replicas, {optimizer.iterations.numpy()} steps')
    print(*names)
    print(f'loss {mean_loss.result().numpy():.4f}')
    print(*(f'{np.sum(reader.get_tensor(name + suffix)):.4f}' for name in names))


if __name__ == '__main__':
    main()
