"""Infeed, outfeed and loops over cores say what they lack when they are built, not when run."""

import json

from harness.processes import run_python

from estimator_tpu_embedding.compat import refused

SCRIPT = '''
import json
import estimator_tpu_embedding
estimator_tpu_embedding.install(hosts=1, cores=2)
estimator_tpu_embedding.install(hosts=1, cores=2)
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import gen_tpu_ops
from tensorflow.python.tpu import tpu_embedding as te, tpu_feed, training_loop
from tensorflow.python.tpu.ops import tpu_ops

tf.disable_v2_behavior()
said = {}


def attempt(name, build):
    with tf.Graph().as_default():
        try:
            said[name] = str(build())
        except NotImplementedError as error:
            said[name] = str(error)


def queue():
    made = tpu_feed.InfeedQueue(tuple_types=[tf.float32], tuple_shapes=[[4]])
    made.set_number_of_shards(2)  # So far nothing has to be there.
    return made


def trains(cores):
    made = te.TPUEmbedding(
        {'t': te.TableConfig(5, 1, tf.zeros_initializer())}, {'f': te.FeatureConfig('t')}, 4,
        te.TRAINING, optimization_parameters=te.StochasticGradientDescentParameters(1.),
        device_config=te.DeviceConfig(1, cores, '/job:worker'))
    made.create_variables_and_ops()

    def step(total):
        value = made.get_activations()['f']
        with tf.control_dependencies([made.generate_send_gradients_op({'f': value})]):
            return total + value[0, 0]

    return tf.tpu.shard(lambda: training_loop.repeat(2, step, [0.]), num_shards=cores)


def optimizes():
    def step(total):
        weight = tf.get_variable('w', [], initializer=tf.ones_initializer())
        train = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1)).minimize(
            weight * weight)
        with tf.control_dependencies([train]):
            return total + 1

    return tf.tpu.shard(
        lambda: training_loop.while_loop(lambda n: n < 2, step, [tf.constant(0)]), num_shards=2)


def counts():
    count = tf.tpu.shard(lambda: training_loop.repeat(3, lambda n: n + 1, [0]), num_shards=2)
    with tf.Session() as session:
        return session.run(count)[0].tolist()


one = [tf.float32], [[]]
attempt('queue', lambda: queue().generate_enqueue_ops([[tf.ones([2])], [tf.ones([2])]]))
attempt('dequeue', lambda: tf.tpu.shard(queue().generate_dequeue_op, num_shards=2))
attempt('loop', lambda: tf.tpu.shard(lambda: training_loop.repeat(
    2, lambda total, x: total + x, [0.], infeed_queue=queue()), num_shards=2))
attempt('outfeed', lambda: tf.tpu.rewrite(lambda: tpu_ops.outfeed_enqueue_tuple([tf.ones([])])))
attempt('outfeed_dequeue', lambda: tpu_ops.outfeed_dequeue_tuple(*one, device_ordinal=0))
attempt('infeed_dequeue', lambda: gen_tpu_ops.infeed_dequeue(tf.float32, []))
attempt('infeed_dequeue_tuple', lambda: tpu_ops.infeed_dequeue_tuple(*one))
attempt('raw', lambda: tf.raw_ops.InfeedEnqueue(input=tf.ones([])))
attempt('eager', lambda: tf.compat.v2.raw_ops.OutfeedDequeueV2(
    device_ordinal=0, dtype=tf.float32, shape=[]))
attempt('trains', lambda: trains(2))
attempt('optimizes', optimizes)
attempt('counts', counts)
attempt('alone', lambda: type(trains(1)).__name__)


def imports():
    graph = tf.GraphDef()
    node = graph.node.add(name='fed', op='InfeedDequeue')
    node.attr['dtype'].type = tf.float32.as_datatype_enum
    node.attr['shape'].shape.SetInParent()
    return tf.import_graph_def(graph, return_elements=['fed'])[0].type


attempt('imports', imports)
said['left'] = sorted(name for name in dir(gen_tpu_ops) if 'feed' in name.lower()
                      and not name.startswith('TV_') and 'eager_fallback' not in name
                      and not hasattr(getattr(gen_tpu_ops, name), '__wrapped__'))
print(json.dumps(said))
'''


def test_what_feeds_a_tpu_is_refused_when_it_is_built_with_what_to_do_instead():
    said = json.loads(run_python('-c', SCRIPT, loaded=True).stdout)
    built = {'queue': 'InfeedEnqueueTuple', 'dequeue': 'InfeedDequeueTuple',
             'loop': 'training_loop.repeat', 'outfeed': 'OutfeedEnqueueTuple',
             'outfeed_dequeue': 'OutfeedDequeueTuple', 'infeed_dequeue': 'InfeedDequeue',
             'infeed_dequeue_tuple': 'InfeedDequeueTuple', 'raw': 'InfeedEnqueue',
             'eager': 'OutfeedDequeueV2'}
    for name, where in built.items():
        assert said[name] == (
            f'E925 {where}: there is no infeed and no outfeed here: the emulated cores read and '
            'give tensors of the graph.  Give a step the tensors of an iterator as inputs of '
            'tf.tpu.shard, fetch what it returns, and call session.run for each step.')
    for name in ('trains', 'optimizes'):
        assert said[name] == (
            'E926 training_loop.while_loop: a loop within the graph trains on one core only; got 2 '
            'cores.  Leave the loop out: call session.run for each step, in a loop of Python.')
    # What needs neither, goes on as it did.
    assert (said['counts'], said['alone'], said['imports']) == ('[3, 3]', 'list', 'InfeedDequeue')
    assert said['left'] == []


def test_every_operation_of_the_two_queues_is_refused():
    import tensorflow as tf
    assert set(refused.FEED_OPERATIONS) == {
        name for name in dir(tf.raw_ops) if name.startswith(('Infeed', 'Outfeed'))}
