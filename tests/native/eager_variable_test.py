"""Variables of tables in eager mode and in functions never hand out memory of the engine."""

import numpy as np
import pytest
import tensorflow as tf
from harness import graphs
from harness.native_eager import Opened, Owned

from estimator_tpu_embedding.native.eager_variable import EagerTableVariable

pytestmark = graphs.needs_native
ROWS = [[5., 5], [6, 6], [7, 7], [8, 8], [9, 9], [4, 4]]


@pytest.fixture
def owned():
    with Owned() as made:
        yield made


READS = {
    'value': lambda table: table.value(), 'read_value': lambda table: table.read_value(),
    'as a tensor': tf.convert_to_tensor, 'slice': lambda table: table[:2],
    'gather': lambda table: tf.gather(table, [0, 1]),
    'embedding_lookup': lambda table: tf.nn.embedding_lookup(table, [0, 1]),
    'gather_nd': lambda table: tf.gather_nd(table, [[0], [1]])}


@pytest.mark.parametrize('wrap', [lambda read: read, tf.function], ids=['eager', 'function'])
@pytest.mark.parametrize('read', READS)
def test_what_was_read_does_not_change_in_later_steps(owned, read, wrap):
    of_table = wrap(lambda: READS[read](owned.variable))
    for step in range(3):
        found = of_table()
        owned.step([0, 3])
        assert found.numpy()[:2].tolist() == [[-step, -step], [0, 0]]
        assert owned.detached() == -1


@pytest.mark.parametrize('read', READS)
def test_a_read_in_a_function_is_of_its_place_in_the_program(owned, read):
    @tf.function
    def step(grouped):
        before = READS[read](owned.variable)
        owned.update(grouped, 1., [owned.variable.handle])
        return before, READS[read](owned.variable)

    for number in range(3):
        assert [found.numpy()[0].tolist() for found in step(owned.group([0, 3]))] == [
            [-number] * 2, [-number - 1] * 2]


def slices(values, rows):
    return tf.IndexedSlices(tf.constant(values), tf.constant(rows))


WRITES = {
    'assign': lambda table: table.assign(ROWS),
    'assign_add': lambda table: table.assign_add(ROWS),
    'scatter_update': lambda table: table.scatter_update(slices(ROWS[:2], [0, 1])),
    'slice': lambda table: table[0:1].assign([[5., 5]]),
    'scatter_nd_add': lambda table: table.scatter_nd_add([[0]], [[5., 5]])}


@pytest.mark.parametrize('write', WRITES)
def test_what_was_written_between_steps_is_what_the_next_step_sees(owned, write):
    for _ in range(2):
        written = WRITES[write](owned.variable)
        expected = owned.variable.numpy()
        assert expected[0, 0] > 3 and owned.detached() == 0
        np.testing.assert_array_equal(written.read_value(), expected)
        assert owned.step([0, 3]) == expected[[0, 3]].tolist()
        expected[[0, 3]] -= 1
        np.testing.assert_array_equal(owned.variable.numpy(), expected)
        assert owned.detached() == -1


def test_what_is_pending_comes_before_reads_and_writes(owned):
    def pend():
        owned.pending.append(lambda: owned.update(owned.group([0, 3]), 1.))

    for read in READS.values():
        owned.take()
        owned.variable.assign(tf.zeros([6, 2]))
        owned.take()
        pend()
        assert read(owned.variable).numpy()[0].tolist() == [-1, -1]
    for write in WRITES.values():
        pend()
        write(owned.variable)
        assert not owned.pending
        owned.take()


@pytest.mark.parametrize('wrap', [lambda read: read, tf.function], ids=['eager', 'function'])
def test_gradients_pass_through_reads(owned, wrap):
    def loss():
        return (tf.reduce_sum(2 * owned.variable)
                + tf.reduce_sum(3 * tf.gather(owned.variable, [[1], [1]])))

    with tf.GradientTape() as tape:
        value = wrap(loss)()
    gradient = tf.convert_to_tensor(tape.gradient(value, owned.variable))
    assert gradient.numpy().tolist() == [[2, 2], [8, 8]] + [[2, 2]] * 4


def test_without_an_engine_it_is_a_plain_variable(owned):
    owned.step([0, 3])
    owned.variable.scatter_update(slices(ROWS[:1], [1]))
    expected = owned.variable.numpy()
    assert expected[:2].tolist() == [[-1, -1], [5, 5]]
    owned.library.ete_close(engine=owned.handle)
    owned.variable.attach(None, 0, lambda: None)
    for read in READS.values():
        np.testing.assert_array_equal(read(owned.variable)[:2], expected[:2])
    owned.variable.assign(ROWS)
    with Opened() as other:
        owned.variable.attach(other.handle, 0, lambda: None)
        assert owned.variable.numpy().tolist() == ROWS


def test_no_strategy_replicates_it():
    with tf.distribute.MirroredStrategy(['/cpu:0']).scope():
        made = EagerTableVariable(initial_value=lambda: tf.zeros([6, 2]))
    assert type(made) is EagerTableVariable
