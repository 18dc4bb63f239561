"""The variables of the native engine: views of its memory that behave, and are saved, as others."""

import concurrent.futures
import contextlib
import itertools
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs
from harness.native_run import Run, plan_of, require_copies
from harness.waiting import until

from estimator_tpu_embedding.checkpoint.saver_builder import SaverBuilder
from estimator_tpu_embedding.core.optimizers import Adagrad
from estimator_tpu_embedding.errors import ConfigError
from estimator_tpu_embedding.hosts.native_engine import make_engine
from estimator_tpu_embedding.native import plan_attributes
from estimator_tpu_embedding.ops.checks import message_to_problem

pytestmark = [pytest.mark.no_rerun, graphs.needs_native]
SAVED = '"t" is being read or saved'


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


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
        assert expected[0][0][0] > 3 and run.session.run(run.detached) == 0
        assert run()[0][0].tolist() == expected[0][0]
        expected[0][0] = [number - 1 for number in expected[0][0]]
        expected[1][0] = [number - 1 for number in expected[1][0]]
        assert run.values() == expected
        assert run.session.run(run.detached) == -1  # The memory of the engine again.


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


@contextlib.contextmanager
def held(run, view):
    """While this lasts, a queue holds what a saver reads of a part: as a save that goes on."""
    queue = tf.queue.FIFOQueue(1, [tf.float32])
    run.session.run(queue.enqueue([view]))
    found = []
    yield found
    found.append(run.session.run(queue.dequeue()).tolist())


def test_an_assignment_is_read_before_it_is_taken_and_outlives_a_run_that_could_not(
        graph, monkeypatch):
    monkeypatch.setattr(plan_attributes, 'SAVE_WAIT_MS', 50)
    run = Run(plan_of())
    run()
    part = run.parts[0]
    for_savers = part._read_variable_op(no_copy=True)
    reads = [part.read_value(), tf.gather(part, [0, 1, 2]), for_savers]
    with held(run, for_savers) as saved:
        part.load(np.full([3, 2], 7, np.float32), run.session)
        with pytest.raises(tf.errors.FailedPreconditionError, match=SAVED):
            run.session.run(run.load)
        assert run.session.run(run.detached) == -1  # It is a view of rows that are not 7 yet.
        for read in reads:
            assert run.session.run(read).tolist() == [[7, 7]] * 3
        with pytest.raises(tf.errors.FailedPreconditionError, match=SAVED):
            run()
    assert saved == [[[-1, -1], [0, 0], [0, 0]]]
    assert run()[0][0].tolist() == [7, 7]
    assert run.values()[0] == [[6, 6], [7, 7], [7, 7]]


def test_reads_beside_the_take_over_of_an_assignment_give_what_was_assigned(graph):
    hosts = 32
    run = Run(plan_of(hosts * 8, 4, hosts))
    reads = [run.session.make_callable(tf.stack(one)) for one in (
        [part.read_value()[5] for part in run.parts],
        [tf.gather(part, 5) for part in run.parts],
        [part._read_variable_op(no_copy=True)[5] for part in run.parts])]
    value = tf.placeholder(tf.float32, [8, 4])
    assign = run.session.make_callable(
        tf.group(*[part.assign(value, read_value=False) for part in run.parts]), [value])
    wrong, started = [], threading.Barrier(len(reads) + 1, timeout=200)

    def watch(read, number, ended):
        try:
            started.wait()
            while not ended.is_set():
                if (read() != number).any():
                    wrong.append(number)
        except Exception as error:
            wrong.append(error)

    for number in range(1, 6):
        assign(np.full([8, 4], number, np.float32))
        ended = threading.Event()
        threads = [threading.Thread(target=watch, args=[read, number, ended]) for read in reads]
        for thread in threads:
            thread.start()
        started.wait()
        run.session.run(run.load)
        ended.set()
        for thread in threads:
            thread.join(200)
        assert not wrong and not any(thread.is_alive() for thread in threads)


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


def test_a_checkpoint_that_is_written_beside_steps_holds_no_torn_row(graph, tmp_path):
    rows, seen, numbers, ended = 8000, set(), itertools.count(), threading.Event()
    run = Run(plan_of(rows, 128, hosts=1, batch_size=rows), [list(range(rows))])
    savers = [tf.train.Saver(max_to_keep=1, builder=builder) for builder in (
        None, SaverBuilder())]

    def has_seen_two():
        number = next(numbers)
        path = savers[number % 2].save(run.session, str(tmp_path / 'm'), number)
        values = np.unique(tf.train.load_checkpoint(path).get_tensor('t'))
        assert len(values) == 1
        seen.update(values.tolist())
        assert len(np.unique(run.session.run(run.parts[0]))) == 1
        return (number >= 9 and len(seen) > 1) or steps.done()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        steps = pool.submit(lambda: [run() for _ in iter(ended.is_set, True)])
        try:
            until(has_seen_two, 'checkpoints of two steps')
        finally:
            ended.set()
    steps.result()  # Raises what a step did.
    assert len(seen) > 1
