"""Every optimizer with every option at 1, 2 and 8 replicas, against the NumPy reference."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas
from harness.numpy_reference import ReferenceTable, assert_close
from harness.parts import soak_except

from estimator_tpu_embedding.midlevel import feature_configs

api = tf.tpu.experimental.embedding
ROWS, WIDTH, SAMPLES, STEPS = 9, 3, 16, 4
RATES = (.3, .1, 0., .25)
COMBINERS = ('sum', 'mean', 'sqrtn')
step_of_rate = tf.Variable(0)


def rate_of_step():
    return tf.gather(RATES, step_of_rate)


COMMON = (
    {}, {'learning_rate': rate_of_step, 'clip_weight_min': -.5},
    {'clipvalue': (-.8, .6), 'weight_decay_factor': .1,
     'multiply_weight_decay_factor_by_learning_rate': True},
    {'clipvalue': .5, 'clip_weight_min': -.9, 'clip_weight_max': 1.1, 'weight_decay_factor': .05},
    {'use_gradient_accumulation': False, 'clip_weight_max': .8})
CASES = [functools.partial(cls, **{'learning_rate': .2, **kwargs}) for cls, own in (
    (api.SGD, ()),
    (api.Adagrad, ({'initial_accumulator_value': 2.},)),
    (api.AdagradMomentum, (
        {'momentum': .8, 'use_nesterov': True}, {'momentum': .2, 'exponent': 3},
        {'momentum': .5, 'exponent': 1.5, 'beta2': .7, 'epsilon': .1})),
    (api.FTRL, (
        {'l1_regularization_strength': .2, 'learning_rate_power': -.7},
        {'l2_regularization_strength': .1, 'initial_accumulator_value': .5, 'beta': .3},
        {'multiply_linear_by_learning_rate': True, 'l1_regularization_strength': .1})),
    (api.Adam, (
        {'sum_inside_sqrt': False}, {'beta_1': .7, 'beta_2': .8, 'epsilon': .1},
        {'lazy_adam': False, 'beta_1': .7})),
) for kwargs in (*COMMON, *own)]


@functools.cache
def step_of(number):
    """What a step is fed: for each case ids, weights and gradients of all samples."""
    generator = np.random.default_rng(number)

    def of_case():
        ids = [generator.integers(ROWS, size=generator.integers(0, 4)).tolist()
               for _ in range(SAMPLES)]
        weights = [generator.uniform(.5, 2, len(row)).tolist() for row in ids]
        # Of one sign in a column: what nearly cancels in a sum has no digits left to compare.
        signs = generator.choice([-1, 1], WIDTH)
        return ids, weights, np.float32(signs * generator.uniform(.1, 1, (SAMPLES, WIDTH)))

    return [of_case() for _ in CASES]


def initial_rows(number):
    return np.random.default_rng(100 + number).normal(size=(ROWS, WIDTH)).astype(np.float32)


@functools.cache
def expected(count):
    """For each case rows and slots after all steps, and the activations of the last one.

    How many replicas there are only matters without accumulation.
    """
    results = []
    for number, make in enumerate(CASES):
        optimizer = make()
        table = ReferenceTable(initial_rows(number), feature_configs.core_optimizer(optimizer),
                               COMBINERS[number % 3])
        for step in range(STEPS):
            if callable(optimizer.learning_rate):
                table.rate = RATES[step]
            ids, weights, gradient = step_of(step)[number]
            activations = table.lookup(ids, weights)
            table.update([(ids, gradient, weights)], count)
        results.append([table.rows, *table.slots.values(), activations])
    return results


def run(strategy, kernels):
    """What `expected` gives, of TPUEmbedding."""
    tables = [api.TableConfig(
        ROWS, WIDTH, lambda shape, dtype, number=number: tf.constant(initial_rows(number)),
        make(), COMBINERS[number % 3], f't{number}') for number, make in enumerate(CASES)]
    embedding = replicas.embedding_under(
        strategy, [api.FeatureConfig(table) for table in tables], api.SGD(9.), kernels=kernels)

    @tf.function
    def train(ids, weights, gradients):
        def step(gradients):
            activations = embedding.dequeue()
            embedding.apply_gradients(gradients)
            return activations
        embedding.enqueue(ids, weights)
        return strategy.run(step, (gradients,))

    for number in range(STEPS):
        step_of_rate.assign(number)
        activations = train(*(
            [replicas.split(strategy, one, dtype) for one in of_cases]
            for dtype, of_cases in zip((tf.int64, tf.float32, None), zip(*step_of(number)))))
    values = replicas.values_of(embedding)
    return [[*values[table.name].values(),
             tf.concat(strategy.experimental_local_results(own), 0).numpy()]
            for table, own in zip(tables, activations)]


@pytest.fixture(scope='module', autouse=True)
def without_grappler():
    """It takes longer than all else and changes no number; the other tests are with it."""
    options = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': True})
    yield
    tf.config.optimizer.set_experimental_options({**options, 'disable_meta_optimizer': False})


@pytest.mark.parametrize('strategy, kernels', soak_except([
    ('none', 'native'), ('mirrored 2', 'native'), ('tpu 8', 'native'), ('tpu 2', 'stock')], 1))
def test_rows_slots_and_activations_are_those_of_the_reference(strategy, kernels):
    made = replicas.make(strategy)
    found = run(made, kernels)
    wanted_of_all = expected(made.num_replicas_in_sync)
    for case, own, correct in zip(CASES, found, wanted_of_all, strict=True):
        for values, wanted in zip(own, correct, strict=True):
            try:
                assert_close(values, wanted, 4e-6)
            except AssertionError as error:
                raise AssertionError(f'{case}') from error


@pytest.mark.parametrize('strategy, kernels', [
    ('none', 'native'), ('none', 'stock'), ('tpu 2', 'native')])
def test_pipelined_updates_are_one_step_late_unless_somebody_looks(strategy, kernels):
    made, random = replicas.make(strategy), np.random.default_rng(3)
    adagrad = api.Adagrad(.3)
    initial = random.normal(size=(ROWS, 2)).astype(np.float32)
    table = api.TableConfig(ROWS, 2, lambda *_, **__: tf.constant(initial), combiner='sum',
                            name='t')
    embedding = replicas.embedding_under(
        made, {'a': api.FeatureConfig(table)}, adagrad,
        pipeline_execution_with_tensor_core=True, kernels=kernels)
    reference = ReferenceTable(initial, feature_configs.core_optimizer(adagrad), 'sum')

    @tf.function(autograph=False)
    def program(ids, gradients, training):
        def replica(gradients):
            found = embedding.dequeue()['a']
            if training:
                embedding.apply_gradients({'a': gradients})
            return found
        embedding.enqueue({'a': ids}, training=training)
        return tf.concat(made.experimental_local_results(made.run(replica, (gradients,))), 0)

    def rows():
        return replicas.values_of(embedding)['t']['parameters']

    waits = []
    for what in '+++-+r++--+':
        if what == 'r':
            reference.update(waits.pop())
            assert_close(rows(), reference.rows, 1e-6)
            continue
        ids = random.integers(ROWS, size=4)
        gradients = np.float32(random.uniform(.1, 1, (4, 2)))
        if what == '-' and waits:
            reference.update(waits.pop())
        found = program(replicas.split(made, ids), replicas.split(made, gradients), what == '+')
        assert_close(found.numpy(), reference.lookup([[one] for one in ids]), 1e-6)
        if what == '+':
            for one in waits:
                reference.update(one)
            waits = [[([[one] for one in ids], gradients, None)]]
    reference.update(waits.pop())
    assert_close(rows(), reference.rows, 1e-6)
