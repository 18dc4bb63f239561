"""Runs a native engine with one table in the default graph, for tests of its variables."""

import numpy as np
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core.optimizers import StochasticGradientDescent
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.hosts.backend import Backend
from estimator_tpu_embedding.hosts.native_engine import make_engine
from estimator_tpu_embedding.native import library
from estimator_tpu_embedding.native.graph_variable import in_place

from .graphs import id_batch

SGD = StochasticGradientDescent(learning_rate=1.)


def plan_of(rows=6, width=2, hosts=2, optimizer=SGD, batch_size=2):
    return resolve(
        [TableSpec(name='t', vocabulary_size=rows, dimension=width, combiner='sum',
                   initializer=tf.zeros_initializer())],
        [FeatureSpec(name='f', table='t')], Topology(num_hosts=hosts), optimizer=optimizer,
        batch_size=batch_size * hosts, strategy='mod')


class Run:
    """An engine with one table `t` in the default graph, and a session of its own.

    A step subtracts a gradient, 1 by default, from the rows of the ids of its samples.
    """

    def __init__(self, plan, ids=None, wait_for=lambda run: [], **options):
        cores = range(plan.topology.num_cores)
        samples = plan.batch_size_per_core
        ids = [[core] + [[]] * (samples - 1) for core in cores] if ids is None else ids
        ids = [[one if isinstance(one, list) else [one] for one in of_core] for of_core in ids]
        self.backend = Backend(make_engine(plan, {'t': 't'}, None, **options),
                               tf.train.create_global_step())
        self.table = self.backend.tables['t']
        self.parts = self.table.rows
        self.feed = tf.group(*[self.backend.enqueue({'f': id_batch(of_core)}, core=core)
                               for core, of_core in enumerate(ids)])
        looked_up = [self.backend.lookup(core=core) for core in cores]
        self.activations = [activations['f'] for activations, _ in looked_up]
        self.gradient = tf.placeholder_with_default(1., [])
        with tf.control_dependencies(self.activations), tf.control_dependencies(wait_for(self)):
            gradients = [{'f': tf.fill(plan.output_shape(plan.features[0]), self.gradient)}
                         for _ in cores]
        self.update = self.backend.update([receipt for _, receipt in looked_up], gradients)
        self.load = self.backend.engine.load()
        engine, = self.backend.engine.open().outputs
        self.detached = library.load().ete_detached(
            engine=engine, values=[in_place(part.handle) for part in self.parts])
        self.session = self.new_session()

    def new_session(self):
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        session.run([self.load, self.backend.engine.open()])
        return session

    def __call__(self, session=None):
        session = session or self.session
        session.run(self.feed)
        return session.run([self.activations, self.update])[0]

    def values(self, session=None):
        return [value.tolist() for value in (session or self.session).run(list(self.parts))]


def require_copies(session, part, step):
    """Neither another variable nor a queue that takes a part shares its memory."""
    copy = tf.get_variable('copy', part.shape, initializer=tf.ones_initializer())
    queue = tf.queue.FIFOQueue(1, [tf.float32])
    session.run(copy.initializer)
    step()
    before, _, _ = session.run([part, copy.assign(part).op, queue.enqueue([part])])
    step()
    np.testing.assert_array_equal(session.run(copy), before)
    np.testing.assert_array_equal(session.run(queue.dequeue()), before)
    assert np.abs(session.run(part) - before).sum() > 0
