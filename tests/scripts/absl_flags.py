"""2019: absl flags, `tf.estimator` by attribute, PER_HOST_V2, a model_dir in a flag."""
from absl import app
from absl import flags
import tensorflow as tf

FLAGS = flags.FLAGS
flags.DEFINE_string('tpu', default=None, help='The Cloud TPU to use for training.')
flags.DEFINE_string('model_dir', None, 'Where checkpoints go.')
flags.DEFINE_integer('train_steps', 6, 'Steps.')
flags.DEFINE_bool('use_tpu', True, 'Use TPUs rather than plain CPUs')
flags.mark_flag_as_required('model_dir')


def columns():
    watched = tf.feature_column.categorical_column_with_identity('watched', 50)
    genre = tf.feature_column.categorical_column_with_hash_bucket('genre', 8)
    return [tf.compat.v1.tpu.experimental.embedding_column(watched, 4, combiner='mean')], [
        tf.feature_column.indicator_column(genre)]


def model_fn(features, labels, mode, params):
    embedded, plain = columns()
    net = tf.concat([
        tf.compat.v1.feature_column.input_layer(features, embedded),
        tf.compat.v1.feature_column.input_layer(features, plain)], axis=1)
    logits = tf.compat.v1.layers.dense(net, 1)[:, 0]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(
            mode, predictions={'probability': tf.sigmoid(logits)})
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    if params['use_tpu']:
        optimizer = tf.compat.v1.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.compat.v1.train.get_or_create_global_step())

    def metric_fn(labels, logits):
        return {'accuracy': tf.compat.v1.metrics.accuracy(labels, tf.round(tf.sigmoid(logits)))}

    return tf.compat.v1.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, [labels, logits]))


def input_fn(params):
    rows = tf.data.Dataset.range(64).map(lambda row: (
        {'watched': tf.sparse.from_dense([row % 49 + 1]), 'genre': tf.as_string([row % 5])},
        tf.cast(row % 2, tf.float32)))
    return rows.repeat().batch(params['batch_size'], drop_remainder=True)


def main(unused_argv):
    del unused_argv
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu)
    config = tf.compat.v1.estimator.tpu.RunConfig(
        cluster=resolver, model_dir=FLAGS.model_dir,
        tpu_config=tf.compat.v1.estimator.tpu.TPUConfig(
            iterations_per_loop=3,
            per_host_input_for_training=(
                tf.compat.v1.estimator.tpu.InputPipelineConfig.PER_HOST_V2)))
    classifier = tf.compat.v1.estimator.tpu.TPUEstimator(
        model_fn=model_fn, config=config, use_tpu=FLAGS.use_tpu, train_batch_size=16,
        eval_batch_size=16, predict_batch_size=16,
        embedding_config_spec=tf.compat.v1.estimator.tpu.experimental.EmbeddingConfigSpec(
            feature_columns=columns()[0],
            optimization_parameters=tf.compat.v1.tpu.experimental.AdagradParameters(0.1)))
    classifier.train(input_fn, max_steps=FLAGS.train_steps)
    metrics = classifier.evaluate(input_fn, steps=2)
    rows = list(classifier.predict(lambda params: input_fn(params).take(2)))
    print('step %d, metrics %s, %d rows' % (metrics['global_step'], sorted(metrics), len(rows)))


if __name__ == '__main__':
    app.run(main)
