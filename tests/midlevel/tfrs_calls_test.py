"""Steps that call the TFRS layer more than once, that fail, or that look up a step ahead."""

import numpy as np
import pytest
import tensorflow as tf
from harness import tfrs
from harness.numpy_reference import assert_close
from harness.parts import soak_except
from harness.tfrs_table import Job

pytestmark = pytest.mark.soak

api = tf.tpu.experimental.embedding
RATE = .25


@pytest.fixture(scope='module', autouse=True)
def names():
    with tfrs.names_in_place():
        yield


@pytest.mark.parametrize('strategy', soak_except(['tpu 2', 'tpu 1', 'tpu 8'], 0))
def test_two_calls_in_a_step_see_the_rows_before_it_and_make_an_update_each(strategy):
    """The tape of TensorFlow decides which update is the first. It is that of the first call."""
    job = Job(strategy, api.Adagrad(RATE))

    def step(ids, coefficients, other_ids, other_coefficients):
        with tf.GradientTape() as tape:
            found, other = job.look_up(ids), job.look_up(other_ids)
            loss = (tfrs.weighted_sum(found, coefficients)
                    + tfrs.weighted_sum(other, other_coefficients))
        tape.gradient(loss, job.layer.trainable_variables)
        return found, other

    train = job.program(step)
    for _ in range(3):
        first, second = job.batch(), job.batch()
        for found, (ids, _) in zip(train(*first, *second), (first, second)):
            assert_close(found.numpy(), job.lookup(ids))
        job.update(*first)
        job.update(*second)
    job.check()


def test_a_call_that_gets_no_gradients_stands_beside_one_that_gets_some():
    job = Job('tpu 2', api.Adagrad(RATE))

    def step(ids, coefficients, only_looked_up):
        before = job.look_up(only_looked_up)
        job.train_step(ids, coefficients)
        return before, job.look_up(only_looked_up)

    train = job.program(step)
    for _ in range(3):
        ids, coefficients = job.batch()
        looked_up, _ = job.batch()
        before = job.lookup(looked_up)
        job.update(ids, coefficients)
        for found, wanted in zip(train(ids, coefficients, looked_up),
                                 (before, job.lookup(looked_up)), strict=True):
            assert_close(found.numpy(), wanted)
    job.check()


def test_a_loss_of_one_call_moves_no_row_of_the_other_call():
    """Only the first call of the layer is part of the loss, though both are under the tape."""
    job = Job('tpu 2', api.SGD(RATE))

    def step(ids, coefficients, other):
        with tf.GradientTape() as tape:
            found = job.look_up(ids)
            beside = job.look_up(other)
            loss = tfrs.weighted_sum(found, coefficients)
        tape.gradient(loss, job.layer.trainable_variables)
        return beside

    train = job.program(step)
    for _ in range(3):
        ids, coefficients = job.batch()
        other, _ = job.batch()
        assert_close(train(ids, coefficients, other).numpy(), job.lookup(other))
        job.update(ids, coefficients)
    job.check()


@pytest.mark.parametrize('strategy', ['tpu 1', 'tpu 2'])
def test_a_call_that_gets_gradients_twice_is_refused_and_its_first_ones_count(strategy):
    job, twice = Job(strategy, api.Adagrad(RATE)), [True]

    def step(ids, coefficients):
        with tf.GradientTape(persistent=True) as tape:
            loss = tfrs.weighted_sum(job.look_up(ids), coefficients)
        for _ in range(1 + twice[0]):
            tape.gradient(loss, job.layer.trainable_variables)
        return loss[None]

    train, batch = job.program(step), job.batch()
    with pytest.raises(tf.errors.InvalidArgumentError, match='E556 apply_gradients'):
        train(*batch)
    job.update(*batch)
    job.check()
    twice[0] = False
    train, batch = job.program(step), job.batch()
    train(*batch)
    job.update(*batch)
    job.check()


@pytest.mark.parametrize('strategy, kernels', [
    ('tpu 1', 'native'), ('tpu 2', 'native'), ('tpu 2', 'stock')])
def test_pipelined_updates_are_one_step_late_unless_somebody_looks(strategy, kernels):
    job = Job(strategy, api.Adagrad(RATE), pipeline_execution_with_tensor_core=True,
              kernels=kernels)
    train, evaluate = job.program(job.train_step), job.program(job.look_up)
    waits = []
    for what in '+++-+r++--+r':
        if what in 'r-' and waits:
            job.update(*waits.pop())
        if what == 'r':
            job.check()
            continue
        batch = job.batch()
        found = train(*batch) if what == '+' else evaluate(batch[0])
        assert_close(found.numpy(), job.lookup(batch[0]))
        if what == '+':
            for one in waits:
                job.update(*one)
            waits = [batch]


def test_two_pipelined_calls_in_a_step_lose_no_gradients():
    """With SGD, the sum of all gradients is what a row has moved by, whenever it moved."""
    job = Job('tpu 2', api.SGD(RATE), pipeline_execution_with_tensor_core=True)

    def step(ids, coefficients, other_ids, other_coefficients):
        with tf.GradientTape() as tape:
            loss = (tfrs.weighted_sum(job.look_up(ids), coefficients)
                    + tfrs.weighted_sum(job.look_up(other_ids), other_coefficients))
        tape.gradient(loss, job.layer.trainable_variables)
        return loss[None]

    train = job.program(step)
    for _ in range(4):
        first, second = job.batch(), job.batch()
        train(*first, *second)
        job.update(*first)
        job.update(*second)
    job.check()


@pytest.mark.parametrize('strategy', ['tpu 1', 'tpu 2'])
def test_after_a_step_that_fails_the_next_one_trains_as_if_it_had_not_been(strategy):
    job = Job(strategy, api.Adagrad(RATE))

    def step(ids, coefficients):
        with tf.GradientTape() as tape:
            found = job.look_up(ids)
            loss = tfrs.weighted_sum(found, tf.debugging.check_numerics(coefficients, 'of a model'))
            # The gradient of the layer, which trains it, waits for the check.
        tape.gradient(loss, job.layer.trainable_variables)
        return found

    train = job.program(step)
    for number in range(6):
        ids, coefficients = job.batch()
        if number in (1, 2, 4):
            coefficients[-1 if number == 2 else slice(None)] = np.nan
            with pytest.raises(tf.errors.InvalidArgumentError, match='of a model'):
                train(ids, coefficients)
        else:
            assert_close(train(ids, coefficients).numpy(), job.lookup(ids))
            job.update(ids, coefficients)
        job.check()


@pytest.mark.parametrize('strategy', ['tpu 1', 'tpu 2'])
def test_a_step_that_fails_while_it_is_traced_leaves_nothing_behind(strategy):
    job = Job(strategy, api.Adagrad(RATE))
    broken = []

    def step(ids, coefficients):
        found = job.train_step(ids, coefficients)
        if broken:
            raise RuntimeError('of the user')
        return found

    broken.append('yes')
    with pytest.raises(RuntimeError, match='of the user'):
        job.program(step)(*job.batch())
    broken.clear()
    train = job.program(step)
    for _ in range(2):
        ids, coefficients = job.batch()
        assert_close(train(ids, coefficients).numpy(), job.lookup(ids))
        job.update(ids, coefficients)
    job.check()


def test_ids_of_another_number_of_samples_are_refused_by_the_fixed_shape():
    job = Job('tpu 2', api.Adagrad(RATE))
    train = job.program(job.train_step)
    ids, coefficients = job.batch()
    train(ids, coefficients)
    job.update(ids, coefficients)
    with pytest.raises(ValueError, match='shape'):
        train(ids[:4], coefficients[:4])
    ids, coefficients = job.batch()
    train(ids, coefficients)
    job.update(ids, coefficients)
    job.check()
