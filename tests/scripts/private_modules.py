"""2020: by the paths of private modules, configs by name, a learning rate that decays."""
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_embedding
from tensorflow_estimator.python.estimator import estimator as estimator_lib
from tensorflow_estimator.python.estimator.tpu import _tpu_estimator_embedding
from tensorflow_estimator.python.estimator.tpu import tpu_config
from tensorflow_estimator.python.estimator.tpu import tpu_estimator

tf.disable_v2_behavior()

TABLES = {'words': tpu_embedding.TableConfig(
    vocabulary_size=20, dimension=4, initializer=tf.zeros_initializer(), combiner='sum',
    learning_rate_fn=lambda step: 0.1 / (1.0 + tf.cast(step, tf.float32)))}
FEATURES = {'title': tpu_embedding.FeatureConfig('words'),
            'text': tpu_embedding.FeatureConfig('words', max_sequence_length=3)}


def model_fn(features, labels, mode, params):
    net = tf.concat([features['title'], tf.layers.flatten(features['text'])], 1)
    prediction = tf.layers.dense(net, 1)[:, 0]
    loss = tf.reduce_sum(tf.square(prediction - labels))
    train_op = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer()).minimize(
        loss, tf.train.get_global_step())
    return tpu_estimator.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)


def input_fn(params):
    size = params['batch_size']
    title = tf.SparseTensor([[row, 0] for row in range(size)], np.arange(size) % 20, [size, 1])
    text = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], np.int64([7, 8, 9]), [size, 2])
    return tf.data.Dataset.from_tensors((
        {'title': title, 'text': text}, tf.ones([size]))).repeat()


estimator = tpu_estimator.TPUEstimator(
    model_fn=model_fn, train_batch_size=8, config=tpu_config.RunConfig(
        tpu_config=tpu_config.TPUConfig(
            num_shards=4, iterations_per_loop=2,
            per_host_input_for_training=tpu_config.InputPipelineConfig.PER_HOST_V2)),
    embedding_config_spec=_tpu_estimator_embedding.EmbeddingConfigSpec(
        table_to_config_dict=TABLES, feature_to_config_dict=FEATURES,
        optimization_parameters=tpu_embedding.AdamParameters(0.01)))
assert isinstance(estimator, estimator_lib.Estimator)
estimator.train(input_fn, steps=4)
table = estimator.get_variable_value('words')
print('trained rows', np.flatnonzero(np.abs(table).sum(1)).tolist())
