"""The raw `TPUEmbedding` whose hosts are workers, in loops of a session."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, legacy_api
from harness.graphs import enqueue_data
from harness.numpy_reference import assert_close
from harness.parts import soak_except
from harness.tasks import Owners, Tasks

from estimator_tpu_embedding import _tf, defaults
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.compat import tpu_functions
from estimator_tpu_embedding.compat.resolver import TPUClusterResolver
from estimator_tpu_embedding.defaults import Defaults
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.estimator import tf_tpu, tpu_addresses, tpu_embedding_gradient
from estimator_tpu_embedding.estimator.tf_tpu import CrossShardOptimizer

pytestmark = pytest.mark.no_rerun
BATCH = 8
ROWS = {'user': 7, 'item': 1}  # The item has fewer rows than there are hosts.


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """A graph in which replicas and sessions are made as after `install()`."""
    monkeypatch.setattr(_tf.modules_of_contrib()['tpu'], 'split_compile_and_replicate',
                        tf_tpu.split_compile_and_replicate)
    cls = _tf.session_class()
    monkeypatch.setattr(cls, '__init__', cls.__init__)  # Afterwards that of before is there.
    tpu_functions.open_sessions_here()
    with tf.Graph().as_default():
        yield


def put_on(monkeypatch, cluster):
    """Lets the loops of a test have this cluster; `None` is one process."""
    if cluster is not None:
        cluster.choice = ClusterChoice(processes=cluster.num_hosts)
    monkeypatch.setattr(tpu_addresses, 'cluster_of_loop', lambda master: cluster)
    return cluster


def embedding(hosts=2, strategy='mod', **kwargs):
    return legacy_api.TPUEmbedding(
        {'user': legacy_api.TableConfig(
            ROWS['user'], 3, tf.constant_initializer(np.arange(21).reshape(7, 3) / 16),
            combiner='mean'),
         'item': legacy_api.TableConfig(ROWS['item'], 1, tf.ones_initializer(), combiner='sum')},
        {'viewer': legacy_api.FeatureConfig('user'), 'author': legacy_api.FeatureConfig('user'),
         'watched': legacy_api.FeatureConfig('item')}, BATCH, legacy_api.TRAINING,
        optimization_parameters=legacy_api.AdamParameters(.1), partition_strategy=strategy,
        device_config=legacy_api.DeviceConfig(hosts, 2 * hosts, '/job:worker'), **kwargs)


def steps_of(made, count):
    """Operations that hand over the ids of each of some steps; those of a core are on its host."""
    generator, enqueue = np.random.default_rng(2), []
    for _ in range(count):
        batch = {'viewer': graphs.random_samples(generator, BATCH, 7),
                 'author': graphs.random_samples(generator, BATCH, 7),
                 'watched': graphs.random_samples(generator, BATCH, 1)}
        of_cores = []
        for core in range(made.num_cores):
            with tf.device(made.hosts[core // 2] if 'tpu_worker' in made.hosts[0] else None):
                of_cores.append({name: enqueue_data(graphs.split(samples, made.num_cores)[core])
                                 for name, samples in batch.items()})
        enqueue.append(made.generate_enqueue_ops(of_cores))
    return enqueue


def losses_of(made):
    """The losses of the cores; evaluating them trains."""
    def computation():
        activations = made.get_activations()
        weights = tf.get_variable('weights', [3, 1], initializer=tf.ones_initializer())
        logits = tf.matmul(activations['viewer'] * activations['author'], weights)
        loss = tf.reduce_mean(tf.square(logits + activations['watched'] - 1.))
        optimizer = CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1))
        gradients = tpu_embedding_gradient.get_gradients_through_compute_gradients(
            optimizer, loss, activations)
        dense = optimizer.apply_gradients([(tf.gradients(loss, weights)[0], weights)])
        with tf.control_dependencies([made.generate_send_gradients_op(gradients), dense]):
            return tf.reshape(loss, [1])
    return tf.tpu.shard(computation, num_shards=made.num_cores)[0]


def trained(made, early=False):
    """Losses, rows, slots and weights after three steps."""
    enqueue = steps_of(made, 3) if early else None
    variables = made.create_variables_and_ops()
    enqueue = enqueue or steps_of(made, 3)
    losses, found = losses_of(made), []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(variables.load_ops())
        for operations in enqueue:
            session.run(operations)
            found.append(session.run(losses))
        session.run(variables.retrieve_ops())
        slots = variables.slot_variables_by_table
        for table, rows in ROWS.items():
            found += [graphs.whole(session, made.plan, table, parts[:rows]) for parts in (
                variables.embedding_variables_by_table[table], slots[table].m, slots[table].v)]
        found.append(session.run(tf.trainable_variables()[-1]))
    return found


@pytest.mark.soak
@pytest.mark.parametrize('hosts, strategy, pipelined, early', soak_except(
    [(2, 'mod', False, False), (2, 'div', True, False), (1, 'div', False, False),
     (2, 'mod', False, True)], 0))
def test_a_loop_on_workers_gives_the_bits_of_owners_in_one_process(
        monkeypatch, hosts, strategy, pipelined, early):
    def run(cluster):
        put_on(monkeypatch, cluster)
        with tf.Graph().as_default():
            return trained(embedding(
                hosts, strategy, pipeline_execution_with_tensor_core=pipelined), early)

    on_workers, by_owners = run(Tasks(hosts)), run(Owners(hosts))
    for one, other in zip(on_workers, by_owners, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(on_workers, run(None), strict=True):
        assert_close(one, other)


def test_sessions_of_its_graph_and_of_its_master_are_opened_on_workers_and_no_others(monkeypatch):
    def tasks_of(session):
        with session:
            return {tf.DeviceSpec.from_string(each.name).job for each in session.list_devices()}

    cluster = put_on(monkeypatch, Tasks(2))
    master = TPUClusterResolver('a-tpu').master()
    assert tasks_of(tf.Session()) == {'localhost'}
    assert tasks_of(tf.Session(master)) == {'coordinator', 'tpu_worker'}
    assert master == '' and tasks_of(tf.Session('a-tpu')) == {'coordinator', 'tpu_worker'}
    embedding().create_variables_and_ops()
    assert not cluster.admitted
    assert tasks_of(tf.Session()) == {'coordinator', 'tpu_worker'}
    [(tables, _, _)] = cluster.admitted
    # Three numbers per row of 4 of 7 users, twice again as slots; one item in all.
    assert [{one['name']: one['bytes'] for one in host} for host in tables] == [
        {'user': 4 * 3 * 4 * 3, 'item': 1 * 3 * 4}, {'user': 3 * 3 * 4 * 3}]
    assert tasks_of(tf.Session(graph=tf.Graph())) == {'localhost'}


def test_hosts_are_the_tasks_of_workers_and_each_table_part_and_core_is_on_its_own(monkeypatch):
    put_on(monkeypatch, Tasks(2))
    made = embedding()
    assert made.hosts == [f'/job:tpu_worker/replica:0/task:{host}/device:CPU:0'
                          for host in (0, 1)]
    parts = made.create_variables_and_ops().embedding_variables_by_table['user']
    assert [part.device for part in parts] == made.hosts
    steps_of(made, 1)
    devices = []

    def computation():
        devices.append(tf.reduce_sum(made.get_activations()['viewer']).device)
        return tf.constant([0.])

    tf.tpu.shard(computation, num_shards=4)
    assert devices == [made.hosts[0], made.hosts[0], made.hosts[1], made.hosts[1]]


def test_a_resolver_knows_the_job_of_workers_for_scripts_that_spell_devices(monkeypatch):
    def job():
        return TPUClusterResolver('a-tpu', job_name='worker').get_job_name()

    assert job() == 'worker'
    monkeypatch.setattr(defaults, '_current', Defaults(cluster=ClusterChoice(processes=2)))
    assert f'/job:{job()}/replica:0/task:1/device:CPU:0' == embedding().hosts[1]


def test_another_number_of_hosts_than_of_workers_is_refused(monkeypatch):
    monkeypatch.setattr(defaults, '_current', Defaults(cluster=ClusterChoice(processes=3)))
    with pytest.raises(ConfigError, match='E710 hosts: .* 3; got 2'):
        embedding(hosts=2)
