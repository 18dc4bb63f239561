"""Many ids at one place: the right sum, in memory that is bounded by what was given."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs
from harness.memory import highest_rss_of

from estimator_tpu_embedding.core.optimizers import StochasticGradientDescent
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.ops.ids import IdBatch

pytestmark = pytest.mark.serial  # The memory of this process.


def step(backend, samples, ids, batch_size):
    """One step with gradients of 1 from rows of 1: activations, rows after, and memory of it."""
    plan = resolve([TableSpec(name='t', vocabulary_size=5, dimension=1, combiner='sum')],
                   [FeatureSpec(name='f', table='t')], Topology(), batch_size=batch_size,
                   optimizer=StochasticGradientDescent(learning_rate=2.**-10))
    with graphs.building(backend), graphs.session_of(backend) as session:
        made = graphs.BACKENDS[backend](plan, {'t': 't'}, tf.train.create_global_step())
        session.run([tf.global_variables_initializer(), made.engine.open()])
        graphs.assign_rows(session, plan, made.tables['t'], np.ones([5, 1]))
        session.run(made.engine.load())
        batch = IdBatch(tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [None]),
                        batch_size, None)
        enqueue = made.enqueue({'f': batch}, core=0)
        found, receipt = made.lookup(core=0)
        update = made.update([receipt], [{'f': tf.ones([batch_size, 1])}])
        values = []

        def run():
            session.run(enqueue, {batch.samples: samples, batch.ids: ids})
            values.append(session.run([found['f'], update])[0])

        grown = highest_rss_of(run)
        session.run(made.retrieve())
        return values[0], graphs.whole(session, plan, 't', made.tables['t'].rows), grown


@pytest.mark.parametrize('backend', graphs.EVERY_BACKEND)
def test_i23_a_million_times_one_id_is_summed_rightly(backend):
    count, batch_size = 2**20, 2**10
    activations, rows, grown = step(
        backend, np.repeat(np.arange(batch_size, dtype=np.int32), 2**10), np.full(count, 3),
        batch_size)
    np.testing.assert_array_equal(activations, np.full([batch_size, 1], 2.**10))
    # Its gradient is 1 per occurrence; 2**-10 times 2**20 of it are 2**10.
    np.testing.assert_array_equal(rows[:, 0], [1, 1, 1, 1 - 2.**10, 1])
    assert grown < 200 * count  # Bytes for each id; 12 were given.


@pytest.mark.parametrize('backend', graphs.EVERY_BACKEND)
def test_r03_ten_million_ids_in_one_sample_are_summed_rightly(backend):
    count = 10_000_000
    activations, rows, grown = step(
        backend, np.zeros(count, np.int32), np.arange(count) % 4, 1)
    np.testing.assert_array_equal(activations, [[1e7]])  # Exact: below 2**24.
    np.testing.assert_allclose(rows[:, 0], [*[1 - 2_500_000 / 2**10] * 4, 1], rtol=1e-6)
    assert grown < 200 * count
