"""Builds the engines of this package for `sessions.Engine`.

    python ours.py WORKLOAD SHRINK KERNELS

serves one for `engine.py`.
"""

import functools
import sys

import tensorflow.compat.v1 as tf
from sessions import Built, Engine, config_of
from workloads import ACCUMULATOR, RATE, START, WORKLOADS, serve

from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, Kernels, TableSpec, Topology
from estimator_tpu_embedding.hosts.backend import Backend
from estimator_tpu_embedding.hosts.engine_choice import choose_engine
from estimator_tpu_embedding.ops.ids import IdBatch

ADAGRAD = Adagrad(learning_rate=RATE, initial_accumulator=ACCUMULATOR)


def engine(workload, kernels, memory=None, kind=Engine, **options):
    """Returns an engine of this package, a `kind` of engine; see `_build` for the options."""
    build = functools.partial(_build, kernels=Kernels(kernels, memory=memory), **options)
    return kind(build, workload, config_of('tuned'))


def plan_of(workload, optimizer=ADAGRAD, hosts=1, strategy='div'):
    """Returns the plan of a workload, with one core per host."""
    return resolve(
        [TableSpec(name=f't{k:02}', vocabulary_size=rows, dimension=width,
                   combiner=workload.combiner, initializer=tf.constant_initializer(START))
         for k, (rows, width) in enumerate(workload.tables)],
        [FeatureSpec(name=f'f{k:03}', table=f't{feature.table:02}')
         for k, feature in enumerate(workload.features)],
        Topology(num_hosts=hosts), batch_size=workload.batch, optimizer=optimizer,
        strategy=strategy)


def _build(workload, places, *, kernels, **options):
    """Builds a step whose gradients are the activations, as for a loss of halved sums of squares.
    """
    plan = plan_of(workload, **options)
    backend = Backend(choose_engine(plan, {table.name: table.name for table in plan.tables},
                                    kernels=kernels), tf.train.create_global_step())
    hosts, size = plan.topology.num_hosts, plan.batch_size_per_core
    enqueues = [backend.enqueue({
        f'f{k:03}': IdBatch(tf.constant(workload.samples(feature)[:size * feature.per_sample]),
                            tf.split(ids, hosts)[host] if hosts > 1 else ids, size)
        for k, (feature, ids) in enumerate(zip(workload.features, places))}, core=host)
        for host in range(hosts)]
    activations, receipts = zip(*[backend.lookup(core=core) for core in range(hosts)])
    step = backend.update(receipts, activations).op
    enqueue = tf.group(*enqueues)
    return Built([backend.engine.open(), backend.engine.load()], tf.group(enqueue, step),
                 enqueue, step, [part for table in plan.tables
                                 for part in backend.tables[table.name].rows])


if __name__ == '__main__':
    _, name, shrink, chosen_kernels = sys.argv
    chosen = WORKLOADS[name].shrunk(int(shrink))
    serve(engine(chosen, chosen_kernels), chosen)
