"""2019: a job that TensorFlow takes and that trains otherwise than its author thinks."""
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
TPU = tf.estimator.tpu  # expect: I301 tensorflow.compat.v1.estimator.tpu
COLUMNS = [tf.tpu.experimental.embedding_column(
    tf.feature_column.categorical_column_with_identity('watched', 20), 4)]


def model_fn(features, labels, mode, params):
    net = tf.layers.dense(tf.feature_column.input_layer(features, COLUMNS), 1)[:, 0]  # expect: I304 tensorflow.compat.v1.layers.dense
    loss = tf.losses.mean_squared_error(labels, net)
    optimizer = tf.train.AdamOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())  # expect: W214
    return TPU.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)  # expect: I301 tensorflow.compat.v1.estimator.tpu.TPUEstimatorSpec


def main():
    config = TPU.RunConfig(  # expect: I301 tensorflow.compat.v1.estimator.tpu.RunConfig
        model_dir='gs://bucket/model',
        tpu_config=TPU.TPUConfig(iterations_per_loop=2, num_shards=8))  # expect: I301 tensorflow.compat.v1.estimator.tpu.TPUConfig
    spec = TPU.experimental.EmbeddingConfigSpec(  # expect: I301 tensorflow.compat.v1.estimator.tpu.experimental.EmbeddingConfigSpec
        feature_columns=COLUMNS,
        optimization_parameters=tf.tpu.experimental.AdagradParameters(0.1))  # expect: I301 tensorflow.compat.v1.tpu.experimental.AdagradParameters
    estimator = TPU.TPUEstimator(model_fn, config=config, train_batch_size=20, embedding_config_spec=spec)  # expect: I301 tensorflow.compat.v1.estimator.tpu.TPUEstimator; W215
    estimator.train(lambda params: None, max_steps=4)
    plain = TPU.TPUEstimator(model_fn, config=config, train_batch_size=16, use_tpu=False, embedding_config_spec=spec)  # expect: I301 tensorflow.compat.v1.estimator.tpu.TPUEstimator; W211
    plain.train(lambda params: None, max_steps=4)


if __name__ == '__main__':
    main()
