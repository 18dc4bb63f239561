import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.estimator.tf_tpu import CrossShardOptimizer, cross_replica_sum
from estimator_tpu_embedding.runner.tower_copies import TowerCopies
from estimator_tpu_embedding.runner.towers import Towers

CORES = 3


def train(loss):
    return CrossShardOptimizer(tf.train.GradientDescentOptimizer(.25)).minimize(loss)


def run(model, *, copies=True, steps=2, seed=None):
    """Trains `model(input of a core)`, which returns a train_op and outputs.

    Returns:
      The outputs of all cores in the last step, all variables after it, and how often the model
      was called. Core `c` has the input `[c + 1, c + 1]`.
    """
    calls = []
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(seed)
        inputs = [tf.constant([core + 1.] * 2) for core in range(CORES)]

        def build(core):
            calls.append(core)
            return model(inputs[core])

        found = Towers(CORES).build(build, TowerCopies(inputs) if copies else None)
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for _ in range(steps):
            _, outputs = session.run([found[0][0], [each[1] for each in found]])
        variables = {each.op.name: session.run(each) for each in tf.global_variables()}
    return outputs, variables, len(calls)


def square(value):
    weight = tf.get_variable('weight', [2], initializer=tf.ones_initializer())
    loss = tf.reduce_mean((weight * value)**2)
    return train(loss), {'loss': loss, 'fixed': tf.constant(7)}


def test_copies_give_what_calls_of_the_model_would():
    outputs, variables, calls = run(square, steps=1)
    assert calls == 1
    assert outputs == [{'loss': loss, 'fixed': 7} for loss in (1, 4, 9)]
    # The gradient of each element is the mean of w, 4 w and 9 w.
    np.testing.assert_allclose(variables['weight'], [1 - .25 * 14 / 3] * 2, rtol=1e-6)


def normalized(value):
    """Outputs that wait for an update of moving averages, and a table of words."""
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(['3.0'], tf.constant([30.])), 0.)
    net = tf.layers.batch_normalization(value[:, None], momentum=.5, training=True)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        loss = tf.reduce_sum(net * table.lookup(tf.as_string(value, precision=1))[:, None])
    with tf.control_dependencies([train(loss)]):
        mean = next(each for each in tf.global_variables() if 'moving_mean' in each.name)
        return tf.no_op(), tf.stack([loss, mean.read_value()[0]])


def looped(value):
    steps = tf.compat.v2.while_loop(
        lambda number, total: number < 3, lambda number, total: (number + 1, total * value),
        [0, tf.ones([2])])
    with tf.device('/cpu:0'), tf.name_scope('loop'):
        return square(steps[1] + tf.compat.v2.function(tf.square)(value))


@pytest.mark.parametrize('model', [square, normalized, looped])
def test_copies_are_bit_for_bit_what_calls_make(model):
    copied, called = run(model), run(model, copies=False)
    assert (copied[2], called[2]) == (1, CORES)
    for one, other in zip(tf.nest.flatten(copied[:2]), tf.nest.flatten(called[:2])):
        np.testing.assert_array_equal(one, other)


def test_each_core_draws_random_numbers_of_its_own_and_a_seed_repeats_them():
    def model(value):
        noise = tf.random.uniform([2])
        return square(value + noise)[0], noise

    outputs, _, calls = run(model, seed=5)
    assert calls == 1
    assert len({tuple(each) for each in outputs}) == CORES
    np.testing.assert_array_equal(outputs, run(model, seed=5)[0])
    assert len({tuple(each) for each in run(model)[0]}) == CORES


def queued(value):
    queue = tf.queue.FIFOQueue(1, tf.float32)
    with tf.control_dependencies([queue.enqueue(value[0])]):
        return square(value + queue.dequeue())


def loops_of_version_1(value):
    return square(tf.compat.v1.while_loop(lambda total: total[0] < 9, lambda total: total * 2,
                                          [value])[0])


def sums_before_it_differentiates(value):
    return square(cross_replica_sum(value) / value)


def draws_in_a_function(value):
    noise = tf.compat.v2.function(lambda: tf.random.uniform([2], seed=3))()
    return square(value + noise)


@pytest.mark.parametrize('model', [
    queued, loops_of_version_1, sums_before_it_differentiates, draws_in_a_function])
def test_what_cannot_be_copied_is_called_on_every_core(model):
    was_enabled = tf.control_flow_v2_enabled()
    tf.disable_control_flow_v2()
    try:
        outputs, variables, calls = run(model)
        assert calls == CORES
        np.testing.assert_equal((outputs, variables), run(model, copies=False)[:2])
    finally:
        if was_enabled:
            tf.enable_control_flow_v2()


def test_a_later_sum_has_the_values_of_all_cores():
    def model(value):
        train_op, outputs = square(value)
        return train_op, cross_replica_sum(outputs['loss'])

    assert run(model, steps=1)[0] == [1 + 4 + 9] * CORES


def test_what_comes_too_late_for_copies_is_an_error():
    def model(value):
        train_op, outputs = square(value)
        return train_op, cross_replica_sum(outputs['loss'], [[0, 1], [2]])

    with pytest.raises(ConfigError, match='E456 model_fn: .*got a sum over a group of cores'):
        run(model)
