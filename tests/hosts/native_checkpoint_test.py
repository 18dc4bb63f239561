"""Savers write and restore the variables of the native engine."""

import concurrent.futures
import itertools
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs
from harness.native_run import Run, plan_of
from harness.waiting import until

from estimator_tpu_embedding.checkpoint.pieces import SaverBuilder
from estimator_tpu_embedding.core.optimizers import Adagrad

pytestmark = [pytest.mark.no_rerun, graphs.needs_native]


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.mark.parametrize('builder', [None, SaverBuilder])
def test_savers_save_and_restore_the_truth(graph, tmp_path, builder):
    run = Run(plan_of(optimizer=Adagrad(learning_rate=2., initial_accumulator=1.)))
    saver = tf.train.Saver(builder=builder and builder())
    run()
    path = saver.save(run.session, str(tmp_path / 'm'))
    saved = tf.train.load_checkpoint(path)
    np.testing.assert_allclose(saved.get_tensor('t')[::3], -2**.5, rtol=1e-6)
    assert saved.get_tensor('t/Adagrad').tolist() == [[2, 2], [1, 1], [1, 1]] * 2
    run()
    saver.restore(run.session, path)
    run()
    step_2 = -2**.5 - 2 * 3**-.5
    for part in run.values():
        np.testing.assert_allclose(part, [[step_2, step_2], [0, 0], [0, 0]], rtol=1e-6)


def test_a_checkpoint_that_is_written_beside_steps_holds_no_torn_row(graph, tmp_path):
    rows, seen, numbers, ended = 8000, set(), itertools.count(), threading.Event()
    run = Run(plan_of(rows, 128, hosts=1, batch_size=rows), [list(range(rows))])
    savers = [tf.train.Saver(max_to_keep=1, builder=builder) for builder in (
        None, SaverBuilder())]

    def has_seen_two():
        number = next(numbers)
        path = savers[number % 2].save(run.session, str(tmp_path / 'm'), number)
        values = np.unique(tf.train.load_checkpoint(path).get_tensor('t'))
        assert len(values) == 1
        seen.update(values.tolist())
        assert len(np.unique(run.session.run(run.parts[0]))) == 1
        return (number >= 9 and len(seen) > 1) or steps.done()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        steps = pool.submit(lambda: [run() for _ in iter(ended.is_set, True)])
        try:
            until(has_seen_two, 'checkpoints of two steps')
        finally:
            ended.set()
    steps.result()  # Raises what a step did.
    assert len(seen) > 1
