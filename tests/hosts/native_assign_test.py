"""The native engine takes over values that are assigned to its variables, beside other runs."""

import contextlib
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs
from harness.native_run import Run, plan_of

pytestmark = [pytest.mark.no_rerun, graphs.needs_native]
SAVED = '"t" is being read or saved'


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


@contextlib.contextmanager
def held(run, view):
    """While this lasts, a queue holds what a saver reads of a part: as a save that goes on."""
    queue = tf.queue.FIFOQueue(1, [tf.float32])
    run.session.run(queue.enqueue([view]))
    found = []
    yield found
    found.append(run.session.run(queue.dequeue()).tolist())


def test_an_assignment_is_read_before_it_is_taken_and_outlives_a_run_that_could_not(graph):
    run = Run(plan_of(), patience_ms=50)
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


def test_an_update_beside_a_held_view_fails_with_the_name_of_the_table(graph):
    run = Run(plan_of(), patience_ms=0)
    with held(run, run.parts[1]._read_variable_op(no_copy=True)) as saved:
        with pytest.raises(tf.errors.FailedPreconditionError, match=SAVED):
            run()
    assert not np.any(saved)
    run()
    assert run.values()[1] == [[-1, -1], [0, 0], [0, 0]]


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
