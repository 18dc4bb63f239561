"""A tower makes each small operation on shapes once, and all others as often as it is asked to."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.runner.towers import Towers


def built(model, cores=2):
    """The number of operations that each tower makes for `model(core)`, and what it returns."""
    towers = Towers(cores)
    results = towers.build(model)
    return [len(operations) for operations in towers.operations()], results


def flattened(features):
    """A model that gives each of some features two dimensions, as layers of columns do."""

    def model(core):
        value = tf.fill([4, 3], float(core))
        return [tf.reshape(value + n, [tf.shape(value)[0], 3]) for n in range(features)]

    return model


def test_a_further_feature_costs_another_tower_its_values_but_no_operations_on_shapes():
    counts = []
    for features in (2, 10):
        with tf.Graph().as_default(), tf.Session() as session:
            per_tower, results = built(flattened(features))
            counts.append(per_tower)
            values = session.run(results)
        for core, each in enumerate(values):
            np.testing.assert_array_equal(each, [np.full([4, 3], core + n)
                                                 for n in range(features)])
    growth = np.subtract(*counts[::-1]) // 8
    # Add, the number that is added, Reshape; in tower 0 also Shape, the ends and the step of the
    # slice, the slice, 3, and the new shape.
    assert growth.tolist() == [3 + 7, 3]


def test_operations_of_the_first_tower_have_the_names_that_one_core_gives_them():
    names = []
    for cores in (1, 2):
        with tf.Graph().as_default():
            towers = Towers(cores)
            towers.build(flattened(3))
            names.append([each.name for each in towers.operations()[0]])
    assert names[0] == names[1]


def in_control_flow(make):
    return tf.cond(tf.equal(tf.placeholder(tf.int32, []), 0), make, make)


def on_a_device(make):
    with tf.device('/cpu:0'):
        return make()


@pytest.mark.parametrize('where', [in_control_flow, on_a_device])
def test_what_is_made_elsewhere_is_another_operation(where):
    tf.disable_control_flow_v2()
    try:
        with tf.Graph().as_default():
            value = tf.zeros([4, 3])
            _, made = built(lambda core: (
                tf.shape(value), where(lambda: tf.shape(value)), tf.shape(value)))
    finally:
        tf.enable_control_flow_v2()
    assert made[1][0] is made[1][2] and made[1][0].op is not made[1][1].op


def test_what_a_model_asks_for_itself_has_its_own_name_and_identity():
    def model(core):
        return [tf.constant(1), tf.constant(1), tf.constant(1, name='one'), tf.stack([1, 2]),
                tf.stack([1, 2])]

    with tf.Graph().as_default() as graph:
        _, made = built(model)
        for tower in made:
            assert len({each.ref() for each in tower}) == 5
        assert graph.get_tensor_by_name('one_1:0') is made[1][2]


def small(value, dtype=None):
    return lambda: tf.constant(value, dtype, name='Shape')


def sliced(begin, end):
    return lambda: tf.shape(tf.zeros([4, 3]))[begin:end]


@pytest.mark.parametrize('one, other', [
    (small(1), small(2)), (small(1), small(1, tf.int64)), (small([1]), small(1)),
    (sliced(0, 1), sliced(1, 2)), (sliced(0, 1), sliced(0, 2)),
    (lambda: tf.stack([1, 2], name='shape'), lambda: tf.stack([2, 1], name='shape'))])
def test_operations_that_differ_are_not_taken_for_each_other(one, other):
    with tf.Graph().as_default(), tf.Session() as session:
        _, pairs = built(lambda core: (one(), other()))
        values = [[(tensor.dtype, tensor.eval(session=session).tolist()) for tensor in pair]
                  for pair in pairs]
    assert values[0] == values[1]
    assert values[1][0] != values[1][1]


def test_towers_within_towers_are_built_and_leave_the_graph_as_it_was():
    def outer(core):
        inner = Towers(2).build(lambda each: tf.reshape(tf.fill([2, 3], 1. * each), [3, 2]))
        return tf.reduce_sum(tf.add_n(inner)) + core

    with tf.Graph().as_default(), tf.Session() as session:
        _, sums = built(outer)
        assert session.run(sums) == [6., 7.]
        assert small(7)().op is not small(7)().op
