"""What reaches for a TPU does nothing for the emulated system, and only for that.

Infeed, outfeed and loops over cores say what they lack when they are built, not when run.
"""

import json

import pytest
import tensorflow as tf
from harness.network import require_private_network
from harness.processes import run_python

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.compat import tpu_functions
from estimator_tpu_embedding.midlevel import TPUEmbedding, TPUStrategy


@pytest.fixture(scope='module')
def functions():
    return {name: function for names in tpu_functions.connecting().values()
            for name, function in names.items()}


def test_the_emulated_system_is_ready_as_it_is(functions):
    resolver = ete.TPUClusterResolver('grpc://10.0.0.1:8470', hosts=2, cores=4)
    assert functions['experimental_connect_to_cluster'](resolver) is None
    topology = functions['initialize_tpu_system'](cluster_resolver=resolver)
    assert topology.mesh_shape.tolist() == [4, 2, 1, 1]
    assert topology.num_tasks == 2
    assert functions['shutdown_tpu_system'](resolver) is None
    assert functions['experimental_connect_to_host'](resolver.get_master()) is None
    assert functions['initialize_tpu_system']().num_tasks == 1  # That of install().


def test_a_strategy_has_one_tpu_embedding_until_the_system_is_initialized_again(functions):
    api = tf.tpu.experimental.embedding

    def make():
        with TPUStrategy().scope():
            made = TPUEmbedding(api.FeatureConfig(api.TableConfig(4, 2)), api.SGD(.1))
        made.build(per_replica_batch_size=2)
        return made

    functions['initialize_tpu_system']()
    kept = [make()]
    for name in ('shutdown_tpu_system', 'initialize_tpu_system'):
        with pytest.raises(RuntimeError, match='E559 .*TPU is already initialized for embeddings'):
            make()
        functions[name]()
        kept.append(make())
    functions['initialize_tpu_system']()


SESSIONS = '''
import json, os
import estimator_tpu_embedding
estimator_tpu_embedding.install(hosts=2, cores=2)
estimator_tpu_embedding.install(hosts=2, cores=2)
import tensorflow.compat.v1 as tf
from tensorflow.python.client import session
from tensorflow.python.tpu import tpu_embedding as te
tf.disable_v2_behavior()
resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
    ['grpc://192.0.2.1:8470', 'grpc://192.0.2.2:8470'])
te.TPUEmbedding({'t': te.TableConfig(5, 1)}, {'f': te.FeatureConfig('t')}, 4, te.INFERENCE,
                master='grpc://192.0.2.3:8470')
cluster = resolver.cluster_spec()
config = tf.ConfigProto(cluster_def=cluster.as_cluster_def())
value = tf.constant(7)
for target in ('grpc://192.0.2.1:8470', b'grpc://192.0.2.2:8470', '192.0.2.3:8470',
               'grpc://' + cluster.task_address('worker', 1),
               'grpc://' + os.environ['COLAB_TPU_ADDR'], resolver.master(), ''):
    with tf.Session(target, config=config) as one:
        assert one.run(value) == 7, target
    with session.Session(target=target) as one:
        assert one.run(tf.tpu.initialize_system()), target
with tf.train.MonitoredTrainingSession(master='grpc://192.0.2.1:8470') as one:
    print(one.run(value))
tf.InteractiveSession('grpc://192.0.2.1:8470').close()
'''


def test_sessions_at_addresses_of_tpus_are_of_this_process():
    done = run_python('-c', SESSIONS, COLAB_TPU_ADDR='emulated:8470', loaded=True)
    assert (done.stdout, done.returncode) == ('7\n', 0)
    assert 'W930' not in done.stderr


def test_a_session_at_the_port_of_a_tpu_that_nobody_named_is_told_where_else_to_go():
    require_private_network()
    done = run_python('-c', '''
import estimator_tpu_embedding
estimator_tpu_embedding.install()
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
with tf.Graph().as_default():
    server = tf.train.Server.create_local_server()
    for target in (server.target, 'nowhere://host.invalid:8470'):
        try:
            with tf.Session(target) as one:
                print(one.run(tf.constant(7)))
        except tf.errors.NotFoundError:
            print('not found')
''', loaded=True)
    assert done.stdout == '7\nnot found\n'
    assert done.stderr.count('W930') == 1
    assert "W930 tf.Session: TPUs are emulated in this process" in done.stderr
    assert "got 'nowhere://host.invalid:8470'.  Open it at the master()" in done.stderr


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


def counts():
    count = tf.tpu.shard(lambda: training_loop.repeat(3, lambda n: n + 1, [0]), num_shards=2)
    with tf.Session() as session:
        return session.run(count)[0].tolist()


attempt('queue', lambda: queue().generate_enqueue_ops([[tf.ones([2])], [tf.ones([2])]]))
attempt('loop', lambda: tf.tpu.shard(lambda: training_loop.repeat(
    2, lambda total, x: total + x, [0.], infeed_queue=queue()), num_shards=2))
attempt('outfeed', lambda: tf.tpu.rewrite(lambda: tpu_ops.outfeed_enqueue_tuple([tf.ones([])])))
attempt('raw', lambda: tf.raw_ops.InfeedEnqueue(input=tf.ones([])))
attempt('trains', lambda: trains(2))
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
    built = {'queue': 'InfeedEnqueueTuple', 'loop': 'training_loop.repeat',
             'outfeed': 'OutfeedEnqueueTuple', 'raw': 'InfeedEnqueue'}
    for name, where in built.items():
        assert said[name] == (
            f'E925 {where}: there is no infeed and no outfeed here: the emulated cores read and '
            'give tensors of the graph.  Give a step the tensors of an iterator as inputs of '
            'tf.tpu.shard, fetch what it returns, and call session.run for each step.')
    assert said['trains'] == (
        'E926 training_loop.while_loop: a loop within the graph trains on one core only; got 2 '
        'cores.  Leave the loop out: call session.run for each step, in a loop of Python.')
    # What needs neither, goes on as it did.
    assert (said['counts'], said['alone'], said['imports']) == ('[3, 3]', 'list', 'InfeedDequeue')
    assert said['left'] == []
