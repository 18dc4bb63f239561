import contextvars
import logging
import random

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.estimator.tf_tpu import CrossShardOptimizer, cross_replica_sum
from estimator_tpu_embedding.hosts.placement import Placement
from estimator_tpu_embedding.runner.towers import Towers


def build(count, function):
    """Builds towers in a new graph: (graph, results, towers)."""
    with tf.Graph().as_default() as graph:
        towers = Towers(count)
        return graph, towers.build(function), towers


def evaluate(graph, values):
    with tf.Session(graph=graph) as session:
        with graph.as_default():
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(values)


@pytest.mark.parametrize('count', [1, 2, 4])
def test_every_core_gets_the_sum_of_all(count):
    graph, sums, towers = build(count, lambda core: cross_replica_sum(core + 1.))
    assert evaluate(graph, sums) == [count * (count + 1) / 2] * count
    assert towers.num_sums == 1


def test_groups_sum_among_themselves():
    graph, sums, _ = build(4, lambda core: cross_replica_sum(10.**core, [[0, 2], [3, 1]]))
    assert evaluate(graph, sums) == [101., 1010., 101., 1010.]


@pytest.mark.parametrize('placement, total', [
    (None, 1.), (Placement(Topology(num_hosts=2, cores_per_host=2)), 0.)])
def test_hosts_of_a_cluster_add_their_own_values_first(placement, total):
    values = [1., 1e8, -1e8, 1.]  # In float32 1 + 1e8 is 1e8.
    with tf.Graph().as_default() as graph:
        sums = Towers(4, placement).build(lambda core: cross_replica_sum(
            tf.raw_ops.Empty(shape=[], dtype=tf.float32, init=True) + values[core]))
    assert evaluate(graph, sums) == [total] * 4


def test_what_the_caller_set_in_its_context_holds_in_every_tower():
    width = contextvars.ContextVar('width', default=1)
    token = width.set(8)
    try:
        widths = build(2, lambda core: width.get())[1]
    finally:
        width.reset(token)
    assert widths == [8, 8]


def test_variables_exist_once_under_the_names_of_one_core():
    def model(core):
        with tf.variable_scope('scope'):
            first = tf.get_variable('v', [2])
        second = tf.Variable(1., name='v')
        third = tf.Variable(2., name='v')  # the same request again is another variable
        return [first, second, third], [v.op.name for v in tf.global_variables()]

    graph, results, _ = build(3, model)
    assert len({tuple(id(v) for v in variables) for variables, _ in results}) == 1
    assert {tuple(names) for _, names in results} == {('scope/v', 'v', 'v_1')}
    assert len(graph.get_collection('variables')) == 3


def test_layers_without_a_name_are_called_as_on_one_core():
    def model(core):
        net = tf.layers.dense(tf.keras.layers.Dense(4)(tf.ones([2, 3])), 3)
        net = tf.layers.batch_normalization(net, training=True)
        CrossShardOptimizer(tf.train.AdamOptimizer(.01)).minimize(tf.reduce_sum(net))
        return [each.op.name for each in tf.global_variables()]

    (alone,), *others = build(1, model)[1], *build(3, model)[1]
    assert others == [alone] * 3
    assert {'dense/kernel', 'dense/bias_1', 'batch_normalization/moving_mean'} <= {*alone}


def test_each_core_sees_only_its_own_collections_and_those_of_core_0_stay():
    def model(core):
        tf.add_to_collection('mine', core)
        cross_replica_sum(1.)
        tf.add_to_collection('mine', -core)
        return tf.get_collection('mine')

    with tf.Graph().as_default() as graph:
        tf.add_to_collection('mine', 'outer')
        assert Towers(3).build(model) == [['outer', core, -core] for core in range(3)]
        assert graph.get_collection('mine') == ['outer', 0, 0]


def test_tables_that_any_core_made_are_initialised():
    def model(core):
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [core]), -1)
        return table.lookup(tf.constant([1]))

    graph, values, _ = build(2, model)
    assert [value.tolist() for value in evaluate(graph, values)] == [[0], [1]]


def test_every_core_draws_the_same_random_numbers_and_python_goes_on_from_core_0():
    random.seed(5)
    np.random.seed(6)

    def model(core):
        drawn = random.random(), np.random.rand()
        cross_replica_sum(1.)
        return *drawn, random.random()

    _, results, _ = build(3, model)
    assert len(set(results)) == 1
    random.seed(5)
    assert [random.random(), random.random()] == [results[0][0], results[0][2]]


def test_the_error_of_a_core_is_raised_with_its_own_traceback():
    def model(core):
        cross_replica_sum(1.)
        if core == 1:
            raise KeyError('of core 1')
        return cross_replica_sum(2.)

    with pytest.raises(KeyError, match='of core 1') as caught:
        build(3, model)
    assert caught.traceback[-1].name == 'model'


@pytest.mark.parametrize('more', [0, 1])
def test_a_sum_that_only_some_cores_make_is_an_error_not_a_hang(more):
    def model(core):
        cross_replica_sum(1.)
        if core == more:
            cross_replica_sum(2.)

    with pytest.raises(ConfigError, match=rf'E451 model_fn.*got sum 2 on cores \[{more}\] only'):
        build(2, model)


@pytest.mark.parametrize('inside', [
    lambda: tf.cond(tf.constant(True), lambda: cross_replica_sum(1.), lambda: 0.),
    lambda: tf.while_loop(lambda i: i < 3., lambda i: cross_replica_sum(i + 1.), [0.]),
    lambda: tf.compat.v2.function(lambda: cross_replica_sum(1.))()])
def test_a_sum_inside_control_flow_is_an_error_that_says_what_to_do(inside):
    with pytest.raises(ConfigError, match='E456 model_fn: .*outside of tf.cond.*multiplied by 0'):
        build(2, lambda core: inside())


def test_a_variable_that_core_0_did_not_make_is_an_error():
    def model(core):
        return tf.get_variable(f'v_{core}', [1])

    with pytest.raises(ConfigError, match='E452 model_fn.*variable "v_1"'):
        build(2, model)


def final_values(count, model, steps=4):
    """The values of all variables after some runs of what tower 0 gives."""
    with tf.Graph().as_default(), tf.Session() as session:
        operation = Towers(count).build(lambda core: model())[0]
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(operation)
        return {each.op.name: session.run(each) for each in tf.global_variables()}


def moving_averages():
    """Batch normalization, whose update operations the gradients of each tower wait for."""
    net = tf.layers.batch_normalization(tf.ones([2, 1]), momentum=.5, training=True)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return CrossShardOptimizer(tf.train.GradientDescentOptimizer(.1)).minimize(
            tf.reduce_sum(net))


def counted_forward():
    """A counter that the forward pass waits for."""
    count = tf.get_variable('count', [], initializer=tf.zeros_initializer(), trainable=False)
    weight = tf.get_variable('weight', [], initializer=tf.zeros_initializer())
    with tf.control_dependencies([tf.assign_add(count, 1.)]):
        rate = count.read_value()
    return CrossShardOptimizer(tf.train.GradientDescentOptimizer(1.)).minimize(weight * rate)


@pytest.mark.parametrize('count', [1, 2, 4])
def test_a_variable_changes_once_per_step_and_what_waits_for_it_sees_that(count):
    found = final_values(count, moving_averages)
    # 1 - .5**4 towards 1
    np.testing.assert_allclose(found['batch_normalization/moving_mean'], [.9375])
    found = final_values(count, counted_forward)
    assert found['count'] == 4
    assert found['weight'] == -(1 + 2 + 3 + 4)


@pytest.mark.parametrize('within', ['cond', 'while', 'function'])
def test_a_change_within_control_flow_is_refused_on_several_cores_alone(within):
    def model():
        count = tf.get_variable('count', [], initializer=tf.zeros_initializer())
        if within == 'cond':
            return tf.cond(tf.random.uniform([]) < 2, lambda: tf.assign_add(count, 1.), lambda: 0.)
        if within == 'while':
            return tf.while_loop(lambda n: n < 1, lambda n: n + tf.cast(
                tf.assign_add(count, 1.), tf.int32), [0])
        return tf.compat.v2.function(lambda: count.assign_add(1.))()

    assert final_values(1, model)['count'] == 4
    with pytest.raises(ConfigError, match='E459 model_fn: on several cores variables must be'):
        final_values(2, model)


def test_the_variable_scope_of_the_caller_holds_and_is_left_as_it_was():
    with tf.Graph().as_default():
        for count in (1, 2):
            with tf.variable_scope(f's{count}') as scope:
                names = Towers(count).build(lambda core: tf.get_variable('w', []).op.name)
                assert tf.get_variable_scope() is scope
            assert names == [f's{count}/w'] * count


def test_what_every_core_logs_is_told_once_and_what_one_logs_stays(caplog):
    def model(core):
        tf.logging.info('layer %s', 'a')
        logging.getLogger('of.user').warning('layer a')
        tf.logging.info('core %d', core)

    with caplog.at_level(logging.INFO, 'tensorflow'), tf.Graph().as_default():
        Towers(3).build(model)
        tf.logging.info('layer a')
    assert caplog.messages == ['layer a', 'layer a', 'core 0', 'core 1', 'core 2', 'layer a']
