import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core import deployment as d
from estimator_tpu_embedding.core.specs import Topology
from estimator_tpu_embedding.errors import InputError, InputShapeError
from estimator_tpu_embedding.ops import checks
from estimator_tpu_embedding.runner.core_batches import Batch, CoreQueue, open_input


def opened(source, cores=1, hosts=1, share='elements', size=1, **kwargs):
    """The input of the last invocation, where each feeds `cores`."""
    topology = Topology(num_hosts=hosts, cores_per_host=cores)
    invocations = d.per_host(topology)
    return open_input(source, d.Deployment(
        topology=topology, system=topology, share=share, invocations=invocations,
        batch_size=size * cores * hosts, batch_size_per_core=size,
        input_batch_size=size * (cores if share == 'split' else 1)), invocations[-1], **kwargs)


@pytest.mark.parametrize('element, expected', [
    ({'x': 1}, ({'x': 1}, None)), (({'x': 1}, 2), ({'x': 1}, 2)), ((3, {'y': 4}), (3, {'y': 4})),
    (((5, 6), 7), ((5, 6), 7))])
def test_elements_are_features_or_features_and_labels(element, expected):
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = opened(tf.data.Dataset.from_tensors(element))
        session.run(drawn.initializer)
        features, labels, _ = drawn.batches[0]
        assert (labels is None) == (expected[1] is None)
        values = session.run((features,) if labels is None else (features, labels))
        assert (*values, None)[:2] == expected


def test_i19_a_tuple_of_three_lists_the_accepted_forms():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match='E514 input_fn.*got a tuple of 3'):
            opened(tf.data.Dataset.from_tensors((1, 2, 3)))


def test_cores_are_served_in_order_and_the_end_of_the_data_is_our_own_sentinel():
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = opened(tf.data.Dataset.range(5), cores=2, hosts=4)
        session.run(drawn.initializer)
        batches = [batch.features for batch in drawn.batches]
        assert session.run(batches) == [0, 1]
        assert session.run(batches) == [2, 3]
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(batches)
        problem = checks.message_to_problem(caught.value.message)
        assert (problem.code, problem.where) == ('E521', 'input of host 3')


def values_of(drawn):
    """Features and labels of every core, sparse and ragged ones dense."""
    def dense(leaf):
        return (tf.sparse.to_dense(leaf, -1) if isinstance(leaf, tf.SparseTensor)
                else leaf.to_tensor(-1) if isinstance(leaf, tf.RaggedTensor) else leaf)
    with tf.Session() as session:
        session.run(drawn.initializer)
        return session.run([[
            tf.nest.map_structure(dense, batch.features),
            tf.zeros([]) if batch.labels is None else batch.labels] for batch in drawn.batches])


def test_a_batch_for_all_cores_of_a_host_is_cut_in_their_order():
    with tf.Graph().as_default():
        element = ({'dense': np.arange(4.).reshape(4, 1),
                    'sparse': tf.SparseTensor([[0, 1], [2, 0], [3, 1]], [7, 8, 9], [4, 2]),
                    'ragged': tf.ragged.constant([[1], [2, 3], [], [4]])}, np.arange(4))
        first, second = values_of(opened(
            tf.data.Dataset.from_tensors(element), cores=2, share='split', size=2))
    for name, expected in (('dense', [[0], [1]]), ('sparse', [[-1, 7], [-1, -1]]),
                           ('ragged', [[1, -1], [2, 3]])):
        np.testing.assert_array_equal(first[0][name], expected)
    for name, expected in (('dense', [[2], [3]]), ('sparse', [[8, -1], [-1, 9]]),
                           ('ragged', [[-1], [4]])):
        np.testing.assert_array_equal(second[0][name], expected)
    assert (first[1].tolist(), second[1].tolist()) == ([0, 1], [2, 3])


def test_batch_axis_says_which_dimension_of_each_tensor_is_cut():
    with tf.Graph().as_default():
        element = ({'a': np.arange(8).reshape(2, 4), 'b': np.array([5, 6])}, np.arange(2))
        first, second = values_of(opened(
            tf.data.Dataset.from_tensors(element), cores=2, share='split', axes=[1, None, 0]))
    np.testing.assert_array_equal(first[0]['a'], [[0, 1], [4, 5]])
    np.testing.assert_array_equal(second[0]['a'], [[2, 3], [6, 7]])
    assert first[0]['b'].tolist() == second[0]['b'].tolist() == [5, 6]
    assert (first[1].tolist(), second[1].tolist()) == ([0], [1])


def test_copies_give_the_same_batch_to_every_core():
    with tf.Graph().as_default():
        first, second = values_of(opened(
            tf.data.Dataset.range(6).batch(3), cores=2, share='copies', size=3))
    assert first[0].tolist() == second[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize('element', [np.arange(5), np.arange(3), np.int64(3)])
def test_a_batch_of_another_size_than_the_cores_take_is_refused(element):
    with tf.Graph().as_default(), pytest.raises(InputShapeError, match='E511 input of host 0: '):
        opened(tf.data.Dataset.from_tensors(element), cores=2, share='split', size=2)


def test_batch_axis_has_an_entry_per_tensor_and_divides_its_dimension():
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensors((np.zeros([2, 3]), np.zeros([2])))
        with pytest.raises(InputShapeError, match='E511 batch_axis: .* 2 in all; got 1'):
            opened(data, cores=2, share='split', axes=[0])
        with pytest.raises(InputShapeError, match='dimension 1 must be a multiple of 2'):
            opened(data, cores=2, share='split', axes=[1, 0])
        with pytest.raises(InputShapeError, match='batch_axis: a dimension must be >= 0'):
            opened(data, cores=2, share='split', axes=[-1, 0])


@pytest.mark.parametrize('batch', [
    Batch({'b': np.ones([2, 3], np.float32), 'a': np.array([b'word', b''])}, np.array([1, 2])),
    Batch({}, None), Batch((np.float32(1), [np.array([2])]), {'y': np.array([True])})])
def test_a_batch_comes_out_of_the_queue_as_it_went_in(batch):
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = Batch(*[tf.nest.map_structure(tf.constant, part) if part is not None else None
                          for part in batch])
        queue = CoreQueue(0, tensors)
        session.run(queue.enqueue(tensors))
        out, _ = queue.dequeue()
        for before, after in zip(batch, out):
            tf.nest.assert_same_structure(before, after)
        values = session.run([leaf for leaf in tf.nest.flatten(out) if leaf is not None])
        expected = [leaf for leaf in tf.nest.flatten(batch) if leaf is not None]
        for value, one in zip(values, expected, strict=True):
            np.testing.assert_array_equal(value, one)


def test_i13_i14_what_is_left_for_the_model_must_be_dense_and_of_static_shape():
    with tf.Graph().as_default():
        sparse = tf.SparseTensor([[0, 0]], [1], [1, 1])
        with pytest.raises(InputError, match='E515 features "x": what no embedding column looks '
                                             'up must be a dense tensor; got SparseTensor'):
            CoreQueue(0, Batch({'x': sparse}, None))
        with pytest.raises(ValueError, match='The features to the model returned by input_fn must '
                                             'have static shape. Tensor: '):
            CoreQueue(0, Batch({'x': tf.placeholder(tf.float32, [None, 2])}, None))
        with pytest.raises(ValueError, match='The labels to the model returned by input_fn must '
                                             'have static shape.*drop_remainder=True'):
            CoreQueue(0, Batch({}, tf.placeholder(tf.float32, [None])))
