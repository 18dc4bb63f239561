"""Steps in functions are counted, and timed from one to the next of a stretch."""

import pytest
import tensorflow as tf

from estimator_tpu_embedding.hosts import step_clock
from estimator_tpu_embedding.hosts.step_clock import Figures, FunctionSteps

NONE = Figures(0, 0, 0.)


class Job:
    """Makes steps of one engine at the times that a test gives."""

    def __init__(self):
        self.now = tf.Variable(0., dtype=tf.float64)
        self.steps = FunctionSteps(8, 'native')

    @tf.function
    def train(self, fails=tf.constant(False)):
        self.steps.trained.begin_step()
        with tf.control_dependencies([tf.debugging.Assert(~fails, ['no update'])]):
            self.steps.trained.count_step()

    @tf.function
    def look_up(self):
        self.steps.note_lookup()

    def at(self, seconds, function):
        self.now.assign(seconds)
        function()

    def total(self):
        (own,) = step_clock.totals()
        assert (own.batch_size, own.kernels) == (8, 'native')
        return own.trained, own.looked_up


@pytest.fixture
def job(monkeypatch):
    monkeypatch.setattr(step_clock, '_records', [])
    made = Job()
    monkeypatch.setattr(tf, 'timestamp', made.now.read_value)
    return made


def test_without_steps_there_is_nothing(job):
    assert job.total() == (NONE, NONE)


def test_a_first_step_is_counted_but_begins_at_an_unknown_time(job):
    job.at(100, job.train)
    assert job.total() == (Figures(1, 0, 0.), NONE)


def test_the_steps_after_the_first_are_timed(job):
    for second in (100, 102, 105):
        job.at(second, job.train)
    assert job.total() == (Figures(3, 2, 5.), NONE)


def test_an_evaluation_between_is_no_time_of_the_training_and_has_its_own(job):
    for second in (100, 101):
        job.at(second, job.train)
    for second in (200, 203, 206):
        job.at(second, job.look_up)
    for second in (300, 301):
        job.at(second, job.train)
    for second in (400, 404):
        job.at(second, job.look_up)
    assert job.total() == (Figures(4, 2, 2.), Figures(5, 3, 10.))  # 1 + 1 and 3 + 3 + 4


def test_a_save_between_is_no_time_of_a_training(job):
    for second in (100, 101):
        job.at(second, job.train)
    job.steps.interrupt()
    job.steps.interrupt()
    for second in (200, 204):
        job.at(second, job.train)
    assert job.total() == (Figures(4, 2, 5.), NONE)
    assert job.total() == (Figures(4, 2, 5.), NONE)  # Asking again changes nothing.


def test_a_trace_is_no_interruption_of_the_function_that_is_traced(job):
    @tf.function
    def outer():
        job.steps.interrupt()
        job.train()
        job.train()
    job.at(100, outer)
    assert job.total() == (Figures(2, 1, 0.), NONE)


def test_a_clock_that_is_set_back_gives_no_negative_time(job):
    for second in (100, 50):
        job.at(second, job.train)
    assert job.total()[0].steps == 2
    assert job.total()[0].seconds >= 0


def test_a_step_whose_update_fails_is_none(job):
    job.at(100, job.train)
    with pytest.raises(tf.errors.InvalidArgumentError, match='no update'):
        job.train(tf.constant(True))
    assert job.total()[0].steps == 1


def test_what_is_noted_in_a_graph_of_a_session_is_left_out(job):
    with tf.Graph().as_default():
        FunctionSteps(8, 'stock')
    assert job.total() == (NONE, NONE)
