"""Steps of any form with the TFRS layer train as NumPy says."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas, tfrs
from harness.numpy_reference import ReferenceTable, assert_close
from harness.parts import soak_except

from estimator_tpu_embedding.midlevel import feature_configs

pytestmark = pytest.mark.usefixtures('tfrs_names')

api, keras = tf.tpu.experimental.embedding, tf.keras.optimizers.legacy
RATE = .25
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

    def __init__(self, strategy, optimizer=api.Adagrad(RATE), equal=None, **kwargs):
        """Takes what the layer gets, and the equal optimizer of the mid-level API."""
        self.made = replicas.make(strategy)
        table = api.TableConfig(ROWS, 2, lambda shape, dtype: tf.constant(initial_rows()),
                                combiner='sum', name='t')
        self.layer = tfrs.layer_under(
            self.made, {'a': api.FeatureConfig(table)}, optimizer, **kwargs)
        self.reference = ReferenceTable(
            initial_rows(), feature_configs.core_optimizer(equal or optimizer), 'sum')
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


OPTIMIZERS = {  # What the layer is given, and the equal optimizer of the mid-level API.
    'name': (lambda: 'adagrad', api.Adagrad(.001, .1)),
    'keras sgd': (lambda: keras.SGD(.2), api.SGD(.2)),
    'keras adagrad': (lambda: keras.Adagrad(.2, .3), api.Adagrad(.2, .3)),
    'keras adam': (lambda: keras.Adam(.2, .7, .8, .01), api.Adam(.2, .7, .8, .01)),
    'keras ftrl': (lambda: keras.Ftrl(.2, -.6, .5, beta=.1),
                   api.FTRL(.2, -.6, beta=.1, initial_accumulator_value=.5)),
    'object': (lambda: api.FTRL(.3), api.FTRL(.3))}
SLOTS = {'adagrad': ['accumulator'], 'adam': ['m', 'v'], 'ftrl': ['accumulator', 'linear']}


@pytest.mark.parametrize('case', soak_except(OPTIMIZERS, 3))
def test_a_step_that_is_a_tf_function_trains_tables_and_slots_by_any_optimizer(case):
    make, equal = OPTIMIZERS[case]
    with replicas.scope(replicas.make('tpu 2')):
        optimizer = make()
    job = Job('tpu 2', optimizer, equal)
    step = tf.function(job.train_step)
    for _ in range(3):
        ids, coefficients = job.batch()
        found = tfrs.joined(job.made, job.made.run(step, job.split(ids, coefficients)))
        assert_close(found.numpy(), job.lookup(ids))
        job.update(ids, coefficients)
    job.check()
    table, *slots = job.layer._tpu_embedding._variables['t'].values()
    if case.startswith('keras'):
        for name, slot in zip(SLOTS.get(case.split()[1], ()), slots, strict=True):
            assert optimizer.get_slot(table, name) is slot


@pytest.mark.soak
def test_a_policy_of_mixed_precision_leaves_tables_and_activations_in_float32():
    tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')
    try:
        job = Job('tpu 2')
        train, batch = job.program(job.train_step), job.batch()
        found = train(*batch)
    finally:
        tf.keras.mixed_precision.set_global_policy('float32')
    assert found.dtype == tf.float32
    assert_close(found.numpy(), job.lookup(batch[0]))
    job.update(*batch)
    job.check()
