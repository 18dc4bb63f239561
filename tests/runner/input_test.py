import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.errors import InputError
from estimator_tpu_embedding.ops import checks
from estimator_tpu_embedding.runner.input import Batch, CoreQueue, open_dataset


@pytest.mark.parametrize('element, expected', [
    ({'x': 1}, ({'x': 1}, None)), (({'x': 1}, 2), ({'x': 1}, 2)), ((3, {'y': 4}), (3, {'y': 4})),
    (((5, 6), 7), ((5, 6), 7))])
def test_elements_are_features_or_features_and_labels(element, expected):
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = open_dataset(tf.data.Dataset.from_tensors(element), 0, 1)
        session.run(drawn.initializer)
        features, labels, _ = drawn.batches[0]
        assert (labels is None) == (expected[1] is None)
        values = session.run((features,) if labels is None else (features, labels))
        assert (*values, None)[:2] == expected


def test_a_tuple_of_three_lists_the_accepted_forms():
    with tf.Graph().as_default():
        with pytest.raises(InputError, match='E514 input_fn.*got a tuple of 3'):
            open_dataset(tf.data.Dataset.from_tensors((1, 2, 3)), 0, 1)


def test_cores_are_served_in_order_and_the_end_of_the_data_is_our_own_sentinel():
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = open_dataset(tf.data.Dataset.range(5), 3, 2)
        session.run(drawn.initializer)
        batches = [batch.features for batch in drawn.batches]
        assert session.run(batches) == [0, 1]
        assert session.run(batches) == [2, 3]
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(batches)
        problem = checks.message_to_problem(caught.value.message)
        assert (problem.code, problem.where) == ('E521', 'input of host 3')


@pytest.mark.parametrize('batch', [
    Batch({'b': np.ones([2, 3], np.float32), 'a': np.array([b'word', b''])}, np.array([1, 2])),
    Batch({}, None), Batch((np.float32(1), [np.array([2])]), {'y': np.array([True])})])
def test_a_batch_comes_out_of_the_queue_as_it_went_in(batch):
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = Batch(*[tf.nest.map_structure(tf.constant, part) if part is not None else None
                          for part in batch])
        queue = CoreQueue(0, tensors)
        session.run(queue.enqueue(tensors))
        out = queue.dequeue()
        for before, after in zip(batch, out):
            tf.nest.assert_same_structure(before, after)
        values = session.run([leaf for leaf in tf.nest.flatten(out) if leaf is not None])
        expected = [leaf for leaf in tf.nest.flatten(batch) if leaf is not None]
        for value, one in zip(values, expected, strict=True):
            np.testing.assert_array_equal(value, one)


def test_what_is_left_for_the_model_must_be_dense_and_of_static_shape():
    with tf.Graph().as_default():
        sparse = tf.SparseTensor([[0, 0]], [1], [1, 1])
        with pytest.raises(InputError, match='E515 features "x": what no embedding column looks '
                                             'up must be a dense tensor; got SparseTensor'):
            CoreQueue(0, Batch({'x': sparse}, None))
        with pytest.raises(ValueError, match='The labels to the model returned by input_fn must '
                                             'have static shape.*drop_remainder=True'):
            CoreQueue(0, Batch({}, tf.placeholder(tf.float32, [None])))
