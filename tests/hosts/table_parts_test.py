import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.hosts import table_parts
from estimator_tpu_embedding.hosts.placement import Placement
from estimator_tpu_embedding.hosts.table_parts import create_tables


def plan_of(rows, hosts, mode='training', initializer=None, strategy='div'):
    return resolve([TableSpec(name='t', vocabulary_size=rows, dimension=2,
                              initializer=initializer)],
                   [FeatureSpec(name='f', table='t')], Topology(num_hosts=hosts),
                   batch_size=hosts, optimizer=Adagrad(learning_rate=.1), mode=mode,
                   strategy=strategy)


def variables_of(*args, **kwargs):
    with tf.Graph().as_default():
        create_tables(plan_of(*args, **kwargs), {'t': 'scope/weights'})
        assert tf.trainable_variables() == []  # By the optimizer of the model.
        return {v.op.name: tuple(v.shape.as_list()) for v in tf.global_variables()}


def test_a_table_of_7_rows_on_3_hosts_has_3_2_and_2_rows_and_so_have_its_slots():
    shapes = [(3, 2), (2, 2), (2, 2)]
    assert variables_of(7, 3) == {
        f'scope/weights{slot}/part_{host}': shape
        for slot in ('', '/Adagrad') for host, shape in enumerate(shapes)}


def test_the_default_initializer_is_a_normal_of_deviation_1_over_root_of_the_width():
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        table = create_tables(plan_of(20000, 2), {'t': 't'})['t']
        session.run(tf.global_variables_initializer())
        values = np.concatenate(session.run(table.rows))
    # A normal cut at two deviations has .8796 of the deviation of a whole one.
    assert values.std() == pytest.approx(.8796 / 2**.5, rel=.02)
    assert abs(values).max() <= 2 / 2**.5


@pytest.mark.parametrize('strategy, parts', [
    ('div', [[0, 1], [2, 3], [4]]), ('mod', [[0, 3], [1, 4], [2]])])
def test_a_constant_of_the_whole_table_gives_every_id_its_own_row(strategy, parts):
    matrix = np.arange(10.).reshape(5, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        table = create_tables(plan_of(5, 3, initializer=tf.constant_initializer(matrix),
                                      strategy=strategy), {'t': 't'})['t']
        session.run(tf.global_variables_initializer())
        for ids, rows in zip(parts, session.run(table.rows)):
            np.testing.assert_array_equal(rows, matrix[ids])


def test_initializers_learn_where_their_part_begins_as_in_the_original():
    def initializer(shape, dtype=None, partition_info=None):
        start = partition_info.var_offset[0]
        return tf.cast(tf.reshape(tf.range(shape[0] * 2), shape) + start * 2, dtype)

    with tf.Graph().as_default(), tf.Session() as session:
        table = create_tables(plan_of(5, 2, initializer=initializer), {'t': 't'})['t']
        session.run(tf.global_variables_initializer())
        assert np.concatenate(session.run(table.rows)).tolist() == [
            [0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


def initial_values(rows, hosts, **kwargs):
    """The rows of all hosts, and the types of the operations that give them their values."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = create_tables(plan_of(rows, hosts, **kwargs), {'t': 't'})['t']
        session.run(tf.global_variables_initializer())
        return (np.concatenate(session.run([*table.rows, *table.slots['Adagrad']])),
                [part.initial_value.op.type for part in (*table.rows, *table.slots['Adagrad'])])


class Seventh:
    """An initializer that TensorFlow does not know."""

    def __call__(self, shape, dtype=None, partition_info=None):
        return tf.constant(1 / 7, dtype, shape) + partition_info.var_offset[0]


@pytest.mark.parametrize('strategy', ['div', 'mod'])
@pytest.mark.parametrize('hosts', [1, 2, 3])
@pytest.mark.parametrize('initializer', [
    tf.constant_initializer(-.1), tf.constant_initializer(3), tf.constant_initializer([.1]),
    tf.zeros_initializer(), tf.ones_initializer(),
    tf.compat.v2.constant_initializer(.1), lambda shape, dtype: tf.fill(shape, .1),
    tf.truncated_normal_initializer(seed=5), tf.glorot_uniform_initializer(seed=5), Seventh(),
    tf.constant_initializer(np.arange(14.).reshape(7, 2) / 10)])
def test_large_parts_begin_with_the_values_of_small_ones(monkeypatch, initializer, hosts,
                                                         strategy):
    kwargs = {'initializer': initializer, 'strategy': strategy}
    small, _ = initial_values(7, hosts, **kwargs)
    monkeypatch.setattr(table_parts, 'LARGE_BYTES', 0)
    monkeypatch.setattr(table_parts, 'SLICE_BYTES', 16)  # Two rows of two numbers.
    large, kinds = initial_values(7, hosts, **kwargs)
    np.testing.assert_array_equal(large, small)
    assert 'Const' not in kinds


def test_the_python_of_a_large_constant_is_on_the_client_and_the_parts_are_on_their_hosts(
        monkeypatch):
    monkeypatch.setattr(table_parts, 'LARGE_BYTES', 0)
    plan = plan_of(7, 2, initializer=tf.constant_initializer(np.ones([7, 2])))
    placement = Placement(plan.topology, is_remote=True)
    with tf.Graph().as_default() as graph:
        made = create_tables(plan, {'t': 't'}, placement=placement)
    assert {operation.device for operation in graph.get_operations()
            if operation.type == 'PyFunc'} == {placement.client}
    assert [part.device for part in made['t'].rows] == [placement.host(0), placement.host(1)]
