"""First half of a migration: a TPUEstimator job with embedding columns.

`migrate_to_embedding_layer.py` is the second half, the same job in Keras. It begins with the
same values, reads the same rows (`migrate_data.py`), and ends with the same numbers. Its
docstring says what became of what.

  python migrate_from_embedding_columns.py --tpu=$TPU_NAME --model_dir=gs://bucket/columns
"""

import tensorflow.compat.v1 as tf
from tensorflow.compat.v1 import estimator as tf_estimator

import migrate_data as data

flags = tf.flags
flags.DEFINE_string('tpu', '', 'Name of the TPU, or its grpc address.')
flags.DEFINE_string('model_dir', None, 'Where checkpoints go.')
flags.DEFINE_integer('epochs', 4, 'How often all rows are trained.')
FLAGS = flags.FLAGS


def make_columns():
  """Returns the embedding columns, which live on the TPU, and all columns."""
  embeddings = [
      tf.tpu.experimental.embedding_column(
          tf.feature_column.categorical_column_with_identity(feature, buckets),
          dimension=data.WIDTHS[feature],
          combiner=data.COMBINERS[feature],
          initializer=tf.constant_initializer(.1))
      for feature, buckets in data.BUCKETS.items()]
  return embeddings, embeddings + [tf.feature_column.numeric_column('dense_feature')]


def make_input_fn(is_training):
  """Returns an input_fn over the training rows or over the others; each host reads a part."""

  def input_fn(params):
    _, index, num_hosts, _ = params['context'].current_input_fn_deployment()
    return data.make_dataset(is_training, params['batch_size'], num_hosts, index)

  return input_fn


def metric_fn(labels, logits):
  return {'accuracy': tf.metrics.accuracy(labels, tf.cast(logits > 0., tf.float32))}


def make_model_fn(columns):
  """Returns a model_fn over the columns."""

  def model_fn(features, labels, mode, params):
    del params
    hidden, last = data.make_kernels()
    # One call per column: its place in the input of the next layer is then plain.
    net = tf.concat([tf.keras.layers.DenseFeatures(column)(features) for column in columns], 1)
    net = tf.layers.dense(net, data.HIDDEN, activation=tf.nn.relu,
                          kernel_initializer=tf.constant_initializer(hidden))
    logits = tf.layers.dense(net, 1, kernel_initializer=tf.constant_initializer(last))
    loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    train_op = None
    if mode == tf_estimator.ModeKeys.TRAIN:
      optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdagradOptimizer(
          data.LEARNING_RATE, data.INITIAL_ACCUMULATOR))
      train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf_estimator.tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, [labels, logits]))

  return model_fn


def main(_):
  resolver = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu)
  config = tf_estimator.tpu.RunConfig(
      cluster=resolver,
      model_dir=FLAGS.model_dir,
      tpu_config=tf_estimator.tpu.TPUConfig(
          iterations_per_loop=data.STEPS_PER_LOOP,
          per_host_input_for_training=tf_estimator.tpu.InputPipelineConfig.PER_HOST_V2))
  embeddings, columns = make_columns()
  estimator = tf_estimator.tpu.TPUEstimator(
      model_fn=make_model_fn(columns),
      config=config,
      train_batch_size=data.BATCH_SIZE,
      eval_batch_size=data.BATCH_SIZE,
      embedding_config_spec=tf_estimator.tpu.experimental.EmbeddingConfigSpec(
          feature_columns=embeddings,
          optimization_parameters=tf.tpu.experimental.AdagradParameters(
              data.LEARNING_RATE, data.INITIAL_ACCUMULATOR)))

  for _ in range(FLAGS.epochs):
    estimator.train(make_input_fn(True), steps=data.TRAIN_ROWS // data.BATCH_SIZE)
    results = estimator.evaluate(make_input_fn(False), steps=data.EVAL_STEPS)
    print('step %d: loss %.5f, accuracy %.4f' % (
        results['global_step'], results['loss'], results['accuracy']))
  print('saved', estimator.latest_checkpoint())


if __name__ == '__main__':
  tf.app.run(main)
