"""An observer sees what an engine does; without one there is nothing between a job and its engine.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.graphs import KERNELS, id_batch
from harness.native_run import plan_of

from estimator_tpu_embedding.core.kernels import Kernels
from estimator_tpu_embedding.hosts.choice import make_backend
from estimator_tpu_embedding.hosts.observed import ObservedEngine, observed, observed_by
from estimator_tpu_embedding.hosts.stock import StockEngine
from estimator_tpu_embedding.hosts.tables import create_tables

IDS = [[[4], [1]], [[4], []]]
"""Of the two samples of each core."""


class Notes:
    """Notes what it is told; wants the rows 1 and 4, one at a time."""

    def __init__(self):
        self.told, self._wanted = [], {}

    def declare(self, plan):
        return 7

    def packed(self, engine, packed, samples, ids, weights):
        self._note('packed', samples[0], ids[0], weights[0])

    def looked_up(self, engine, packed, activations):
        self._note('looked up', activations[0])

    def begin(self, engine, packed, gradients):
        self._wanted = {'before': [[4], [1], []], 'after': [[4], [1], []]}
        self._note('begin', *[gradient for gradient, in gradients])

    def ids_before(self, engine, table):
        return self._next('before')

    def ids_after(self, engine, table):
        return self._next('after')

    def rows(self, engine, table, values):
        self._note('rows', *values)

    def _next(self, when):
        return np.array(self._wanted[when].pop(0), np.int64)

    def _note(self, what, *arrays):
        self.told.append((what, *[array.tolist() for array in arrays]))


@pytest.mark.parametrize('kernels', KERNELS)
def test_an_observer_sees_ids_activations_gradients_and_rows_before_and_after(kernels):
    plan, notes = plan_of(rows=5, width=1, hosts=2), Notes()
    with tf.Graph().as_default(), tf.Session() as session:
        with observed_by(notes):
            backend = make_backend(plan, {'t': 't'}, tf.train.create_global_step(),
                                   kernels=Kernels(kernels))
        feeds = [backend.enqueue({'f': id_batch(ids)}, host=core, core=core)
                 for core, ids in enumerate(IDS)]
        found = [backend.lookup(core=core) for core in range(2)]
        update = backend.update([receipt for _, receipt in found],
                                [{'f': tf.ones([2, 1])} for _ in found])
        start = [backend.open(), backend.load()]
        session.run(tf.global_variables_initializer())
        session.run(start)
        for _ in range(2):
            for feed in feeds:
                session.run(feed)
            session.run(update)
    both_looked_up = notes.told[2:4]
    assert sorted(both_looked_up) == [('looked up', [[0.], [0.]])] * 2
    # Row 4 is in a sample of each core, and its gradient is 1 in both.
    assert notes.told[:2] == [('packed', [0, 1], [4, 1], [1., 1.]), ('packed', [0], [4], [1.])]
    assert notes.told[4:9] == [
        ('begin', [[1.], [1.]], [[1.], [1.]]), ('rows', [[0.]]), ('rows', [[0.]]),
        ('rows', [[-2.]]), ('rows', [[-1.]])]
    assert sorted(notes.told[11:13]) == [
        ('looked up', [[-2.], [-1.]]), ('looked up', [[-2.], [0.]])]
    assert notes.told[14:] == [
        ('rows', [[-2.]]), ('rows', [[-1.]]), ('rows', [[-4.]]), ('rows', [[-2.]])]


def test_without_an_observer_a_job_has_the_engine_itself():
    with tf.Graph().as_default():
        plan = plan_of()
        engine = StockEngine(plan, create_tables(plan, {'t': 't'}))
        assert observed(engine) is engine
        with observed_by(Notes()):
            assert isinstance(observed(engine), ObservedEngine)
        assert observed(engine) is engine
