"""Labels and other input are seen where batches pass, by names that both APIs give them."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from estimator_tpu_embedding.migration.agreement.inputs import (
    named,
    seen_in_batches,
    seen_in_dataset,
    seen_in_input_fn,
)


class Notes(list):
    """What was told."""

    def __call__(self, pipeline, element, values):
        self.append((pipeline, element, {name: value.tolist() for name, value in values.items()}))


@pytest.fixture
def notes():
    return Notes()


def dataset():
    sparse = tf.sparse.from_dense([[1, 2], [3, 0]])
    return tf.data.Dataset.from_tensor_slices((
        {'age': [[30.], [40.]], 'ids': sparse, 'word': ['a', 'b']}, [1, 0])).batch(1)


@pytest.mark.parametrize('element, names', [
    (({'age': 1, 'inner': {'size': 2}}, 3), {'age': 1, 'size': 2, 'labels': 3}),
    ((({'age': 1}, ({'size': 2}, 9)), 3), {'age': 1, 'size': 2, 'labels': 3}),
    (({'age': 1}, {'clicked': 3}), {'age': 1, 'clicked': 3}),
    ({'age': 1}, {'age': 1}), ((1, 2, 3), {}), (1, {}),
    (({'age': 1}, {'age': 2}), {'age': 1})])
def test_a_value_has_the_name_of_its_key_or_is_a_label(element, names):
    assert named(element) == names


def test_a_dataset_tells_numbers_and_keeps_its_elements(notes):
    seen = list(seen_in_dataset(dataset(), 4, notes))
    assert notes == [(4, 0, {'age': [[30.]], 'labels': [1]}),
                     (4, 1, {'age': [[40.]], 'labels': [0]})]
    for (features, label), (expected, expected_label) in zip(seen, dataset()):
        assert features.keys() == expected.keys() and label == expected_label
        np.testing.assert_array_equal(tf.sparse.to_dense(features['ids']),
                                      tf.sparse.to_dense(expected['ids']))
        assert features['word'] == expected['word']


def test_an_input_fn_keeps_its_signature_and_each_of_its_calls_is_a_pipeline(notes):
    def input_fn(params, config=None):
        return dataset().take(params['batches'])

    seen = seen_in_input_fn(input_fn, notes)
    assert inspect.getfullargspec(seen) == inspect.getfullargspec(input_fn)
    for _ in range(2):
        list(seen(params={'batches': 1}))
    assert [(pipeline, element) for pipeline, element, _ in notes] == [(0, 0), (1, 0)]


def test_what_is_no_dataset_stays_as_it_is(notes):
    tensors = {'age': tf.constant(1)}
    assert seen_in_dataset(tensors, 0, notes) is tensors
    assert notes == []


def test_batches_tell_numbers_once_for_each_replica(notes):
    strategy = tf.distribute.MirroredStrategy(['CPU:0'])
    distributed = strategy.experimental_distribute_dataset(dataset().unbatch().batch(2))
    plain = list(seen_in_batches(dataset(), notes))
    assert len(plain) == 2 and notes == [
        (0, 0, {'age': [[30.]], 'labels': [1]}), (0, 1, {'age': [[40.]], 'labels': [0]})]
    notes.clear()
    list(seen_in_batches(distributed, notes))
    assert notes == [(0, 0, {'age': [[30.], [40.]], 'labels': [1, 0]})]
    notes.clear()
    list(seen_in_batches([({'age': np.array([1.])}, np.array([2])), 'text'], notes))
    assert notes == [(0, 0, {'age': [1.], 'labels': [2]})]
