"""Takes the import paths of the areas of tf.contrib, runs computations of tf.contrib.tpu, prints errors.

It prints the errors for four names that are not there, then those for two modules.
"""

import sys

import estimator_tpu_embedding as ete

ete.install(hosts=2, cores=2)
import tensorflow as tf  # noqa: E402
import tensorflow.compat.v1 as tf1  # noqa: E402


def take_every_path():
    """Imports areas in the ways that scripts did, and compares what they lead to."""
    import tensorflow.contrib.layers as by_path
    from tensorflow import contrib
    from tensorflow.contrib import training as contrib_training
    from tensorflow.contrib.metrics.python.ops import metric_ops
    from tensorflow.contrib.tpu.python.tpu import async_checkpoint, tpu_config, tpu_function
    from tensorflow.contrib.training.python.training import evaluation, hparam
    streaming_mean = tf.contrib.metrics.streaming_mean
    assert metric_ops.streaming_mean is streaming_mean is tf.compat.v1.metrics.mean
    assert tf.contrib is tf.compat.v1.contrib is contrib and contrib.layers is by_path
    assert hparam.HParams is contrib_training.HParams and evaluation.checkpoints_iterator
    assert tpu_config.TPUConfig is tf.contrib.tpu.TPUConfig is ete.TPUConfig
    assert contrib.tpu.TPUEstimator is ete.TPUEstimator
    assert contrib.tpu.cross_replica_sum is ete.cross_replica_sum
    assert contrib.cluster_resolver.TPUClusterResolver().num_accelerators() == {'TPU': 2}
    assert issubclass(async_checkpoint.AsyncCheckpointSaverHook,
                      tf.compat.v1.train.CheckpointSaverHook)
    assert tpu_function.get_tpu_context().number_of_shards is None
    assert contrib.framework.nest.flatten_up_to([1, 1], [[2], 3]) == [[2], 3]
    from tensorflow.contrib.slim import nets
    assert contrib.slim.conv2d is contrib.layers.conv2d and nets.vgg.vgg_16
    for area in set(contrib.__all__) - {'slim'}:
        for name in getattr(contrib, area).__all__:
            assert getattr(getattr(contrib, area), name) is not None


def run_computations():
    """Runs what tf.contrib.tpu builds."""
    tpu = tf.contrib.tpu
    with tf.Graph().as_default(), tf1.Session(
            config=tf1.ConfigProto(allow_soft_placement=True)) as session:
        def computation(x):
            return 2 * tpu.outside_compilation(
                lambda y: tf1.py_func(lambda z: z + z, [y], 'float'), x)
        with tf.device(tpu.core(0)):
            one = tf.constant(1.)
        session.run(tpu.initialize_system())
        assert session.run(tpu.rewrite(computation, [one])) == [4]
        assert session.run(tpu.rewrite(lambda: tpu.repeat(5, lambda x: [x + 1], [0.]))) == [5]
        assert session.run(tpu.rewrite(
            lambda: tpu.while_loop(lambda x: x < 7, lambda x: [x + 1], [0.]))) == [7]
        assert session.run(tpu.replicate(tpu.cross_replica_sum, [[one], [one]])) == [[2], [2]]
        split = [tf.constant([1., 2., 3., 4.])]
        summed, = session.run(tpu.shard(tpu.cross_replica_sum, split, num_shards=2))
        doubled, = session.run(tpu.batch_parallel(lambda x: 2 * x, split, num_shards=2))
        assert summed.tolist() == [4, 6, 4, 6] and doubled.tolist() == [2, 4, 6, 8]
        session.run(tpu.shutdown_system())


def print_error(kind, code):
    """Prints the error of a kind that code raises."""
    try:
        exec(code)
    except kind as error:
        print(*getattr(error, '__notes__', [error]))


assert not hasattr(tf, 'contrib') and not any('compat.contrib' in each for each in sys.modules)
for _ in range(2):
    ete.install(2, 2, contrib=True)
take_every_path()
run_computations()
for missing in ('layers.crossed_column', 'rnn.LSTMCell', 'metrics.nonsense', 'tpu.nonsense'):
    print_error(AttributeError, f'tf.contrib.{missing}')
print_error(ModuleNotFoundError, 'from tensorflow.contrib import crf')
print_error(ModuleNotFoundError, 'import tensorflow.contrib.lookup')
