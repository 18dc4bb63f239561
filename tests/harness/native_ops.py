"""Runs the operations of a native engine with two tables in a session, for tests of the kernels."""

import numpy as np
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.native import library, plan_attributes

SAMPLES = 4
WIDTHS = {'item': 3, 'user': 8}  # as the plan sorts them
ROWS = {'item': 5, 'user': 7}
FEATURES = ('liked', 'friend', 'self')  # of item, user, user; `liked` has weights
PARTS = [(3, 3), (2, 3), (3, 3), (2, 3), (4, 8), (3, 8), (4, 8), (3, 8)]  # of two hosts


def plan():
    """Returns the plan of the engine: two hosts with one core each."""
    return resolve(
        [TableSpec(name='user', vocabulary_size=ROWS['user'], dimension=8, combiner='sum'),
         TableSpec(name='item', vocabulary_size=ROWS['item'], dimension=3, combiner='mean')],
        [FeatureSpec(name='liked', table='item', weight_feature='how much'),
         FeatureSpec(name='friend', table='user'), FeatureSpec(name='self', table='user')],
        Topology(num_hosts=2), batch_size=2 * SAMPLES, optimizer=Adagrad(learning_rate=.1),
        strategy='mod')


class Operations:
    """The operations of one engine, called with arrays. Use it in a graph of its own."""

    def __init__(self, made_from=None, **changes):
        """Makes an engine of a plan with other attributes."""
        self.library = library.load()
        self.session = tf.Session()
        attributes = {**plan_attributes.attributes(made_from or plan(), 2), **changes}
        self.handle = self.run(self.library.ete_engine(**attributes))

    def run(self, *fetches):
        return self.session.run(*fetches)

    def group(self, samples, ids, weights, handle=None, weighted=()):
        """Lists of arrays by feature -> the words of a grouped batch; weights are of `weighted`."""
        return self.run(self.library.ete_group(
            engine=self.handle if handle is None else handle,
            samples=[tf.constant(one, tf.int32) for one in samples],
            ids=[tf.constant(one, tf.int64) for one in ids],
            weights=[tf.constant(one, tf.float32) for one in weights], weighted=weighted))

    def some_grouped(self, seed=0):
        """A valid batch of random ids."""
        generator = np.random.default_rng(seed)
        counts = generator.integers(0, 6, 3)
        samples = [np.sort(generator.integers(0, SAMPLES, count)) for count in counts]
        ids = [generator.integers(0, rows, count) for rows, count in zip((5, 7, 7), counts)]
        return self.group(samples, ids, [generator.uniform(.5, 2, counts[0])])

    def lookup(self, grouped, features=3):
        return self.run(self.library.ete_lookup(
            engine=self.handle, grouped=grouped, handles=[], F=features))

    def update(self, grouped, gradients, rates=(.1, .1)):
        """Of any number of cores; gradients by core, then by feature."""
        return self.run(self.library.ete_update(
            engine=self.handle, grouped=grouped, gradients=gradients,
            rates=tf.constant(rates, tf.float32), handles=[]))


def zeros():
    """Gradients of one core."""
    return [np.zeros([SAMPLES, width], np.float32) for width in (3, 8, 8)]
