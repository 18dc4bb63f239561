"""Where the operations of a graph are put in a cluster, and what is refused."""

import pytest
import tensorflow.compat.v1 as tf
from harness import graphs
from harness.tasks import Tasks

from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.hosts import native, placed_graph
from estimator_tpu_embedding.hosts.placement import Placement, on
from estimator_tpu_embedding.native import library

PLACEMENT = Placement(Topology(num_hosts=2), is_remote=True)
CLIENT, FIRST, SECOND = PLACEMENT.client, PLACEMENT.host(0), PLACEMENT.host(1)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph, on(CLIENT):
        yield graph


def run(result):
    tasks = Tasks(2)
    with tf.Session(tasks.target, config=tasks.config(tf.ConfigProto())) as session:
        session.run(tf.global_variables_initializer())
        return session.run(result)


def plus_one(value):
    return tf.numpy_function(lambda x: x + 1, [value], tf.float32)


@pytest.mark.parametrize('says, becomes', [
    ('', SECOND), ('/job:worker', SECOND), ('/cpu:0', SECOND), ('/gpu:0', SECOND),
    (FIRST, FIRST), (CLIENT, CLIENT)])
def test_a_device_that_no_job_has_means_nothing(graph, says, becomes):
    with on(SECOND), tf.device(None if not says else says):
        value = tf.constant(1.)
    placed_graph.keep_on_host([value.op], SECOND, PLACEMENT)
    assert value.device == becomes and run(value) == 1


def test_python_of_a_model_is_executed_by_the_client(graph):
    with on(SECOND):
        value = tf.constant(1.)
        direct = plus_one(value)
        mapped = tf.map_fn(plus_one, value[tf.newaxis])
        chosen = tf.cond(tf.greater(value, 0), lambda: plus_one(value), lambda: value)
    placed_graph.put_python_on_client(graph, PLACEMENT)
    assert direct.device == CLIENT and value.device == SECOND
    assert [each.tolist() for each in run([direct, mapped, chosen])] == [2, [2], 2]


def test_python_that_uses_a_variable_of_a_host_is_refused(graph):
    with on(SECOND):
        value = tf.Variable(1., use_resource=True)
        tf.cond(tf.greater(value, 0), lambda: plus_one(value.read_value()), lambda: 1.,
                name='chosen')
    with pytest.raises(ConfigError, match='(?s)^E732 model_fn: .*PyFunc, in a function of If '
                                          '"chosen".*host_call') as raised:
        placed_graph.put_python_on_client(graph, PLACEMENT)
    assert len(raised.value.problems) == 1


def engine_on(host):
    """The number of an engine."""
    with on(PLACEMENT.host(host)):
        return native.make_engine(graphs.small_plan(), {'t': f'table_{host}'}, None).handle


def close_engine(number):
    return library.load().ete_close(engine=number)


@graphs.needs_native
def test_an_operation_of_an_engine_on_another_host_is_refused(graph):
    engines = [engine_on(host) for host in range(2)]
    for device, number in zip((FIRST, SECOND), engines):
        with on(device):
            close_engine(number)
    placed_graph.require_engines(graph, PLACEMENT)
    with on(FIRST):
        close_engine(tf.identity(engines[1]))
    with pytest.raises(ConfigError, match=f'^E731 operation "EteClose_2" .* its engine, {SECOND}; '
                                          f'got {FIRST}'):
        placed_graph.require_engines(graph, PLACEMENT)
