"""The TFRS layer in custom loops trains tables and slots to the numbers of the NumPy reference.

Every job has dense, sparse and ragged ids, with and without weights, sequences, and all combiners.
"""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas, tfrs
from harness.numpy_reference import assert_close
from harness.parts import soak_except
from harness.tfrs_job import Expected, arguments, assert_activations, feature_config, iterator

from estimator_tpu_embedding.midlevel import optimizers

api, keras = tf.tpu.experimental.embedding, tf.keras.optimizers.legacy
STEPS = 4

STRENGTHS = {'l1_regularization_strength': .02, 'l2_regularization_strength': .03}
OPTIMIZERS = {  # What the layer is given, and the equal optimizer of the mid-level API.
    'name sgd': (lambda: 'sgd', api.SGD(.01)),
    'name adagrad': (lambda: 'adagrad', api.Adagrad(.001, .1)),
    'name adam': (lambda: 'adam', api.Adam(.001, .9, .999, 1e-7)),
    'name ftrl': (lambda: 'ftrl', api.FTRL(.001, -.5, 0, 0, 0, .1)),
    'keras sgd': (lambda: keras.SGD(.2), api.SGD(.2)),
    'keras adagrad': (lambda: keras.Adagrad(.2, .3), api.Adagrad(.2, .3)),
    'keras adam': (lambda: keras.Adam(.2, .7, .8, .01), api.Adam(.2, .7, .8, .01)),
    'keras ftrl': (
        lambda: keras.Ftrl(.2, -.6, .5, beta=.1, **STRENGTHS),
        api.FTRL(.2, -.6, beta=.1, initial_accumulator_value=.5, **STRENGTHS)),
    'object sgd': (lambda: api.SGD(.3, clipvalue=.5), api.SGD(.3, clipvalue=.5)),
    'object adagrad': (
        lambda: api.Adagrad(.3, clip_weight_max=.5), api.Adagrad(.3, clip_weight_max=.5)),
    'object adam': (
        lambda: api.Adam(.3, .7, .8, .1, sum_inside_sqrt=False, lazy_adam=False),
        api.Adam(.3, .7, .8, .1, sum_inside_sqrt=False, lazy_adam=False)),
    'object ftrl': (
        lambda: api.FTRL(.3, l1_regularization_strength=.1, weight_decay_factor=.1),
        api.FTRL(.3, l1_regularization_strength=.1, weight_decay_factor=.1)),
}
KERAS_SLOTS = {'adagrad': ['accumulator'], 'adam': ['m', 'v'], 'ftrl': ['accumulator', 'linear']}


@pytest.fixture(scope='module', autouse=True)
def names():
    with tfrs.names_in_place():
        yield


def run(made, layer, expected, optimizer=None, rates=(None,) * STEPS, before_step=lambda _: None):
    """Trains, and compares activations of each step, then tables and slots."""
    train = tfrs.training_step(made, layer, optimizer)
    batches = iterator(made, range(STEPS))
    for number, rate in zip(range(STEPS), rates, strict=True):
        before_step(number)
        found = train(*arguments(next(batches)))
        assert_activations(found, expected.step(number, rate=rate))
    expected.check(layer)


@pytest.mark.parametrize('strategy, kernels, case', soak_except([
    (strategy, kernels, case) for strategy, kernels in (
        ('tpu 2', 'native'), ('tpu 1', 'native'), ('tpu 8', 'native'), ('tpu 2', 'stock'))
    for case in OPTIMIZERS], 3, 43))
def test_tables_slots_and_activations_are_those_of_the_reference(strategy, kernels, case):
    made = replicas.make(strategy)
    make, equal = OPTIMIZERS[case]
    with replicas.scope(made):
        optimizer = make()
    layer = tfrs.layer_under(made, feature_config(), optimizer, kernels=kernels)
    run(made, layer, Expected(optimizers.core_optimizer(equal)))
    if case.startswith('keras') and case != 'keras sgd':
        for own in layer._tpu_embedding._variables.values():
            table, *slots = own.values()
            for name, slot in zip(KERAS_SLOTS[case.split()[1]], slots, strict=True):
                assert optimizer.get_slot(table, name) is slot


@pytest.mark.soak
def test_tables_have_optimizers_of_their_own_of_any_kind():
    made = replicas.make('tpu 2')
    with replicas.scope(made):
        own = {'sums': 'adagrad', 'means': keras.Adam(.2, .7, .8, .01), 'roots': api.FTRL(.3)}
    layer = tfrs.layer_under(made, feature_config(own), keras.SGD(.1))
    run(made, layer, Expected({name: optimizers.core_optimizer(one) for name, one in {
        'sums': api.Adagrad(.001, .1), 'means': api.Adam(.2, .7, .8, .01), 'roots': api.FTRL(.3),
        'sequences': api.SGD(.1)}.items()}))


@pytest.mark.soak
@pytest.mark.parametrize('strategy', soak_except(['tpu 2', 'tpu 1', 'tpu 8'], 0))
@pytest.mark.parametrize('translated', [False, True])
def test_a_schedule_of_keras_follows_the_iterations_of_its_optimizer(strategy, translated):
    from tensorflow_recommenders.layers.embedding.tpu_embedding_layer import (
        translate_keras_optimizer,
    )
    made = replicas.make(strategy)
    with replicas.scope(made):
        optimizer = keras.Adagrad(tf.keras.optimizers.schedules.PolynomialDecay(.4, 4, .1), .3)
        given = translate_keras_optimizer(optimizer) if translated else optimizer
    layer = tfrs.layer_under(made, feature_config(), given)
    run(made, layer, Expected(optimizers.core_optimizer(api.Adagrad(1., .3))), optimizer,
        rates=[.4, .325, .25, .175])
    assert optimizer.iterations.numpy() == STEPS


@pytest.mark.soak
@pytest.mark.parametrize('make', [
    lambda rate: keras.Ftrl(rate, initial_accumulator_value=.1), api.FTRL])
def test_a_function_gives_the_rate_of_each_step(make):
    made, rates = replicas.make('tpu 2'), np.float32([.3, .1, .25, .2])
    with replicas.scope(made):
        step = tf.Variable(0, trainable=False, dtype=tf.int64,
                           aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        optimizer = make(lambda: tf.gather(rates, step))
    layer = tfrs.layer_under(made, feature_config(), optimizer)
    run(made, layer, Expected(optimizers.core_optimizer(api.FTRL(1.))), rates=rates,
        before_step=step.assign)


@pytest.mark.parametrize('strategy', soak_except(['tpu 1', 'tpu 2'], 1))
def test_evaluation_between_steps_changes_nothing(strategy):
    made = replicas.make(strategy)
    layer = tfrs.layer_under(made, feature_config(), api.Adagrad(.3))
    expected = Expected(optimizers.core_optimizer(api.Adagrad(.3)))
    train = tfrs.training_step(made, layer)

    @tf.function
    def evaluate(ids):
        return tfrs.joined(made, made.run(layer, (ids,)))

    for number, (step, element) in enumerate(zip('e+ee++e', iterator(made, range(7)))):
        if step == '+':
            assert_activations(train(*arguments(element)), expected.step(number))
        else:
            assert_activations(evaluate(arguments(element)[0]), expected.step(
                number, training=False, weighted=False))
        expected.check(layer)


@pytest.mark.parametrize('kind', ['sparse', 'ragged'])
def test_a_batch_size_builds_the_layer_where_inputs_do_not_say_how_many_samples(kind):
    made = replicas.make('tpu 2')
    table = api.TableConfig(4, 1, tf.ones_initializer(), combiner='sum', name='t')
    layer = tfrs.layer_under(made, {'a': api.FeatureConfig(table)}, api.SGD(.5), batch_size=2)
    element = next(tfrs.iterator(made, [{'a': [[0, 0], [], [2], [1, 2, 3]]}], {'a': kind}))
    spec_of = {'sparse': tf.SparseTensorSpec, 'ragged': tf.RaggedTensorSpec}[kind]

    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer({'a': ids})['a'])
        tape.gradient(loss, layer.trainable_variables)

    @tf.function(input_signature=[spec_of([None, None], tf.int64)] * 2)
    def train(*of_replicas):
        made.run(step, (made.experimental_distribute_values_from_function(
            lambda context: of_replicas[context.replica_id_in_sync_group]),))

    train(*made.experimental_local_results(element['a']))
    # Ids 0 and 2 occur twice, 1 and 3 once.
    assert_close(tfrs.values_of(layer)['t']['parameters'][:, 0], [0, .5, 0, .5])
