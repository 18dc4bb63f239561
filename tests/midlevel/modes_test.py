"""Ways to use TPUEmbedding: in loops, with changing rates, weights and shapes, in many objects."""

import gc
import threading

import numpy as np
import pytest
import tensorflow as tf
from harness import replicas

from estimator_tpu_embedding.errors import CallError

api = tf.tpu.experimental.embedding
FAILS = tf.errors.InvalidArgumentError
IDS = tf.constant([1, 2])


def table_of(rows=6, **kwargs):
    return api.TableConfig(rows, 2, tf.ones_initializer(), combiner='sum', name='t', **kwargs)


def embedding_of(strategy='none', optimizer=None, **kwargs):
    return replicas.embedding_under(
        replicas.make(strategy), feature_config={'a': api.FeatureConfig(table_of())},
        optimizer=optimizer or api.SGD(.5), **kwargs)


def step_of(embedding, gradient=1., **kwargs):
    @tf.function(autograph=False)
    def step(ids, weights=None):
        embedding.enqueue({'a': ids}, None if weights is None else {'a': weights}, **kwargs)
        found = embedding.dequeue()['a']
        if kwargs.get('training', True) is True:
            embedding.apply_gradients(
                {'a': None if gradient is None else tf.fill(found.shape, gradient)})
        return found
    return step


def rows_of(embedding):
    return replicas.values_of(embedding)['t']['parameters']


@pytest.mark.parametrize('kernels', ['native', 'stock'])
def test_without_a_gradient_rows_are_touched_with_zeros(kernels):
    embedding = embedding_of(optimizer=api.Adam(.1, beta_1=.5), kernels=kernels)
    step_of(embedding)(IDS)
    before = rows_of(embedding)
    step_of(embedding, gradient=None)(tf.constant([1, 3]))
    moved = (rows_of(embedding) != before).any(1)
    assert moved.tolist() == [False, True, False, False, False, False]  # The first moment goes on.
    inference = step_of(embedding, training=False)
    values = replicas.values_of(embedding)['t']
    assert inference(IDS).numpy().tolist() == rows_of(embedding)[1:3].tolist()
    for name, value in replicas.values_of(embedding)['t'].items():
        np.testing.assert_array_equal(value, values[name])


@pytest.mark.parametrize('kernels', ['native', 'stock'])
def test_weights_may_come_and_go(kernels):
    embedding = embedding_of(kernels=kernels)
    step = step_of(embedding, gradient=-2.)
    ids, weights = replicas.sparse([[1, 2], [2]]), replicas.sparse([[1, 3], [.5]], tf.float32)
    assert step(ids).numpy().tolist() == [[2., 2.], [1., 1.]]
    assert rows_of(embedding)[:4, 0].tolist() == [1., 2., 3., 1.]
    assert step(ids, weights).numpy()[:, 0].tolist() == [11., 1.5]
    assert rows_of(embedding)[:4, 0].tolist() == [1., 3., 6.5, 1.]
    assert step(ids).numpy()[:, 0].tolist() == [9.5, 6.5]


def test_ids_out_of_range_are_counted_where_they_are_allowed():
    embedding = embedding_of('tpu 2', policy='drop')
    made = replicas.make('tpu 2')

    @tf.function(autograph=False)
    def program(ids):
        embedding.enqueue({'a': ids}, training=False)
        return made.run(lambda: embedding.dequeue()['a'])

    assert embedding.id_counts() == {}
    found = program(replicas.split(made, [[1, 6], [-1], [1, 6], [-1]]))
    for one in made.experimental_local_results(found):
        assert one.numpy()[:, 0].tolist() == [1., 0.]
    assert embedding.id_counts() == {'a': {'truncated': 0, 'out_of_range': 4}}


@pytest.mark.parametrize('ids, weights, message', [
    ([1, 6], [1, 1], 'E501 feature .*a.*; got 6'), ([1, 2], [1], 'E518 feature .*a.*1 weights for'),
    ([1, 2], [1, np.nan], 'E518 feature .*a.*finite; got nan')])
def test_what_is_wrong_in_one_replica_is_said_while_others_wait_for_it(ids, weights, message):
    embedding, made = embedding_of('tpu 2'), replicas.make('tpu 2')
    embedding.build(per_replica_batch_size=2)

    def sparse(values, dtype):
        return tf.SparseTensor([[place, 0] for place in range(len(values))],
                               tf.constant(values, dtype), [2, 1])

    @tf.function(autograph=False, input_signature=2 * [[
        tf.SparseTensorSpec([2, 1], tf.int64), tf.SparseTensorSpec([2, 1], tf.float32)]])
    def program(first, second):
        by_replica = made.experimental_distribute_values_from_function(
            lambda context: (first, second)[context.replica_id_in_sync_group])

        def run(of_replica):
            embedding.enqueue({'a': of_replica[0]}, {'a': of_replica[1]}, training=False)
            return tf.distribute.get_replica_context().all_reduce(
                'sum', tf.reduce_sum(embedding.dequeue()['a']))
        return made.run(run, (by_replica,))

    right = [sparse([1, 2], tf.int64), sparse([1, 1], tf.float32)]
    for _ in range(5):
        with pytest.raises(FAILS, match=f'(?s){message}'):
            program(right, [sparse(ids, tf.int64), sparse(weights, tf.float32)])
    assert made.experimental_local_results(program(right, right))[0].numpy() == 2 * 2 * 2


@pytest.mark.parametrize('training', [tf.constant, tf.Variable])
def test_the_training_flag_may_be_a_tensor(training):
    embedding, flag = embedding_of(), training(True)

    @tf.function(autograph=False)
    def step(flag):
        embedding.enqueue({'a': IDS}, training=flag)
        found = embedding.dequeue()['a']
        tf.cond(flag, lambda: embedding.apply_gradients({'a': tf.ones([2, 2])}) or 0, lambda: 0)
        return found

    for value, expected in ((True, 1.), (False, .5), (True, .5), (False, 0.)):
        flag = training(value)
        assert step(flag).numpy()[0, 0] == expected


def test_objects_side_by_side_and_functions_of_other_shapes_of_ids():
    first, second = embedding_of(), embedding_of(optimizer=api.SGD(1.))
    step = step_of(first)

    @tf.function(autograph=False)
    def both():
        for one in (first, second):
            one.enqueue({'a': IDS})
        found = [one.dequeue()['a'] for one in (first, second)]
        for one in (second, first):
            one.apply_gradients({'a': tf.ones([2, 2])})
        return found

    step(tf.ragged.constant([[1], [1, 2]]))
    step(tf.constant([[3], [3]], tf.int64))
    assert [one.numpy()[0, 0] for one in both()] == [0., 1.]
    assert rows_of(first)[:4, 0].tolist() == [1., -.5, 0., 0.]
    assert rows_of(second)[:4, 0].tolist() == [1., 0., 0., 1.]


def test_tables_are_variables_to_read_and_to_assign():
    embedding = embedding_of('one device')
    (table, variable), = embedding.embedding_tables.items()
    assert table.name == 't' and variable.trainable and variable.shape == (6, 2)
    step, read = step_of(embedding), tf.function(lambda: tf.gather(variable, IDS))
    step(IDS)
    assert read().numpy().tolist() == [[.5, .5]] * 2 == variable.numpy()[1:3].tolist()
    variable.assign(tf.fill([6, 2], 7.))
    assert step(IDS).numpy()[0, 0] == 7.
    assert read().numpy()[0, 0] == 6.5
    assert embedding.embedding_tables[table] is variable


@pytest.mark.parametrize('assign', [
    lambda variable, value: variable.assign(value),
    lambda variable, value: tf.py_function(
        lambda new: variable.assign(new).read_value(), [value], tf.float32),
    lambda variable, value: tf.cond(
        value[0, 0] > 0, lambda: variable.assign(value).read_value(), variable.read_value),
    lambda variable, value: tf.function(lambda: variable.assign(value).read_value())()],
    ids=['directly', 'in Python', 'in a branch', 'in a function'])
def test_a_function_may_assign_between_a_lookup_and_its_update(assign):
    embedding = embedding_of('one device')
    (_, variable), = embedding.embedding_tables.items()

    @tf.function(autograph=False)
    def step(ids, value):
        embedding.enqueue({'a': ids})
        found = embedding.dequeue()['a']
        with tf.control_dependencies([found]):
            assigned = assign(variable, value)
        # TensorFlow orders what takes handles, but not Python functions.
        with tf.control_dependencies([] if assigned is None else [assigned]):
            embedding.apply_gradients({'a': tf.ones_like(found)})
        return found, variable.read_value()

    for before, now in ((1, 7), (6.5, 9)):
        found, after = step(IDS, tf.fill([6, 2], float(now)))
        assert found.numpy()[:, 0].tolist() == [before] * 2
        assert after.numpy()[:, 0].tolist() == [now] + [now - .5] * 2 + [now] * 3


def test_a_function_outlives_the_name_of_its_object_and_runs_in_any_thread():
    embedding = embedding_of()
    step = step_of(embedding)
    del embedding
    found = []
    thread = threading.Thread(target=lambda: found.append(step(IDS)))
    thread.start()
    thread.join()
    gc.collect()
    found.append(step(IDS))
    assert [one.numpy()[0, 0] for one in found] == [1., .5]


def test_a_function_that_xla_compiles_is_refused():
    embedding = embedding_of()
    step_of(embedding)(IDS)

    def enqueue(ids):
        embedding.enqueue({'a': ids}, training=False)
        return embedding.dequeue()['a']

    with pytest.raises(CallError, match='E542 enqueue: XLA cannot compile .*jit_compile=True'):
        tf.function(enqueue, jit_compile=True, autograph=False)(IDS)
    assert step_of(embedding, training=False)(IDS).numpy()[0, 0] == .5
