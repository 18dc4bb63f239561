"""The variables of the native engine: views of its memory that behave as variables do."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.native_run import Run, plan_of, require_copies

from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.hosts.native import make_engine
from estimator_tpu_embedding.native import library
from estimator_tpu_embedding.ops.checks import message_to_problem

pytestmark = pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_a_variable_is_the_memory_of_the_engine_until_it_is_written(graph):
    run = Run(plan_of())
    write = tf.scatter_update(run.parts[1], [2], [[5., 5]])
    assert run.session.run(run.detached) == -1
    run()
    assert run.session.run(run.detached) == -1
    run.session.run(write)
    assert run.session.run(run.detached) == 1
    run()
    assert run.session.run(run.detached) == -1


READS = {
    'the variable': lambda part: part, 'value': lambda part: part.value(),
    'read_value': lambda part: part.read_value(), 'as a tensor': tf.convert_to_tensor,
    'gather': lambda part: tf.gather(part, [0, 1, 2]), 'slice': lambda part: part[:3],
    'embedding_lookup': lambda part: tf.nn.embedding_lookup(part, [0, 1, 2]),
    'gather_nd': lambda part: tf.gather_nd(part, [[0], [1], [2]])}


@pytest.mark.parametrize('read', READS)
def test_what_was_read_does_not_change_in_later_steps(graph, read):
    run = Run(plan_of())
    value = READS[read](run.parts[0])
    for step in range(3):
        found = run.session.run(value)
        kept = found.copy()
        assert kept[0].tolist() == [-step, -step] and not kept[1:].any()
        run()
        np.testing.assert_array_equal(found, kept)


@pytest.mark.parametrize('device', [None, '/cpu:0'])
def test_what_another_variable_or_a_queue_takes_does_not_change_in_later_steps(graph, device):
    with tf.variable_scope('', caching_device=device):
        run = Run(plan_of())
    require_copies(run.session, run.parts[0], run)


WRITES = {
    'assign': lambda part: part.assign([[5., 5], [6, 6], [7, 7]]),
    'assign_add': lambda part: part.assign_add([[5., 5], [6, 6], [7, 7]]),
    'load': None,
    'scatter_update': lambda part: tf.scatter_update(part, [0, 1, 2], [[5., 5], [6, 6], [7, 7]]),
    'slice': lambda part: tf.assign(part[0:1], [[5., 5]]),
    'scatter_nd_add': lambda part: tf.scatter_nd_add(part, [[0]], [[5., 5]])}


@pytest.mark.parametrize('write', WRITES)
def test_what_was_written_between_steps_is_what_the_next_step_sees(graph, write):
    run = Run(plan_of())
    operation = WRITES[write] and WRITES[write](run.parts[0])
    for _ in range(2):
        if operation is None:
            run.parts[0].load([[5., 5], [6, 6], [7, 7]], run.session)
        else:
            run.session.run(operation)
        expected = run.values()
        assert expected[0][0][0] > 3
        assert run()[0][0].tolist() == expected[0][0]
        expected[0][0] = [number - 1 for number in expected[0][0]]
        expected[1][0] = [number - 1 for number in expected[1][0]]
        assert run.values() == expected


def test_a_variable_that_is_written_during_a_step_is_an_error(graph):
    run = Run(plan_of(), wait_for=lambda run: [
        run.parts[1].assign(tf.ones([3, 2]), read_value=False)])
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        run()
    problem = message_to_problem(str(raised.value))
    assert (problem.code, problem.where) == ('E476', 'table "t"')


@pytest.mark.parametrize('creator', [
    lambda made: lambda next_creator, **kwargs: made,
    lambda made: lambda next_creator, **kwargs: [next_creator(**kwargs) for _ in range(2)][0]])
def test_a_creator_of_the_user_must_make_each_variable_once(graph, creator):
    made = tf.Variable(tf.zeros([3, 2]), use_resource=True)
    with tf.variable_creator_scope(creator(made)), pytest.raises(
            ConfigError, match='E477 variable ".*" of a table: .* next_creator once'):
        make_engine(plan_of(), {'t': 't'}, None)


def test_gradients_pass_through_reads(graph):
    run = Run(plan_of())
    part = run.parts[0]
    gradient, = tf.gradients(
        tf.reduce_sum(2 * part.read_value()) + tf.reduce_sum(3 * tf.gather(part, [[1], [1]])),
        [part])
    assert run.session.run(tf.convert_to_tensor(gradient)).tolist() == [[2, 2], [8, 8], [2, 2]]


def test_sessions_and_graphs_do_not_see_each_other(graph):
    run = Run(plan_of())
    with tf.Graph().as_default():
        other = Run(plan_of())
        second = other.new_session()
        for _ in range(2):
            other()
        other(second)
        assert [values[0][0][0] for values in (
            other.values(), other.values(second))] == [-2, -1]
    run()
    assert run.values()[0][0][0] == -1
