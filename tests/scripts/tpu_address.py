"""2019, Colab: the address of a TPU in a flag, tf.app.run, PER_HOST_V1 by default, host_call."""
import os

import tensorflow.compat.v1 as tf
import tensorflow.compat.v2 as tf2

flags = tf.flags
FLAGS = tf.app.flags.FLAGS
tf.flags.DEFINE_string('tpu_name', 'grpc://10.240.1.2:8470', 'address')
flags.DEFINE_string('model_dir', '', 'directory')
flags.DEFINE_integer('num_cores', 8, 'cores of the TPU')


def host_fn(step, loss):
    with tf2.summary.create_file_writer(
            os.path.join(FLAGS.model_dir, 'host'), max_queue=10).as_default():
        tf2.summary.scalar('loss_of_host', tf.reduce_mean(loss), step=step[0])
        return tf.summary.all_v2_summary_ops()


def model_fn(features, labels, mode, params):
    user = tf.feature_column.categorical_column_with_identity('user', 100)
    item = tf.feature_column.categorical_column_with_identity('item', 100)
    shared = tf.tpu.experimental.shared_embedding_columns([user, item], 8)
    del shared  # It is only an example of how people write.
    net = tf.layers.dense(features['dense'], 4, activation=tf.nn.relu)
    logits = tf.layers.dense(net, 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.get_global_step()
    train_op = tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(.1, .9)).minimize(loss, step)
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op,
        host_call=(host_fn, [tf.reshape(step, [1]), tf.reshape(loss, [1])]))


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices((
        {'dense': tf.random.stateless_uniform([64, 3], [1, 2])}, tf.range(64) % 2))
    return data.repeat().shuffle(64).apply(tf.data.experimental.map_and_batch(
        lambda features, label: (features, label), params['batch_size'], drop_remainder=True))


def main(_):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
        FLAGS.tpu_name, zone='us-central1-b', project='nobody')
    tf.config.experimental_connect_to_cluster(resolver)
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, config=tf.estimator.tpu.RunConfig(
            master=resolver.get_master(), model_dir=FLAGS.model_dir, save_summary_steps=5,
            session_config=tf.ConfigProto(allow_soft_placement=True),
            tpu_config=tf.estimator.tpu.TPUConfig(5, FLAGS.num_cores)),
        train_batch_size=16)
    tf.logging.set_verbosity(tf.logging.INFO)
    estimator.train(input_fn, max_steps=1000)
    print('mesh %s, host summaries: %d' % (
        [int(n) for n in topology.mesh_shape],
        len(tf.gfile.ListDirectory(FLAGS.model_dir + '/host'))))


if __name__ == '__main__':
    tf.app.run()
