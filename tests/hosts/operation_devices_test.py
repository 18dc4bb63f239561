"""Graphs over the tasks of a cluster: where operations are put, what is refused, what crosses."""

import pytest
import tensorflow.compat.v1 as tf
from harness import crossings
from harness.tasks import Tasks

from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.hosts import operation_devices, transfers
from estimator_tpu_embedding.hosts.placement import Placement, on

pytestmark = pytest.mark.no_rerun
PLACEMENT = Placement(Topology(num_hosts=2), is_remote=True)
CLIENT, FIRST, SECOND = PLACEMENT.client, PLACEMENT.host(0), PLACEMENT.host(1)
THERE, BACK = ('tpu_worker 0', 'tpu_worker 1'), ('tpu_worker 1', 'tpu_worker 0')


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph, on(CLIENT):
        yield graph


def value_of(result):
    tasks = Tasks(2)
    with tf.Session(tasks.target, config=tasks.config(tf.ConfigProto())) as session:
        return session.run(result)


def plus_one(value):
    return tf.numpy_function(lambda x: x + 1, [value], tf.float32)


@pytest.mark.parametrize('says, becomes', [
    ('', SECOND), ('/job:worker', SECOND), ('/cpu:0', SECOND), ('/gpu:0', SECOND),
    (FIRST, FIRST), (CLIENT, CLIENT)])
def test_a_device_that_no_job_has_means_nothing(graph, says, becomes):
    with on(SECOND), tf.device(None if not says else says):
        value = tf.constant(1.)
    operation_devices.keep_on_host([value.op], SECOND, PLACEMENT)
    assert value.device == becomes and value_of(value) == 1


def test_python_of_a_model_is_executed_by_the_client(graph):
    with on(SECOND):
        value = tf.constant(1.)
        direct = plus_one(value)
        mapped = tf.map_fn(plus_one, value[tf.newaxis])
        chosen = tf.cond(tf.greater(value, 0), lambda: plus_one(value), lambda: value)
    operation_devices.put_python_on_client(graph, PLACEMENT)
    assert direct.device == CLIENT and value.device == SECOND
    assert [each.tolist() for each in value_of([direct, mapped, chosen])] == [2, [2], 2]


def test_python_that_uses_a_variable_of_a_host_is_refused(graph):
    with on(SECOND):
        value = tf.Variable(1., use_resource=True)
        tf.cond(tf.greater(value, 0), lambda: plus_one(value.read_value()), lambda: 1.,
                name='chosen')
    with pytest.raises(ConfigError, match='(?s)^E732 model_fn: .*PyFunc, in a function of If '
                                          '"chosen".*host_call') as raised:
        operation_devices.put_python_on_client(graph, PLACEMENT)
    assert len(raised.value.problems) == 1


def number(value, device, **kwargs):
    """A number of a device that TensorFlow does not know before it runs."""
    with on(device):
        return tf.identity(tf.raw_ops.Empty(shape=[], dtype=tf.float32, init=True) + value,
                           **kwargs)


def variable(value, device=FIRST):
    with on(device):
        return tf.Variable(float(value), use_resource=True)


def run(results, *, others=(), times=1):
    """(the values of the last run of results once all is packed, the messages of that run)."""
    transfers.pack_transfers(tf.get_default_graph(), [results, *others], CLIENT)
    tasks = Tasks(2)
    with tf.Session(tasks.target, config=tasks.config(tf.ConfigProto())) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(times):
            values, metadata = crossings.traced(session, results)
    return values, crossings.messages(metadata)


def test_what_is_ready_together_crosses_as_one():
    ones = [number(each, FIRST) for each in range(5)]
    with on(SECOND):
        doubled = [2 * each for each in ones]
    with on(FIRST):
        total = tf.add_n(doubled)
    values, messages = run([total])
    assert values == [20] and (messages[THERE], messages[BACK]) == (1, 1)


def test_what_waits_for_an_answer_crosses_later():
    value = number(1, FIRST)
    late = []
    for _ in range(3):
        with on(SECOND):
            pair = [value + 1, value + 2]
        with on(FIRST):
            value = tf.identity(pair[0] * pair[1])
            late.append(value + 10)
    with on(SECOND):
        total = tf.add_n([*late, value])
    # 1 gives 2 * 3 = 6, which gives 7 * 8 = 56, which gives 57 * 58 = 3306.
    values, messages = run([total])
    assert values == [6 + 56 + 3306 + 30 + 3306]
    assert (messages[THERE], messages[BACK]) == (4, 3)


def test_variables_are_read_once_for_each_task_and_before_they_change():
    variables = [variable(each) for each in (1, 2, 3)]
    with on(SECOND):  # As two towers, each of which reads for itself.
        sums = [tf.add_n([each.read_value() for each in variables]) for _ in range(2)]
    with on(FIRST):
        writes = [each.assign_add(10., read_value=False) for each in variables]
    values, messages = run([*sums, *writes], times=20)
    # Before step n, counted from 0, each variable has had 10 added n times.
    assert values[:2] == [6 + 3 * 190] * 2
    assert messages[THERE] == 1


@pytest.mark.parametrize('change', [
    lambda value: value.assign_add(1., read_value=False),
    lambda value: tf.cond(tf.ones([]) > 0, lambda: value.assign_add(1.), lambda: tf.zeros([])),
], ids=['always', 'in a branch'])
def test_a_change_that_only_a_later_read_needs_is_made_and_seen(change):
    value, other = variable(1), variable(5)
    with on(FIRST):
        changed = change(value)
    with on(SECOND), tf.control_dependencies([changed]):
        after = tf.identity(value.read_value()) + other
    values, _ = run([after], times=3)
    assert values == [1 + 3 + 5]


def test_a_branch_that_changes_variables_waits_for_their_reads():
    value, other = variable(1), variable(5)
    with on(SECOND):
        before = value + other
    with on(FIRST):
        changed = tf.cond(number(1, FIRST) > 0, lambda: value.assign_add(1.),
                          lambda: tf.zeros([]))
    branch, graph = changed.op, tf.get_default_graph()
    while branch.type not in ('If', 'StatelessIf'):
        branch = branch.inputs[0].op
    transfers.pack_transfers(graph, [[before, changed]], CLIENT)
    assert [each.device for each in branch.control_inputs] == [FIRST]


def test_loops_and_branches_over_tasks_still_work():
    begin, factor = number(1, FIRST), number(2, FIRST)
    with on(SECOND):
        _, looped = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x * factor),
                                  [tf.constant(0), begin])
        chosen = tf.cond(looped > 7, lambda: begin + factor, lambda: begin - factor)
        total = looped + chosen + begin
    assert run([total])[0] == [8 + 3 + 1]


def test_large_tensors_cross_by_themselves(monkeypatch):
    monkeypatch.setattr(transfers, '_MOST_BYTES', 8)  # two numbers
    numbers = [number(each, FIRST) for each in range(5)]
    with on(SECOND):
        total = tf.add_n(numbers)
    values, messages = run([total])
    assert values == [10] and messages[THERE] == 3


@pytest.mark.parametrize('says', ['', CLIENT, '/job:worker/task:7'])
def test_what_uses_a_variable_is_where_the_variable_is(says):
    value = variable(3)
    with tf.device(None), tf.device(says):
        read = value.read_value().op.inputs[0].op
    assert read.type == 'ReadVariableOp'
    assert operation_devices.Devices(CLIENT)[read] == FIRST
