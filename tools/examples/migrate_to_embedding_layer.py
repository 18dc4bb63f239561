"""Second half of a migration: a Keras model with the TPUEmbedding layer, in TensorFlow 2.

`migrate_from_embedding_columns.py` is the first half, a TPUEstimator job. Both begin with the
same values, read the same rows (`migrate_data.py`), and end with the same numbers, up to the
rounding of sums and to the epsilon 1e-7 in Keras' Adagrad. What became of what:

  embedding_column                            TableConfig and FeatureConfig of the layer
  EmbeddingConfigSpec, AdagradParameters      the optimizer that the layer gets
  DenseFeatures, model_fn                     a functional model; its inputs are SparseTensors
  CrossShardOptimizer(AdagradOptimizer)       the optimizer of `compile`; Keras takes the mean
                                              over the replicas
  input_fn, called on each host               a dataset function, called on each host
  params['batch_size']                        get_per_replica_batch_size
  iterations_per_loop                         steps_per_execution
  train, evaluate                             fit, evaluate
  metric_fn                                   metrics
  the checkpoints of the Estimator            tf.train.Checkpoint

The table of `sparse_feature_a` was `.../sparse_feature_a_embedding/embedding_weights` in the
checkpoint of the first half. Here it is below `model/layer_with_weights-0`.

  python migrate_to_embedding_layer.py --tpu=$TPU_NAME --model_dir=gs://bucket/layer
"""

import argparse
import os

import tensorflow as tf
import tensorflow_recommenders as tfrs

import migrate_data as data


def make_feature_config():
  """A feature and a table for each kind of words."""
  return {
      feature: tf.tpu.experimental.embedding.FeatureConfig(
          table=tf.tpu.experimental.embedding.TableConfig(
              vocabulary_size=buckets,
              dim=data.WIDTHS[feature],
              combiner=data.COMBINERS[feature],
              initializer=tf.constant_initializer(.1),
              name=feature + '_table'))
      for feature, buckets in data.BUCKETS.items()}


def make_model():
  """Makes and compiles the model; call it in the scope of the strategy."""
  optimizer = tf.keras.optimizers.legacy.Adagrad(data.LEARNING_RATE, data.INITIAL_ACCUMULATOR)
  words = {feature: tf.keras.Input(shape=[None], batch_size=data.BATCH_SIZE, sparse=True,
                                   dtype=tf.int64, name=feature) for feature in data.BUCKETS}
  number = tf.keras.Input(shape=[1], batch_size=data.BATCH_SIZE, name='dense_feature')
  embedding = tfrs.layers.embedding.TPUEmbedding(make_feature_config(), optimizer)
  activations = embedding(words)
  hidden, last = data.make_kernels()
  net = tf.keras.layers.Concatenate()([activations[feature] for feature in words] + [number])
  net = tf.keras.layers.Dense(data.HIDDEN, activation='relu',
                              kernel_initializer=tf.constant_initializer(hidden))(net)
  logits = tf.keras.layers.Dense(1, kernel_initializer=tf.constant_initializer(last))(net)
  model = tf.keras.Model({**words, 'dense_feature': number}, logits)
  model.compile(
      optimizer,
      loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
      metrics=[tf.keras.metrics.BinaryAccuracy('accuracy', threshold=0.)],
      steps_per_execution=data.STEPS_PER_LOOP)
  return model


def distribute(strategy, is_training):
  """The training rows or the others; each host reads a part."""

  def dataset_fn(context):
    return data.make_dataset(
        is_training, context.get_per_replica_batch_size(data.BATCH_SIZE),
        context.num_input_pipelines, context.input_pipeline_id)

  # Ids stay on the host, which passes them to the tables.
  return strategy.distribute_datasets_from_function(
      dataset_fn, tf.distribute.InputOptions(experimental_fetch_to_device=False))


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument('--tpu', default='', help='Name of the TPU, or its grpc address.')
  parser.add_argument('--model_dir', help='Where the checkpoint goes; nowhere if not given.')
  parser.add_argument('--epochs', type=int, default=4, help='How often all rows are trained.')
  args = parser.parse_args()

  resolver = tf.distribute.cluster_resolver.TPUClusterResolver(args.tpu)
  tf.config.experimental_connect_to_cluster(resolver)
  tf.tpu.experimental.initialize_tpu_system(resolver)
  strategy = tf.distribute.TPUStrategy(resolver)
  with strategy.scope():
    model = make_model()
  for _ in range(args.epochs):
    model.fit(distribute(strategy, True), verbose=0,
              steps_per_epoch=data.TRAIN_ROWS // data.BATCH_SIZE)
    results = model.evaluate(distribute(strategy, False), verbose=0, steps=data.EVAL_STEPS,
                             return_dict=True)
    print('step %d: loss %.5f, accuracy %.4f' % (
        model.optimizer.iterations.numpy(), results['loss'], results['accuracy']))
  if args.model_dir:
    checkpoint = tf.train.Checkpoint(model=model)
    print('saved', checkpoint.save(os.path.join(args.model_dir, 'ckpt')))


if __name__ == '__main__':
  main()
