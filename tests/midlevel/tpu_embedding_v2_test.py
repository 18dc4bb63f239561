"""The errors of TPUEmbedding for wrong calls."""

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas

from estimator_tpu_embedding import defaults
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice
from estimator_tpu_embedding.defaults import Defaults
from estimator_tpu_embedding.errors import (
    CallError,
    ConfigError,
    InputShapeError,
    NotInFunctionError,
    UnsupportedError,
)
from estimator_tpu_embedding.midlevel.replicas import forget_initialized
from estimator_tpu_embedding.midlevel.tpu_embedding_v2 import TPUEmbedding

api = tf.tpu.experimental.embedding
IDS = tf.constant([1, 2])


def table_of(name='t', **kwargs):
    return api.TableConfig(6, 2, tf.ones_initializer(), combiner='sum', name=name, **kwargs)


def embedding_of(strategy='none', optimizer=None, features=None, **kwargs):
    return replicas.embedding_under(
        replicas.make(strategy), features or {'a': api.FeatureConfig(table_of())},
        api.SGD(.5) if optimizer is None else optimizer, **kwargs)


@pytest.mark.parametrize('chosen, said', [
    (ClusterChoice(processes=2), 'got workers.'), (ClusterChoice(is_from_script=True), 'got work')])
def test_chosen_workers_are_refused_and_not_ignored(monkeypatch, chosen, said):
    monkeypatch.setattr(defaults, '_current', Defaults(cluster=chosen))
    with pytest.raises(ConfigError, match=f'E738 TPUEmbedding: .* all its tables in .*{said}'):
        embedding_of()


def traced(function, *args):
    return tf.function(function, autograph=False)(*args)


def step_of(embedding, *, training=True, gradients=None, **kwargs):
    """A function of one step: features -> activations."""
    @tf.function(autograph=False)
    def step(features, weights=None):
        embedding.enqueue(features, weights, training, **kwargs)
        activations = embedding.dequeue()
        if gradients is not None:
            embedding.apply_gradients(gradients)
        return activations
    return step


@pytest.fixture(scope='module')
def one():
    """An object under no strategy that has done a step of two samples of feature `a`."""
    embedding = embedding_of()
    step_of(embedding, training=False)({'a': IDS})
    return embedding


@pytest.fixture(scope='module')
def two():
    """The same of two replicas of a TPU, with the strategy."""
    embedding, strategy = embedding_of('tpu 2'), replicas.make('tpu 2')

    @tf.function(autograph=False)
    def step():
        embedding.enqueue({'a': IDS}, training=False)
        return strategy.run(embedding.dequeue)

    step()
    return embedding, strategy


@pytest.mark.parametrize('call', [
    lambda one: one.enqueue({'a': IDS}), lambda one: one.dequeue(),
    lambda one: one.apply_gradients({'a': None})])
def test_an_eager_call_is_an_error_of_both_types(one, call):
    for kind in (RuntimeError, AttributeError):
        with pytest.raises(kind, match='E551.*must be called while a tf.function is traced'):
            call(one)
    tf.config.run_functions_eagerly(True)
    try:
        with pytest.raises(NotInFunctionError, match='leave tf.config.run_functions_eagerly off'):
            traced(call, one)
    finally:
        tf.config.run_functions_eagerly(False)


def test_before_it_is_built_there_is_nothing_to_dequeue():
    embedding = embedding_of()
    for method in (lambda: embedding.dequeue(), lambda: embedding.apply_gradients({'a': None})):
        with pytest.raises(CallError, match='E553.*called on unbuilt TPUEmbedding object. Please '
                           'either call enqueue first or manually call the build method'):
            traced(method)
    with pytest.raises(CallError, match='E553 config_proto'):
        embedding.config_proto


def test_tables_without_an_optimizer_are_looked_up_only():
    embedding = replicas.embedding_under(
        replicas.make('none'), api.FeatureConfig(table_of()), None)
    assert step_of(embedding)(IDS).numpy().tolist() == [[1., 1.], [1., 1.]]
    with pytest.raises(CallError, match='E558.*must have an optimizer'):
        step_of(embedding, gradients=tf.ones([2, 2]))(IDS)


@pytest.mark.parametrize('gradient, message', [
    (np.ones([2, 2]), "E546.*found non-tensor type: <class 'numpy.ndarray'> at path a"),
    (1., "E546.*found non-tensor type: <class 'float'> at path a"),
    (tf.ones([2, 3]), r'E547.*Found gradient of shape \(2, 3\) at path a. Expected shape \(2, 2'),
    (tf.ones([2]), r'E547.*Found gradient of shape \(2,\) at path a')])
def test_gradients_of_other_types_and_shapes_are_refused(one, gradient, message):
    with pytest.raises(InputShapeError, match=message):
        traced(lambda: one.apply_gradients({'a': gradient}))


@pytest.mark.parametrize('features, kind', [({'b': IDS}, ValueError), ([IDS], TypeError)])
def test_other_structures_are_refused_with_the_types_of_the_original(one, features, kind):
    for what, call in (('features', lambda: one.enqueue(features)),
                       ('weights', lambda: one.enqueue({'a': IDS}, features)),
                       ('gradients', lambda: one.apply_gradients(features))):
        with pytest.raises(kind, match=f"E531 {what}: The two structures don't have the same"):
            traced(call)


@pytest.mark.parametrize('ids, code', [
    (tf.constant([1]), 'E534'), (tf.constant([[1, 2]]), 'E532'), (tf.constant(1), 'E532'),
    (tf.constant([1., 2.]), 'E510'), (3, 'E5'), (None, 'E5')])
def test_what_is_not_a_batch_of_the_shape_of_the_first_is_refused(one, ids, code):
    with pytest.raises(InputShapeError, match=code):
        step_of(one, training=False)({'a': ids})
    assert step_of(one, training=False)({'a': IDS})['a'].shape == (2, 2)


def test_a_device_is_that_of_a_replica(one, two):
    for embedding, device in ((one, '/cpu:0'), (one, '/TPU:1'), (two[0], '/TPU:2')):
        with pytest.raises(InputShapeError, match=f'E545.*Non-TPU device {device} passed to enq'):
            traced(lambda: embedding.enqueue({'a': IDS}, device=device))
    embedding, strategy = two

    for devices in (['/TPU:1', '/device:TPU:0'], strategy.extended.worker_devices):
        @tf.function(autograph=False)
        def step(devices=tuple(devices)):
            for device in devices:
                embedding.enqueue({'a': IDS}, training=False, device=device)
            return strategy.run(lambda: embedding.dequeue()['a'])

        assert len(strategy.experimental_local_results(step())) == 2


def test_under_a_tpu_strategy_tables_are_out_of_reach_and_calls_are_those_of_replicas(two):
    embedding, strategy = two
    with pytest.raises(CallError, match='E552.*Unable to retrieve embedding tables when using a '
                       'TPU strategy'):
        embedding.embedding_tables
    with pytest.raises(CallError, match='E550'):
        traced(lambda: embedding.apply_gradients({'a': None}))

    @tf.function
    def dequeue_outside():
        return embedding.dequeue()['a']

    # Keras traces such calls, in graphs that it never runs.
    assert dequeue_outside.get_concrete_function().output_shapes == [2, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match='E550 dequeue: .*strategy.run calls'):
        dequeue_outside()

    def in_a_loop():
        return tf.while_loop(lambda _: True, lambda i: [
            embedding.apply_gradients({'a': None}) or i], [tf.constant(0)])

    with pytest.raises(CallError, match='E549.*Put the loop around strategy.run'):
        traced(lambda: strategy.run(in_a_loop))


def test_a_second_object_needs_a_tpu_that_was_initialized_again(two):
    embedding, strategy = two
    forget_initialized()
    features = {'a': api.FeatureConfig(table_of(), output_shape=[2])}
    with strategy.scope():
        first, second = (TPUEmbedding(features, api.SGD()) for _ in range(2))
        first.build()
        with pytest.raises(CallError, match='E559.*TPU is already initialized for embeddings.*'
                           'initialize_tpu_system'):
            second.build()
        with pytest.raises(UnsupportedError, match='E559.*tables of its own'):
            TPUEmbedding(features, 4, api.SGD(), initialize_tpu_embedding=False)
        forget_initialized()  # As initialize_tpu_system() does.
        second.build()
    forget_initialized()
