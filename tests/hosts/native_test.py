"""The variables of the native engine: views of its memory that behave as variables do."""

import gc
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import memory
from harness.graphs import id_batch

from estimator_tpu_embedding.checkpoint.pieces import SaverBuilder
from estimator_tpu_embedding.core.optimizers import Adagrad, StochasticGradientDescent
from estimator_tpu_embedding.core.plan import resolve
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology
from estimator_tpu_embedding.hosts.native import NativeBackend
from estimator_tpu_embedding.native import library
from estimator_tpu_embedding.native.variables import in_place
from estimator_tpu_embedding.ops.checks import message_to_problem

pytestmark = pytest.mark.skipif(bool(library.why_not()), reason=library.why_not())
SGD = StochasticGradientDescent(learning_rate=1.)


def plan_of(rows=6, width=2, hosts=2, optimizer=SGD, batch_size=2):
    return resolve(
        [TableSpec(name='t', vocabulary_size=rows, dimension=width, combiner='sum',
                   initializer=tf.zeros_initializer())],
        [FeatureSpec(name='f', table='t')], Topology(num_hosts=hosts), optimizer=optimizer,
        batch_size=batch_size * hosts, strategy='mod')


class Run:
    """An engine with one table `t` in the default graph, and a session of its own.

    A step subtracts a gradient, 1 by default, from the rows of the ids of its samples.
    """

    def __init__(self, plan, ids=None, wait_for=lambda run: []):
        cores = range(plan.topology.num_cores)
        samples = plan.batch_size_per_core
        ids = [[core] + [[]] * (samples - 1) for core in cores] if ids is None else ids
        ids = [[one if isinstance(one, list) else [one] for one in of_core] for of_core in ids]
        self.backend = NativeBackend(plan, {'t': 't'}, None, tf.train.create_global_step())
        self.table = self.backend.tables['t']
        self.parts = self.table.rows
        self.feed = tf.group(*[self.backend.enqueue({'f': id_batch(of_core)}, host=0, core=core)
                               for core, of_core in enumerate(ids)])
        looked_up = [self.backend.lookup(core=core) for core in cores]
        self.activations = [activations['f'] for activations, _ in looked_up]
        self.gradient = tf.placeholder_with_default(1., [])
        with tf.control_dependencies(self.activations), tf.control_dependencies(wait_for(self)):
            gradients = [{'f': tf.fill(plan.output_shape(plan.features[0]), self.gradient)}
                         for _ in cores]
        self.update = self.backend.update([receipt for _, receipt in looked_up], gradients)
        self.load = self.backend.load()
        engine, = self.backend.open().outputs
        self.detached = library.load().ete_detached(
            engine=engine, values=[in_place(part.handle) for part in self.parts])
        self.session = self.new_session()

    def new_session(self):
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        session.run([self.load, self.backend.open()])
        return session

    def __call__(self, session=None):
        session = session or self.session
        session.run(self.feed)
        return session.run([self.activations, self.update])[0]

    def values(self, session=None):
        return [value.tolist() for value in (session or self.session).run(list(self.parts))]


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


def require_copies(session, part, step):
    """Neither another variable nor a queue that takes a part shares its memory."""
    copy = tf.get_variable('copy', part.shape, initializer=tf.ones_initializer())
    queue = tf.queue.FIFOQueue(1, [tf.float32])
    session.run(copy.initializer)
    step()
    before, _, _ = session.run([part, copy.assign(part).op, queue.enqueue([part])])
    step()
    np.testing.assert_array_equal(session.run(copy), before)
    np.testing.assert_array_equal(session.run(queue.dequeue()), before)
    assert np.abs(session.run(part) - before).sum() > 0


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


def test_a_part_can_be_saved_by_itself_and_by_its_own_name(graph, tmp_path):
    run = Run(plan_of())
    saver = tf.train.Saver({'mine': run.parts[1]})
    run()
    path = saver.save(run.session, str(tmp_path / 'm'))
    assert tf.train.load_checkpoint(path).get_tensor('mine').tolist() == [[-1, -1], [0, 0], [0, 0]]
    run()
    saver.restore(run.session, path)
    assert run.values() == [[[-2, -2], [0, 0], [0, 0]], [[-1, -1], [0, 0], [0, 0]]]


def test_the_graph_of_a_checkpoint_can_be_imported(graph, tmp_path):
    run = Run(plan_of())
    run()
    prefix = tf.train.Saver().save(run.session, str(tmp_path / 'model.ckpt'))
    expected = run.session.run(list(run.parts))
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(f'{prefix}.meta').restore(session, prefix)
        parts = tf.global_variables('t/')
        found = session.run(parts)
        np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))
        assert np.abs(found).sum() > 0
        require_copies(session, parts[0], lambda: [
            session.run(name) for name in (run.feed.name, run.update.name)])


def test_tables_are_warm_started(graph, tmp_path):
    run = Run(plan_of())
    run()
    path = tf.train.Saver().save(run.session, str(tmp_path / 'm'))
    with tf.Graph().as_default():
        other = Run(plan_of())
        tf.train.init_from_checkpoint(path, {'t': list(other.parts)})
        other.session.run(tf.global_variables_initializer())
        assert other()[0][0].tolist() == [-1, -1]


def test_a_checkpoint_that_is_written_beside_steps_holds_no_torn_row(graph, tmp_path):
    rows = 8000
    run = Run(plan_of(rows, 128, hosts=1, batch_size=rows), [list(range(rows))])
    savers = [tf.train.Saver(max_to_keep=1, builder=builder) for builder in (
        None, SaverBuilder())]
    ended = threading.Event()
    thread = threading.Thread(target=lambda: [run() for _ in iter(ended.is_set, True)])
    thread.start()
    try:
        seen = set()
        for number in range(10):
            path = savers[number % 2].save(run.session, str(tmp_path / 'm'), number)
            values = np.unique(tf.train.load_checkpoint(path).get_tensor('t'))
            assert len(values) == 1
            seen.update(values.tolist())
            assert len(np.unique(run.session.run(run.parts[0]))) == 1
    finally:
        ended.set()
        thread.join(60)
    assert len(seen) > 1


def test_a_variable_that_is_written_during_a_step_is_an_error(graph):
    run = Run(plan_of(), wait_for=lambda run: [
        run.parts[1].assign(tf.ones([3, 2]), read_value=False)])
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        run()
    problem = message_to_problem(str(raised.value))
    assert (problem.code, problem.where) == ('E476', 'table "t"')


def test_gradients_pass_through_reads(graph):
    run = Run(plan_of())
    part = run.parts[0]
    gradient, = tf.gradients(
        tf.reduce_sum(2 * part.read_value()) + tf.reduce_sum(3 * tf.gather(part, [[1], [1]])),
        [part])
    assert run.session.run(tf.convert_to_tensor(gradient)).tolist() == [[2, 2], [8, 8], [2, 2]]


@pytest.mark.parametrize('switch', [tf.disable_control_flow_v2, tf.enable_control_flow_v2])
def test_variables_are_read_inside_of_control_flow(graph, switch):
    was_on = tf.control_flow_v2_enabled()
    switch()
    try:
        run = Run(plan_of())
        part = run.parts[0]
        found = tf.cond(tf.equal(run.gradient, 1.), lambda: tf.gather(part, [0]) + part[0],
                        lambda: tf.zeros([1, 2]))
        run()
        assert run.session.run(found).tolist() == [[-2, -2]]
    finally:
        (tf.enable_control_flow_v2 if was_on else tf.disable_control_flow_v2)()


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


def test_a_closed_session_gives_the_memory_back(graph):
    """What TensorFlow itself keeps of a session is small; of five tables nothing is left."""
    rows, width = 40000, 128  # 20 MB

    def train():
        with tf.Graph().as_default():
            run = Run(plan_of(rows, width, hosts=1))
            run()
            run.session.close()
            del run
        gc.collect()

    train()
    before = memory.rss()
    for _ in range(5):
        train()
    assert memory.rss() - before < 4 * rows * width


def test_what_was_assigned_is_taken_over_part_by_part(graph):
    rows, width, hosts = 80000, 128, 8  # 40 MB in parts of 5 MB
    run = Run(plan_of(rows, width, hosts))
    run()
    for part in run.parts:
        part.load(np.ones([rows // hosts, width], np.float32), run.session)
    gc.collect()
    assert memory.highest_rss_of(lambda: run.session.run(run.load)) < 4 * rows * width / 2
    assert run()[0][0].tolist() == [1] * width
