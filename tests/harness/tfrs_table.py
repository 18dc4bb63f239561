"""One feature of one table in a TFRS layer: the smallest job, for steps of any form."""

import numpy as np
import tensorflow as tf
from harness import replicas, tfrs
from harness.numpy_reference import ReferenceTable, assert_close

from estimator_tpu_embedding.midlevel import optimizers

api = tf.tpu.experimental.embedding
ROWS, SAMPLES = 7, 8


def initial_rows():
    """The rows with which the table begins."""
    return np.random.default_rng(3).normal(size=(ROWS, 2)).astype(np.float32)


class Job:
    """One feature of one table, with what it must hold.

    Attributes:
      made: the strategy.
      layer: the layer, whose feature is `'a'`.
      reference: the table in float64.
    """

    def __init__(self, strategy, optimizer, **kwargs):
        self.made = replicas.make(strategy)
        table = api.TableConfig(ROWS, 2, lambda shape, dtype: tf.constant(initial_rows()),
                                combiner='sum', name='t')
        self.layer = tfrs.layer_under(
            self.made, {'a': api.FeatureConfig(table)}, optimizer, **kwargs)
        self.reference = ReferenceTable(
            initial_rows(), optimizers.core_optimizer(optimizer), 'sum')
        self._random = np.random.default_rng(5)

    def batch(self):
        """Ids and coefficients of a global batch."""
        return (self._random.integers(ROWS, size=SAMPLES),
                np.float32(self._random.uniform(.1, 1, (SAMPLES, 2))))

    def look_up(self, ids):
        """In a replica: the activations of a call of the layer."""
        return self.layer({'a': ids})['a']

    def program(self, step):
        """A tf.function that calls `step` with global values in every replica."""
        @tf.function
        def program(*values):
            return tfrs.joined(self.made, self.made.run(step, values))
        return lambda *values: program(*self.split(*values))

    def split(self, *values):
        """Global values as values of replicas."""
        return [replicas.split(self.made, one) for one in values]

    def train_step(self, ids, coefficients):
        """In a replica: the activations of a step that trains with these gradients."""
        with tf.GradientTape() as tape:
            found = self.look_up(ids)
            loss = tfrs.weighted_sum(found, coefficients)
        tape.gradient(loss, self.layer.trainable_variables)
        return found

    def lookup(self, ids):
        """What the activations of a global batch must be."""
        return self.reference.lookup([[one] for one in ids])

    def update(self, ids, coefficients):
        """Trains the reference with a global batch."""
        self.reference.update([([[one] for one in ids], coefficients, None)])

    def check(self):
        """Compares the rows and slots of the table."""
        for found, wanted in zip(
                tfrs.values_of(self.layer)['t'].values(),
                [self.reference.rows, *self.reference.slots.values()], strict=True):
            assert_close(found, wanted, 2e-6)
