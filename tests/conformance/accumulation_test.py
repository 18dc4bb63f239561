"""Without gradient accumulation a row is updated once for each core that has it.

The gradients of a core are summed first: all its samples, of all its features. The core on which
the row resides is the first, `id % num_cores` with `div` as with `mod`; the next ones ascend from
there, and core 0 follows the last.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs
from harness.numpy_reference import assert_close

from estimator_tpu_embedding.core.optimizers import Adagrad, Momentum, StochasticGradientDescent
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.hosts.pipelined import DelayedBackend

pytestmark = pytest.mark.no_rerun
ROWS, SAMPLES = 9, 2
PLACES_OF_2 = [((1, 2), 'mod'), ((2, 1), 'div')]
PLACES_OF_4 = [((1, 4), 'mod'), ((2, 2), 'div'), ((4, 1), 'mod')]


def trained(backend, place, optimizer, cores, *, start=1., steps=1, delayed=False, **kwargs):
    """A table of one column after some steps, by row: `[weight, slot...]`; and what was refused.

    Args:
      backend: of `graphs.BACKENDS`.
      place: hosts and cores per host, and the strategy.
      optimizer: of the table, whose weights all are `start`.
      cores: by core then feature the ids of each sample, and the gradient of each sample.
    """
    (hosts, cores_per_host), strategy = place
    names = [f'f{number}' for number in range(len(cores[0]))]
    plan = resolve(
        [TableSpec(name='t', vocabulary_size=ROWS, dimension=1, combiner='sum')],
        [FeatureSpec(name=name, table='t') for name in names],
        Topology(num_hosts=hosts, cores_per_host=cores_per_host), strategy=strategy,
        batch_size=SAMPLES * hosts * cores_per_host, optimizer=optimizer)
    with graphs.building(backend), graphs.session_of(backend) as session:
        step = tf.train.create_global_step()
        made = graphs.BACKENDS[backend](plan, {'t': 't'}, step, **kwargs)
        if delayed:
            made = DelayedBackend(made.engine, step)
        enqueue = [made.enqueue({name: graphs.id_batch(ids) for name, (ids, _) in zip(names, own)},
                                core=core)
                   for core, own in enumerate(cores)]
        looked_up = [made.lookup(core=core) for core in range(len(cores))]
        update = made.update([receipt for _, receipt in looked_up], [
            {name: tf.reshape(tf.constant(gradient, tf.float32), [SAMPLES, 1])
             for name, (_, gradient) in zip(names, own)} for own in cores])
        retrieve = made.retrieve()
        session.run([tf.global_variables_initializer(), made.engine.open()])
        graphs.assign_rows(session, plan, made.tables['t'], np.full([ROWS, 1], start))
        session.run(made.engine.load())
        for _ in range(steps):
            session.run(enqueue)
            refused = session.run(update)
        session.run(retrieve)
        table = made.tables['t']
        return np.concatenate([graphs.whole(session, plan, 't', parts) for parts in (
            table.rows, *table.slots.values())], 1), refused


@pytest.mark.parametrize('delayed', [False, True])
@pytest.mark.parametrize('place', PLACES_OF_2)
@pytest.mark.parametrize('backend', graphs.WITH_OWNERS)
def test_the_example_of_upstreams_test_of_colliding_ids(backend, place, delayed):
    """Id 1 has gradients 1.5 and 1.0 on core 0 and 0.5 on core 1, id 2 the same ones."""
    found, _ = trained(
        backend, place, Adagrad(learning_rate=.5, initial_accumulator=.1, accumulate=False), [
            [([[1, 2], [1, 2]], [1.5, 1.])], [([[2, 1], []], [.5, 9.])]],
        delayed=delayed, start=0.)
    # Core 1 comes first for id 1, core 0 for id 2.
    for row, first, second in ((1, .5, 2.5), (2, 2.5, .5)):
        sum_1 = .1 + first ** 2
        sum_2 = sum_1 + second ** 2
        assert_close(found[row], [
            -.5 * (first / np.sqrt(sum_1) + second / np.sqrt(sum_2)), sum_2])
    np.testing.assert_allclose(found[[0, 3]], [[0, .1]] * 2)


@pytest.mark.parametrize('place', PLACES_OF_4)
@pytest.mark.parametrize('backend', graphs.WITH_OWNERS)
def test_cores_come_in_ascending_order_from_that_of_the_row_and_wrap_round(backend, place):
    """With a momentum of 1/2 three gradients a, b and c in this order subtract 1.75a + 1.5b + c."""
    # Core 1 says 3 + 1 = 4 of id 5, by two features; core 2 has neither id 5 nor id 7.
    of_core_1 = [([[5], [7]], [3., 64.]), ([[], [5]], [9., 1.])]
    nothing = ([[], []], [9., 9.])
    found, _ = trained(
        backend, place, Momentum(learning_rate=1., momentum=.5, accumulate=False), [
            [([[5, 7], []], [1., 9.]), nothing], of_core_1, [nothing, nothing],
            [nothing, ([[], [7, 5]], [9., 16.])]], start=0.)
    # Id 5 resides on core 1: cores 1, 3, 0. Id 7 on core 3: 3, 0, 1.
    assert found[5].tolist() == [-(1.75 * 4 + 1.5 * 16 + 1), .25 * 4 + .5 * 16 + 1]
    assert found[7].tolist() == [-(1.75 * 16 + 1.5 * 1 + 64), .25 * 16 + .5 * 1 + 64]
    assert not found[[0, 1, 2, 3, 4, 6, 8]].any()


BIG, RATE, INFINITY = 2. ** 127, 2. ** -126, float('inf')  # 2 * BIG overflows, BIG * RATE is 2.


@pytest.mark.parametrize('accumulate, core_0, core_1, wanted', [
    (False, [BIG, BIG], [1., 1.], None),  # The sum of a core overflows.
    (False, [BIG, 1.], [BIG, 1.], 1 - 2 - 2), (True, [BIG, 1.], [BIG, 1.], None),
    (False, [BIG, -BIG], [BIG, 1.], 1 - 2), (False, [INFINITY, 1.], [-INFINITY, 1.], None)])
@pytest.mark.parametrize('backend', graphs.WITH_OWNERS)
def test_what_must_be_finite_is_the_sum_of_each_core(backend, accumulate, core_0, core_1, wanted):
    optimizer = StochasticGradientDescent(learning_rate=RATE, accumulate=accumulate)
    found, refused = trained(backend, PLACES_OF_2[0], optimizer, [
        [([[4], [4]], core_0)], [([[4], [4]], core_1)]], skips_nonfinite=True)
    assert refused.tolist() == [wanted is None]
    assert found[4] == (1. if wanted is None else wanted)
    assert (found[[0, 8]] == 1.).all()
