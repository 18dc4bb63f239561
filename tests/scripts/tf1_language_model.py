"""A masked language model in the manner of 2019: HParams, layer_norm, an optimizer of its own."""

from __future__ import absolute_import, division, print_function

import re

import tensorflow as tf

from tensorflow.contrib import layers as contrib_layers
from tensorflow.contrib import training as contrib_training

flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_string('hparams', '', 'Overrides, such as hidden_size=8.')
flags.DEFINE_string('output_dir', None, 'Where checkpoints go.')
flags.DEFINE_bool('use_tpu', True, 'Whether to use a TPU.')
flags.DEFINE_string('init_checkpoint', None, 'Where to start from.')


def default_hparams():
    return contrib_training.HParams(
        vocab_size=16, hidden_size=4, layers=[8, 4], learning_rate=0.01, warmup=True, name='tiny')


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    """Adam without bias correction, and with a decay that passes layer norms by."""

    def __init__(self, learning_rate, weight_decay_rate=0.01, exclude=('LayerNorm', 'bias'),
                 name='AdamWeightDecayOptimizer'):
        super(AdamWeightDecayOptimizer, self).__init__(False, name)
        self.learning_rate = learning_rate
        self.weight_decay_rate = weight_decay_rate
        self.exclude = exclude

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for (grad, param) in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = re.match('^(.*):\\d+$', param.name).group(1)
            m = tf.get_variable(param_name + '/adam_m', shape=param.shape.as_list(),
                                dtype=tf.float32, trainable=False,
                                initializer=tf.zeros_initializer())
            v = tf.get_variable(param_name + '/adam_v', shape=param.shape.as_list(),
                                dtype=tf.float32, trainable=False,
                                initializer=tf.zeros_initializer())
            next_m = tf.multiply(0.9, m) + tf.multiply(0.1, grad)
            next_v = tf.multiply(0.999, v) + tf.multiply(0.001, tf.square(grad))
            update = next_m / (tf.sqrt(next_v) + 1e-6)
            if not any(re.search(each, param_name) for each in self.exclude):
                update += self.weight_decay_rate * param
            assignments.extend([param.assign(param - self.learning_rate * update),
                                m.assign(next_m), v.assign(next_v)])
        return tf.group(*assignments, name=name)


def layer_norm(input_tensor, name=None):
    return tf.contrib.layers.layer_norm(
        inputs=input_tensor, begin_norm_axis=-1, begin_params_axis=-1, scope=name)


def model_fn(features, labels, mode, params):
    del labels
    hparams = params
    ids = features['input_ids']
    with tf.variable_scope('lm'):
        table = tf.get_variable('word_embeddings', [hparams.vocab_size, hparams.hidden_size],
                                initializer=tf.truncated_normal_initializer(stddev=0.02))
        net = tf.nn.embedding_lookup(table, ids)
        net = layer_norm(net, name='LayerNorm')
        for i, width in enumerate(hparams.layers):
            with tf.variable_scope('layer_%d' % i):
                net = tf.layers.dense(
                    net, width, activation=tf.nn.relu,
                    kernel_initializer=contrib_layers.xavier_initializer(),
                    kernel_regularizer=contrib_layers.l2_regularizer(1e-4))
                net = layer_norm(net)
        logits = tf.matmul(tf.reshape(net, [-1, hparams.hidden_size]), table, transpose_b=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(ids, [-1]), logits=logits))

    scaffold_fn = None
    if FLAGS.init_checkpoint:
        names = [name for name, _ in tf.contrib.framework.list_variables(FLAGS.init_checkpoint)]
        assignment = {each.op.name: each.op.name for each in tf.trainable_variables()
                      if each.op.name in names}

        def tpu_scaffold():
            tf.train.init_from_checkpoint(FLAGS.init_checkpoint, assignment)
            return tf.train.Scaffold()
        scaffold_fn = tpu_scaffold

    global_step = tf.contrib.framework.get_or_create_global_step()
    learning_rate = tf.constant(value=hparams.learning_rate, shape=[], dtype=tf.float32)
    optimizer = AdamWeightDecayOptimizer(learning_rate)
    if hparams.use_tpu:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    tvars = tf.trainable_variables()
    grads = tf.gradients(loss, tvars)
    (grads, _) = tf.clip_by_global_norm(grads, clip_norm=1.0)
    train_op = optimizer.apply_gradients(zip(grads, tvars), global_step=global_step)
    train_op = tf.group(train_op, [global_step.assign(global_step + 1)])
    return tf.contrib.tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn)


def input_fn(params):
    d = tf.data.Dataset.from_tensor_slices(
        {'input_ids': tf.constant([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]])}).repeat()
    return d.apply(tf.contrib.data.batch_and_drop_remainder(params.batch_size))


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    hparams = default_hparams().parse(FLAGS.hparams)
    print(hparams.to_json(sort_keys=True))
    run_config = tf.contrib.tpu.RunConfig(
        cluster=tf.contrib.cluster_resolver.TPUClusterResolver(''), model_dir=FLAGS.output_dir,
        save_checkpoints_steps=100, tf_random_seed=1,
        tpu_config=tf.contrib.tpu.TPUConfig(
            iterations_per_loop=10,
            per_host_input_for_training=tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2))
    estimator = tf.contrib.tpu.TPUEstimator(
        use_tpu=FLAGS.use_tpu, model_fn=model_fn, config=run_config, params=hparams,
        train_batch_size=8)
    estimator.train(input_fn=input_fn, max_steps=60)
    gamma = estimator.get_variable_value('lm/LayerNorm/gamma')
    beta = estimator.get_variable_value('lm/layer_1/LayerNorm/beta')
    print('gamma %s, beta %s, step %d' % (
        gamma.shape, beta.shape, estimator.get_variable_value('global_step')))


if __name__ == '__main__':
    flags.mark_flag_as_required('output_dir')
    tf.app.run()
