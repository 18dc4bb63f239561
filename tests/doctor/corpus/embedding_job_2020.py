"""2020: compat.v1, embedding columns and their optimizer in an EmbeddingConfigSpec."""
# run: etpe run
import tempfile

import tensorflow.compat.v1 as tf
from tensorflow.compat.v1 import estimator as tf_estimator  # expect: I301 tensorflow.compat.v1.estimator

tf.disable_v2_behavior()

COLUMNS = [tf.tpu.experimental.embedding_column(
    tf.feature_column.categorical_column_with_identity('watched', 20), 4, combiner='mean')]


def model_fn(features, labels, mode, params):
    net = tf.feature_column.input_layer(features, COLUMNS)
    logits = tf.layers.dense(net, 1)[:, 0]  # expect: I304 tensorflow.compat.v1.layers.dense
    loss = tf.losses.mean_squared_error(labels, logits)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdagradOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf_estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)  # expect: I301 tensorflow.compat.v1.estimator.tpu.TPUEstimatorSpec


def input_fn(params):
    rows = tf.data.Dataset.range(64).map(lambda row: (
        {'watched': tf.sparse.from_dense([row % 19 + 1])}, tf.cast(row % 2, tf.float32)))
    return rows.repeat().batch(params['batch_size'], drop_remainder=True)


def main():
    spec = tf_estimator.tpu.experimental.EmbeddingConfigSpec(  # expect: I301 tensorflow.compat.v1.estimator.tpu.experimental.EmbeddingConfigSpec
        feature_columns=COLUMNS,
        optimization_parameters=tf.tpu.experimental.AdagradParameters(0.1))  # expect: I301 tensorflow.compat.v1.tpu.experimental.AdagradParameters
    config = tf_estimator.tpu.RunConfig(  # expect: I301 tensorflow.compat.v1.estimator.tpu.RunConfig
        master='', model_dir=tempfile.mkdtemp(),
        tpu_config=tf_estimator.tpu.TPUConfig(  # expect: I301 tensorflow.compat.v1.estimator.tpu.TPUConfig
            iterations_per_loop=2,
            per_host_input_for_training=tf_estimator.tpu.InputPipelineConfig.PER_HOST_V2))  # expect: I301 tensorflow.compat.v1.estimator.tpu.InputPipelineConfig
    estimator = tf_estimator.tpu.TPUEstimator(  # expect: I301 tensorflow.compat.v1.estimator.tpu.TPUEstimator
        model_fn=model_fn, config=config, train_batch_size=16, embedding_config_spec=spec)
    estimator.train(input_fn, max_steps=4)
    print('reached the last line')


if __name__ == '__main__':
    main()
