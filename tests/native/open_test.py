"""Engines that are opened and closed, in eager mode and in a tf.function."""

import pytest
import tensorflow as tf
from harness import graphs
from harness.native_eager import Opened

pytestmark = graphs.needs_native


def test_a_seed_that_is_set_drops_kernels_and_no_engine():
    with Opened() as engine:
        grouped = engine.group([0, 3])
        engine.update(grouped, 1.)
        tf.random.set_seed(8)
        assert engine.lookup(grouped).numpy().tolist() == [[-1, -1]] * 2


def test_a_closed_engine_is_one_no_longer_and_may_be_closed_again():
    with Opened() as engine, Opened() as other:
        grouped = engine.group([0, 3])
        for handle in (engine.handle, engine.handle, tf.constant(7, tf.int64)):
            engine.library.ete_close(engine=handle)
        with pytest.raises(tf.errors.InvalidArgumentError, match='no engine'):
            engine.lookup(grouped)
        other.lookup(grouped)


def test_a_function_keeps_the_order_of_operations_with_a_handle_in_common():
    table = tf.Variable(tf.zeros([6, 2]))
    other = tf.Variable(0.)
    with Opened() as engine:
        @tf.function
        def step(grouped):
            handles = [other.handle, table.handle]
            before = engine.lookup(grouped, handles)
            engine.update(grouped, 1., [table.handle])
            between = engine.lookup(grouped, [table.handle])
            engine.update(grouped, 2., handles)
            return before, between, engine.lookup(grouped, handles)

        grouped = engine.group([0, 3])
        for start in (0, -3, -6):
            assert [found.numpy()[1, 0] for found in step(grouped)] == [
                start, start - 1, start - 3]
