"""One bad feature of several, on the last core of a job, at its third step: who is named."""

from unittest import mock

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness import graphs, jobs, tasks
from harness.parts import soak_except

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.errors import InputError
from estimator_tpu_embedding.estimator import workers
from estimator_tpu_embedding.runner import progress
from estimator_tpu_embedding.runner.faults import DivergedError

PLACES = np.array([[0, 0], [0, 1], [1, 0]])  # Two ids, and one, of the two samples of a core.
LATER = np.array([[0, 0], [0, 1], [2, 0]])
GOOD = {
    'dense': [0, 9], 'int32': [9, 0], 'matrix': [[0, 9], [5, 5]], 'words': ['a', 'b'],
    'sparse': (PLACES, [1, 2, 3]), 'ragged': ([1, 2, 3], [0, 2, 3]),
    'weighted': (PLACES, [4, 5, 6]), 'how_much': (PLACES, [1., 2., 3.]),
    'series': ([1, 2, 3], [0, 2, 3]), 'poison': [[1.], [1.]]}
TYPES = {'int32': tf.int32, 'words': tf.string, 'how_much': tf.float32, 'poison': tf.float32}
RANGE = 'ids must be in [0, 10), the vocabulary size of its table; got '


def columns_of_all_kinds():
    column = tf.feature_column
    made = {name: column.categorical_column_with_identity(name, 10) for name in (
        'dense', 'int32', 'matrix', 'sparse', 'ragged')}
    made['words'] = column.categorical_column_with_vocabulary_list('words', ['a', 'b'])
    made['weighted'] = column.weighted_categorical_column(
        column.categorical_column_with_identity('weighted', 10), 'how_much')
    made['series'] = column.sequence_categorical_column_with_identity('series', 10)
    return [ete.embedding_column(of, 2, 'mean', initializer=tf.ones_initializer(), **(
        {'max_sequence_length': 2} if name == 'series' else {}))
        for name, of in made.items()]


def tensor(name, value):
    """A part of `GOOD`, or of what replaces it."""
    kind = TYPES.get(name, tf.int64)
    if name in ('ragged', 'series'):
        return tf.RaggedTensor.from_row_splits(
            tf.constant(value[0], kind), tf.constant(value[1], tf.int64))
    if isinstance(value, tuple):
        return tf.SparseTensor(tf.constant(value[0], tf.int64), tf.constant(value[1], kind),
                               tf.constant(value[2] if value[2:] else [2, 2], tf.int64))
    return tf.constant(value, kind)


def chosen(condition, one, other):
    """Tensors of which only the session knows how many ids they have."""
    flat = [tf.nest.flatten(each, expand_composites=True) for each in (one, other)]
    parts = tf.cond(condition, lambda: tf.nest.map_structure(tf.identity, flat[0]),
                    lambda: tf.nest.map_structure(tf.identity, flat[1]))
    if isinstance(other, tf.SparseTensor):  # Packed as `other` it would have the shape of that.
        return tf.SparseTensor(*parts)
    return tf.nest.pack_sequence_as(other, parts, expand_composites=True)


def input_fn_of(changed, cores, places=((-1, -1),), prefetched=0):
    """Five steps of `GOOD`; in the third, cores at `places`, (host, core of it), get a change."""
    def input_fn(params):
        context = params['context']
        bad = [2 * cores + core % cores for host, core in places
               if host % context.num_hosts == context.current_host]

        def element(number):
            is_bad = tf.reduce_any(tf.equal(number, tf.constant(bad, tf.int64)))
            return {name: tensor(name, value) if name not in changed else chosen(
                is_bad, tensor(name, changed[name]), tensor(name, value))
                for name, value in GOOD.items()}, tf.ones([2])
        return tf.data.Dataset.range(5 * cores).map(element).prefetch(prefetched)
    return input_fn


def model_fn_of(columns):
    """The gradient of the first activation is 0 / 0 where `poison` is 0; the loss is finite."""
    def model_fn(features, labels, mode, params):
        poison = features.pop('poison')
        series = [one for one in columns if one.get_feature_key_name() == 'series']
        net = tf.keras.layers.DenseFeatures([one for one in columns if one not in series])(features)
        first = net[:, :2]
        placed, _ = tf.keras.experimental.SequenceFeatures(series)(features)
        net = tf.concat([net, tf.reduce_sum(placed, 1)], 1)
        if mode == 'infer':
            return ete.TPUEstimatorSpec(mode, predictions={'y': tf.reduce_sum(net, 1)})
        return jobs.poisoned_spec(mode, net, first, poison)
    return model_fn


def estimator_of(directory, topology, *, pipelined=False, **kwargs):
    columns = columns_of_all_kinds()
    size = 2 * topology[0] * topology[1]
    return ete.TPUEstimator(
        model_fn=model_fn_of(columns),
        config=jobs.run_config(directory, *topology, iterations=1, save_checkpoints_steps=1,
                               **kwargs),
        train_batch_size=size, eval_batch_size=size, predict_batch_size=size,
        embedding_config_spec=ete.EmbeddingConfigSpec(
            columns, ete.AdagradParameters(.5), pipeline_execution_with_tensor_core=pipelined))


def assert_refused(call, code, feature, core, text):
    """`call` fails at the third batch of the last host, with a feature and a core."""
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(f'{code} feature "{feature}" on core {core}: {text}')
    assert caught.value.__notes__[0] == 'raised by the infeed of host {} at its batch 3'.format(
        1 if core < 4 else 0)


TWO_AT_ONCE = {'int32': [-1, 10], 'how_much': (PLACES, [1., np.inf, 3.])}
CASES = [
    (TWO_AT_ONCE, 'E501', 'int32', RANGE + '-1, 10 in sample 0, 1 (2 in all).'),
    ({'dense': [2**32 + 1, 0]}, 'E501', 'dense', RANGE + '4294967297 in sample 0 (1 in all).'),
    ({'matrix': [[0, 9], [-7, 0]]}, 'E501', 'matrix', RANGE + '-7 in sample 1 (1 in all).'),
    ({'sparse': (PLACES, [1, 2, 10])}, 'E501', 'sparse', RANGE + '10 in sample 1 (1 in all).'),
    ({'sparse': (LATER, [1, 2, 3])}, 'E511', 'sparse', 'samples must be in [0, 2); got 2.'),
    ({'sparse': (PLACES, [1, 2, 3], [3, 2])}, 'E511', 'sparse',
     'the batch must have 2 samples per core; got 3.'),
    ({'ragged': ([1, -2], [0, 2, 2])}, 'E501', 'ragged', RANGE + '-2 in sample 0 (1 in all).'),
    ({'ragged': ([1, 2, 3], [0, 1, 2, 3])}, 'E511', 'ragged',
     'the batch must have 2 samples per core; got 3.'),
    ({'weighted': (LATER, [4, 5, 6]), 'how_much': (LATER, [1., 2., 3.])}, 'E511', 'weighted',
     'samples must be in [0, 2); got 2.'),
    ({'how_much': (PLACES[:2], [1., 2.])}, 'E518', 'weighted',
     'weights must be at the places of the ids; got 2 weights for 3 ids.'),
    ({'how_much': (LATER, [1., 2., 3.])}, 'E518', 'weighted',
     'weights must be at the places of the ids; got 3 weights for 3 ids.'),
    ({'how_much': (PLACES, [1., np.nan, 3.])}, 'E518', 'weighted',
     'weights must be finite; got nan.'),
    # Places of a sequence are the samples of its batch: place 0 of sample 1 is number 2.
    ({'series': ([1, 2, 10], [0, 2, 3])}, 'E501', 'series', RANGE + '10 in sample 2 (1 in all).'),
    ({'series': ([1, 2, 3], [0, 1, 2, 3])}, 'E511', 'series',
     'the batch must have 2 samples per core; got 3.')]


@pytest.mark.parametrize('topology, changed, code, feature, text', soak_except(
    [(((2, 2), (1, 8))[number % 2], *case) for number, case in enumerate([*CASES, CASES[0]])], 0))
def test_a_bad_feature_of_the_last_core_ends_training_before_its_step_and_is_named(
        tmp_path, topology, changed, code, feature, text):
    estimator = estimator_of(tmp_path, topology)
    assert_refused(lambda: estimator.train(input_fn_of(changed, topology[1]), max_steps=5),
                   code, feature, topology[0] * topology[1] - 1, text)
    assert estimator.get_variable_value('global_step') <= 2


@pytest.mark.soak
@pytest.mark.parametrize('kernels, pipelined, prefetched', [
    graphs.of_backend('native', True, 0), graphs.of_backend('native', False, 6),
    ('stock', True, 6), ('stock', False, 0)])
def test_input_that_is_ahead_of_the_step_names_its_batch(
        tmp_path, kernels, pipelined, prefetched):
    changed, code, feature, text = CASES[8]
    estimator = estimator_of(tmp_path, (2, 2), pipelined=pipelined, kernels=kernels)
    for _ in range(2):  # The second training begins at the checkpoint, with new input.
        assert_refused(lambda: estimator.train(
            input_fn_of(changed, 2, prefetched=prefetched), steps=5), code, feature, 3, text)
    assert estimator.get_variable_value('global_step') <= 4


@pytest.mark.soak
@pytest.mark.parametrize('verb', ['evaluate', 'predict'])
@pytest.mark.parametrize('changed, code, feature, text', [CASES[number] for number in (0, 4, 9)])
def test_evaluations_and_predictions_name_the_same(tmp_path, verb, changed, code, feature, text):
    estimator, input_fn = estimator_of(tmp_path, (2, 2)), input_fn_of(changed, 2)
    assert_refused(lambda: list(estimator.predict(input_fn)) if verb == 'predict'
                   else estimator.evaluate(input_fn, steps=5), code, feature, 3, text)


@pytest.mark.soak
@pytest.mark.parametrize('topology', [(2, 2), (1, 8)])
def test_of_two_bad_cores_one_is_named(tmp_path, topology):
    estimator = estimator_of(tmp_path, topology)
    with pytest.raises(InputError) as caught:
        estimator.train(input_fn_of({'int32': [0, 77]}, topology[1], ((0, 0), (-1, -1))),
                        max_steps=5)
    last = topology[0] * topology[1] - 1
    assert str(caught.value).startswith(tuple(
        f'E501 feature "int32" on core {core}: {RANGE}77 in sample 1 (1 in all).'
        for core in (0, last)))
    assert caught.value.__notes__[0].endswith('at its batch 3')


@pytest.mark.soak
@pytest.mark.parametrize('topology', [(2, 2), (1, 8)])
@pytest.mark.parametrize('kernels', graphs.KERNELS)
def test_a_gradient_of_the_last_core_that_is_not_finite_names_table_and_step(
        tmp_path, topology, kernels):
    estimator = estimator_of(tmp_path, topology, kernels=kernels)
    with pytest.raises(DivergedError) as caught:
        estimator.train(input_fn_of({'poison': [[1.], [0.]]}, topology[1]), max_steps=5)
    assert str(caught.value).startswith(
        'E801 table "tbl_dense": the gradients of its rows must be finite; got 2 elements that '
        'are not, at global step 2.')
    assert (caught.value.step, estimator.get_variable_value('global_step')) == (2, 2)


@pytest.mark.soak
@pytest.mark.parametrize('topology', [(2, 2), (1, 8)])
def test_what_is_no_error_is_counted_for_its_feature(tmp_path, topology, monkeypatch):
    lines = []
    monkeypatch.setattr(progress, '_sink', lines.append)
    none = np.zeros([0, 2])
    estimator_of(tmp_path, topology, log_step_count_steps=5).train(input_fn_of({
        'words': ['', 'zz'], 'matrix': [[0, 0], [0, 0]], 'sparse': (none, []),
        'ragged': ([], [0, 0, 0]), 'series': ([1, 2, 3, 4, 5], [0, 5, 5])}, topology[1]),
        max_steps=5)
    good = 5 * topology[0] * topology[1] - 1  # Batches, each of which lacks one id.
    assert lines[-1].endswith(
        f'; ids missing: matrix {good + 4}, words 2, ids truncated: series 3')


@pytest.mark.soak
@pytest.mark.parametrize('kernels, input_on_workers', [
    graphs.of_backend('native', True), ('stock', False), ('stock', True)])
@pytest.mark.parametrize('changed, code, feature, text', [CASES[number] for number in (0, 8)])
def test_hosts_that_are_tasks_name_the_same(
        tmp_path, kernels, input_on_workers, changed, code, feature, text):
    with mock.patch.object(workers, 'cluster_of', lambda config: tasks.Tasks(2)):
        estimator = estimator_of(
            tmp_path, (2, 2), kernels=kernels, input_on_workers=input_on_workers)
        assert_refused(lambda: estimator.train(input_fn_of(changed, 2), max_steps=5),
                       code, feature, 3, text)


@pytest.mark.soak
def test_a_job_with_shapes_of_tensorflow_1_names_the_same(tmp_path):
    changed, code, feature, text = CASES[9]
    tf.disable_v2_tensorshape()
    try:
        estimator = estimator_of(tmp_path, (2, 2))
        estimator.train(input_fn_of({}, 2), max_steps=2)
        assert_refused(lambda: estimator.train(input_fn_of(changed, 2), steps=5),
                       code, feature, 3, text)
    finally:
        tf.enable_v2_tensorshape()
    assert 2 <= estimator.get_variable_value('global_step') <= 4
