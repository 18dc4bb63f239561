"""Builds small graphs for tests: global batches as tensors, tables with known rows."""

import contextlib
import functools
import tempfile

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.cluster import heartbeats
from estimator_tpu_embedding.cluster.cluster import current
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, Kernels, TableSpec, Topology
from estimator_tpu_embedding.core.table_memory import TableMemory
from estimator_tpu_embedding.estimator.enqueue import EnqueueData
from estimator_tpu_embedding.hosts.backend import Backend
from estimator_tpu_embedding.hosts.engine_choice import choose_engine
from estimator_tpu_embedding.hosts.native_engine import make_engine
from estimator_tpu_embedding.hosts.placement import Placement, on
from estimator_tpu_embedding.hosts.stock_engine import StockEngine
from estimator_tpu_embedding.hosts.table_parts import create_tables
from estimator_tpu_embedding.native import library
from estimator_tpu_embedding.ops.ids import IdBatch

from . import tasks, tpu_kernels
from .network import require_private_network
from .parts import soak_except

needs_native = pytest.mark.skipif(
    bool(library.why_not()), reason=f'NO NATIVE KERNELS ARE TESTED: {library.why_not()}')
"""For tests of native kernels; conformance/coverage_test.py fails if a compiler is there."""


def stock_backend(plan, variable_names, global_step, **kwargs):
    """One of stock operations, with tables of its own."""
    tables = create_tables(plan, variable_names)
    return Backend(StockEngine(plan, tables, **kwargs), global_step)


def native_backend(plan, variable_names, global_step, **kwargs):
    """One of native kernels with two threads, with tables of its own."""
    return Backend(make_engine(
        plan, variable_names, None, kernels=Kernels(threads=2), **kwargs), global_step)


def disk_backend(plan, variable_names, global_step, **kwargs):
    """As `native_backend`, with all its tables on a disk."""
    memory = TableMemory(tempfile.gettempdir(), 1)
    return Backend(make_engine(
        plan, variable_names, None, kernels=Kernels(threads=2, memory=memory), **kwargs),
        global_step)


def owners_backend(plan, variable_names, global_step, *, placement=None, **kwargs):
    """One with an owner per host, all of them in this process unless a placement says more."""
    return Backend(choose_engine(plan, variable_names, kernels=Kernels('native', 2),
                                 placement=placement or Placement(plan.topology), **kwargs),
                   global_step)


def hosts_backend(plan, variable_names, global_step, **kwargs):
    """One with an owner per host, each on a task of a cluster."""
    return owners_backend(plan, variable_names, global_step,
                          placement=Placement(plan.topology, is_remote=True), **kwargs)


BACKENDS = {'stock': stock_backend, 'native': native_backend, 'native_disk': disk_backend,
            'native_owners': owners_backend, 'native_tasks': hosts_backend,
            'native_cluster': hosts_backend, 'native_tpu_ops': tpu_kernels.Backend}
"""By the name that tests have for it.

`owners` are hosts in one place, `tasks` are servers of TensorFlow in this process, and a `cluster`
has a process per host. `tpu_ops` are a TPU's operations. `disk` has the tables of one engine there.
"""

MOST_HOSTS = 5
"""Of a plan in a test of every backend."""


def of_backend(name, *others):
    """A name of `BACKENDS` as a parameter of a test, with others."""
    return pytest.param(name, *others, marks=[needs_native] if name.startswith('native') else [])


@functools.cache
def _tasks():
    return tasks.Tasks(MOST_HOSTS)


def _cluster():
    require_private_network()
    heartbeats.SILENCE = 30.  # No worker is lost because the machine is busy.
    cluster = current(ClusterChoice(processes=MOST_HOSTS, expose=True))
    if not cluster.addresses():  # `conftest.py` has closed it after the last module that had it.
        cluster.prepare()
    return cluster


def _kind_of(backend):
    kind = backend.rpartition('_')[2]
    return kind if kind in ('tasks', 'cluster') else None


@contextlib.contextmanager
def building(backend):
    """A new default graph, in which all that says nothing else is where the client is."""
    is_remote = _kind_of(backend) is not None
    with tf.Graph().as_default(), on(Placement(Topology(), is_remote=is_remote).client):
        yield


def session_of(backend, config=None):
    """A session of the default graph which has the hosts of a backend."""
    kind, config = _kind_of(backend), config or tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    if kind is None:
        return tf.Session(config=config)
    cluster = _tasks() if kind == 'tasks' else _cluster()
    return tf.Session(cluster.target, config=cluster.config(config))


_TESTED = 'stock', 'native', 'native_owners'

EVERY_BACKEND = soak_except(
    map(of_backend, [*_TESTED, 'native_tpu_ops', 'native_disk']), 0, 1, 3)
"""As parameters of a test; those that are not in the gate are `soak`.

`conformance/backend_test.py` compares tasks and processes with owners bit for bit.
"""

WITH_OWNERS = list(map(of_backend, _TESTED))
"""The same for tests of what owners do in another way than one engine."""

KERNELS = list(map(of_backend, ('native', 'stock')))
"""What a job may have, as parameters of a test."""


def small_plan():
    """One table `t` of 5 rows with one feature `f`, for two samples on one core."""
    return resolve([TableSpec(name='t', vocabulary_size=5, dimension=2)],
                   [FeatureSpec(name='f', table='t')], Topology(), batch_size=2,
                   optimizer=Adagrad(learning_rate=.1))


def id_batch(samples, weights=None):
    """An `IdBatch` of constants from the lists of ids, and of weights, of each sample."""
    positions = [sample for sample, ids in enumerate(samples) for _ in ids]
    flat = [one for ids in samples for one in ids]
    return IdBatch(tf.constant(positions, tf.int32, [len(flat)]),
                   tf.constant(flat, tf.int64, [len(flat)]), len(samples),
                   None if weights is None else tf.constant(
                       np.concatenate(weights), tf.float32, [len(flat)]))


def placeholders(plan):
    """An `IdBatch` to be fed for each feature of one core."""
    return {feature.name: IdBatch(
        tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [None]),
        plan.batch_size_per_core * max(feature.max_sequence_length, 1),
        tf.placeholder(tf.float32, [None]) if feature.weight_feature else None)
        for feature in plan.features}


def fed(batch, samples, weights=None):
    """Returns the feeds for an `IdBatch` of `placeholders`; see `id_batch`."""
    feed = {batch.samples: [sample for sample, ids in enumerate(samples) for _ in ids],
            batch.ids: [one for ids in samples for one in ids]}
    return feed if weights is None else {**feed, batch.weights: np.concatenate(weights)}


def enqueue_data(samples, weights=None):
    """`EnqueueData` of lists of ids per sample."""
    indices = [[sample, at] for sample, ids in enumerate(samples) for at in range(len(ids))]
    ids = [one for sample in samples for one in sample]
    return EnqueueData(
        tf.constant(ids, tf.int64), tf.constant(indices, tf.int64, [len(ids), 2]),
        None if weights is None else tf.constant(weights, tf.float32))


def split(samples, parts):
    """A list cut into equal consecutive parts."""
    size = len(samples) // parts
    return [samples[at:at + size] for at in range(0, len(samples), size)]


def random_samples(generator, count, vocabulary_size, most=4):
    """For each sample up to `most` ids, duplicates likely, none possible."""
    return [generator.integers(0, vocabulary_size, generator.integers(0, most + 1)).tolist()
            for _ in range(count)]


def assign_rows(session, plan, hosted, rows):
    """Writes the rows of a whole table into the parts of its hosts."""
    partition = plan.partition(hosted.spec.name)
    for host, part in enumerate(hosted.rows):
        part.load(np.asarray(rows, np.float32)[partition.ids_on(host)], session)


def whole(session, plan, name, parts):
    """The rows of all ids, from the parts of a table or of one of its slots."""
    return joined(plan, name, session.run(list(parts)))


def joined(plan, name, values):
    """The rows of all ids, from the values of the parts."""
    partition = plan.partition(name)
    result = np.zeros((partition.vocabulary_size, values[0].shape[1]), values[0].dtype)
    for host, value in enumerate(values):
        result[partition.ids_on(host)] = value
    return result
