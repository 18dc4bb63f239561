"""Forms of steps that jobs for TPUs have, with the TFRS layer, and forms that a TPU refuses."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas, tfrs
from harness.numpy_reference import assert_close
from harness.tfrs_table import Job

from estimator_tpu_embedding.errors import InputShapeError

pytestmark = pytest.mark.soak

api = tf.tpu.experimental.embedding
RATE = .25
BOTH = pytest.mark.parametrize('strategy', ['tpu 1', 'tpu 2'])


@pytest.fixture(scope='module', autouse=True)
def names():
    with tfrs.names_in_place():
        yield


@BOTH
def test_strategy_run_takes_a_step_that_is_a_tf_function(strategy):
    job = Job(strategy, api.Adagrad(RATE))
    step = tf.function(job.train_step)
    for _ in range(3):
        ids, coefficients = job.batch()
        found = tfrs.joined(job.made, job.made.run(step, job.split(ids, coefficients)))
        assert_close(found.numpy(), job.lookup(ids))
        job.update(ids, coefficients)
    job.check()


@BOTH
def test_a_function_may_hold_several_steps_in_a_row(strategy):
    job = Job(strategy, api.Adagrad(RATE))

    @tf.function
    def train(*values):
        return [tfrs.joined(job.made, job.made.run(job.train_step, values[first:first + 2]))
                for first in (0, 2, 4)]

    for _ in range(2):
        batches = [job.batch() for _ in range(3)]
        found = train(*(one for batch in batches for one in job.split(*batch)))
        for own, batch in zip(found, batches, strict=True):
            assert_close(own.numpy(), job.lookup(batch[0]))
            job.update(*batch)
    job.check()


@BOTH
def test_a_condition_around_strategy_run_decides_whether_a_step_trains(strategy):
    job = Job(strategy, api.Adagrad(RATE))

    @tf.function
    def program(trains, ids, coefficients):
        if trains:
            found = tfrs.joined(job.made, job.made.run(job.train_step, (ids, coefficients)))
        else:
            found = tfrs.joined(job.made, job.made.run(job.look_up, (ids,)))
        return found

    for trains in (True, False, True, True, False):
        batch = job.batch()
        assert_close(program(tf.constant(trains), *job.split(*batch)).numpy(), job.lookup(batch[0]))
        if trains:
            job.update(*batch)
        job.check()


@BOTH
def test_minimize_of_an_optimizer_of_keras_is_a_whole_step(strategy):
    job = Job(strategy, api.Adagrad(RATE))
    with job.made.scope():
        optimizer = tf.keras.optimizers.legacy.Adam(.1)

    def step(ids, coefficients):
        optimizer.minimize(lambda: tfrs.weighted_sum(job.look_up(ids), coefficients),
                           lambda: job.layer.trainable_variables)
        return ids

    train = job.program(step)
    for _ in range(3):
        batch = job.batch()
        train(*batch)
        job.update(*batch)
    job.check()


def test_a_policy_of_mixed_precision_leaves_tables_and_activations_in_float32():
    tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')
    try:
        job = Job('tpu 2', api.Adagrad(RATE))
        train, batch = job.program(job.train_step), job.batch()
        found = train(*batch)
    finally:
        tf.keras.mixed_precision.set_global_policy('float32')
    assert found.dtype == tf.float32
    assert_close(found.numpy(), job.lookup(batch[0]))
    job.update(*batch)
    job.check()


@BOTH
def test_a_feature_without_gradients_gets_zeros_as_on_a_tpu(strategy):
    """Rows that Adam has moved before go on moving, with the momentum that is left."""
    made = replicas.make(strategy)
    table = api.TableConfig(4, 1, tf.zeros_initializer(), combiner='sum', name='t')
    layer = tfrs.layer_under(
        made, [api.FeatureConfig(table), (api.FeatureConfig(table),)],
        api.Adam(1., beta_1=.5, beta_2=1 - 1e-7, epsilon=1., sum_inside_sqrt=False))

    def step(ids, other_ids):
        with tf.GradientTape() as tape:
            activations = layer([ids, (other_ids,)])
            loss = tf.reduce_sum(activations[0])
        tape.gradient(loss, layer.trainable_variables)

    train = tf.function(lambda *values: made.run(step, values))
    for ids, other_ids in (([0, 1], [2, 2]), ([1, 1], [0, 3])):
        train(*(replicas.split(made, np.array(one)) for one in (ids, other_ids)))
    # Row 0: m = 1/2, then 1/4. Row 1: 1/2, then 1/4 + 2/2. The divisor is about 1.
    assert_close(tfrs.values_of(layer)['t']['parameters'][:, 0], [-.75, -1.75, 0, 0], 1e-3)


def test_an_unsupported_accelerator_gives_tables_that_optimizers_of_keras_train():
    """The layer uses TensorFlow's own TPUEmbeddingV0 then."""
    job = Job('tpu 2', api.Adagrad(RATE), embedding_feature=(
        tf.tpu.experimental.HardwareFeature.EmbeddingFeature.UNSUPPORTED))
    with job.made.scope():
        optimizer = tf.keras.optimizers.legacy.Adagrad(RATE)

    def step(ids, coefficients):
        with tf.GradientTape() as tape:
            found = job.look_up(ids)
            loss = tfrs.weighted_sum(found, coefficients)
        variables = job.layer.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return found

    train = job.program(step)
    for _ in range(3):
        batch = job.batch()
        assert_close(train(*batch).numpy(), job.lookup(batch[0]))
        job.update(*batch)
    [table] = job.layer.embedding_tables.values()
    assert_close(table.numpy(), job.reference.rows)


def test_gradients_of_gathered_activations_are_refused_as_on_a_tpu():
    job = Job('tpu 2', api.Adagrad(RATE))

    def step(ids, _):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(job.look_up(ids), [0, 0]))
        tape.gradient(loss, job.layer.trainable_variables)
        return ids

    with pytest.raises(InputShapeError, match='E546 .*found non-tensor type: .*IndexedSlices'):
        job.program(step)(*job.batch())


@BOTH
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


@BOTH
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
