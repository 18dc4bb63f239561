import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.errors import InputError, InputShapeError
from estimator_tpu_embedding.ops import checks, ids
from estimator_tpu_embedding.ops.ids import weights_of_ragged, weights_of_sparse

FAILS = tf.errors.InvalidArgumentError
SPARSE = tf.SparseTensorValue([[0, 0], [2, 0], [2, 1]], np.array([5, 7, 5], np.int64), [3, 2])


def tensors(*counts):
    """Counts as tensors, also those that are known when the graph is built."""
    return [tf.convert_to_tensor(count, tf.int64) for count in counts]


def tensor(value):
    if isinstance(value, tf.SparseTensorValue):
        return tf.SparseTensor.from_value(value)
    if isinstance(value, np.ndarray):
        return tf.constant(value)
    return value() if callable(value) else value


def read(value, *, num_samples=3, combiner='sum', has_missing=False):
    """(samples, ids, seen, missing)."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch, counts, _ = ids.IdReader(
            name='f', core='0', num_samples=num_samples, combiner=combiner, vocabulary_size=10,
            has_missing=has_missing).read(tensor(value))
        samples, values, seen, missing = session.run(
            [batch.samples, batch.ids, *tensors(counts.seen, counts.missing)])
        return samples.tolist(), values.tolist(), int(seen), int(missing)


def problem_of_run(*args, **kwargs):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        read(*args, **kwargs)
    return checks.message_to_problem(caught.value.message)


@pytest.mark.parametrize('value', [np.array([4, 0, 6]), np.array([[4], [0], [6]])],
                         ids=['rank 1', 'rank 2'])
def test_without_combiner_every_sample_has_one_id_and_zero_is_an_id(value):
    assert read(value, combiner=None) == ([0, 1, 2], [4, 0, 6], 3, 0)


def test_i07_unsorted_sparse_ids_are_sorted_by_sample():
    places = [[2, 0], [0, 1], [1, 0], [0, 0], [2, 1]]
    value = tf.SparseTensorValue(places, np.array([1, 2, 3, 4, 5], np.int64), [3, 2])
    assert read(value) == ([0, 0, 1, 2, 2], [4, 2, 3, 1, 5], 5, 0)  # Of a sample by place.


@pytest.mark.parametrize('bad', [10, -1, -2**63, 2**63 - 1, 2**32 + 1])
def test_i01_i02_i03_an_id_out_of_range_names_feature_value_sample_and_vocabulary_size(bad):
    problem = problem_of_run(np.array([1, bad, 9]))
    assert str(problem) == (
        'E501 feature "f" on core 0: ids must be in [0, 10), the vocabulary size of its table; '
        f'got {bad} in sample 1 (1 in all).  Clean the data, raise the vocabulary size, or set '
        'install(ids=...) or RunConfig(id_policy=...).')


def test_i02_minus_one_of_an_unknown_word_is_missing_and_no_other_negative_id_is():
    assert read(np.array([-1, 4, -1]), has_missing=True) == ([1], [4], 1, 2)
    assert problem_of_run(np.array([-2, 4, -1]), has_missing=True).code == 'E501'


@pytest.mark.parametrize('value, error, text', [
    (np.array([1., 2., 3.], np.float32), InputError, 'E510 feature "f" on core 0: ids must be '
     'int32 or int64; got float32.'),
    (np.array([True, False, True]), InputError, 'ids must be int32 or int64; got bool.'),
    (np.array([1, 2, 3], np.uint64), InputError, 'E510 feature "f" on core 0: ids must be int32 '
     'or int64; got uint64.'),
    (np.array(['a', 'b', 'c']), InputError, 'E510 feature "f" on core 0: ids must be int32 or '
     'int64; got string.'),
    ('words', InputError, 'E510 feature "f" on core 0: ids must come as a Tensor, SparseTensor or '
     'RaggedTensor; got str.'),
    (np.array([1, 2]), InputShapeError, r'E511 feature "f" on core 0: the batch must have 3 '
     r'samples per core; got shape \(2,\)'),
    (np.array(7), InputShapeError, 'E511'),
    (lambda: tf.placeholder(tf.int64), InputShapeError, 'E511 feature "f" on core 0: the rank')])
def test_i11_ids_of_another_form_are_refused_when_the_graph_is_built(value, error, text):
    with pytest.raises(error, match=text):
        read(value)


def sparse(places, values, shape, dtype=np.int64):
    return tf.SparseTensorValue(places, np.array(values, dtype), shape)


def read_sequence(value, length, num_samples=3, combiner='sum'):
    """(places as `b * L + t`, ids, lengths, missing, truncated)."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch, counts, lengths = ids.IdReader(
            name='f', num_samples=num_samples, combiner=combiner, vocabulary_size=10,
            sequence_length=length).read(tensor(value))
        found = session.run([batch.samples, batch.ids, lengths,
                             *tensors(counts.missing, counts.truncated)])
        assert batch.num_samples == num_samples * length
        return [part.tolist() for part in found]


# Sample 0 has ids at places 0 and 2, sample 1 none, sample 2 three and so one too many.
GAPS = sparse([[0, 0], [0, 2], [2, 0], [2, 1], [2, 3]], [5, 6, 7, 8, 9], [3, 4])


def test_i21_ids_of_a_sequence_keep_their_places_and_what_is_too_long_is_cut_and_counted():
    # Length 3: sample 2 begins at place 6; its id at place 3 is cut. Lengths are last place + 1.
    assert read_sequence(GAPS, 3) == [[0, 2, 6, 7], [5, 6, 7, 8], [3, 0, 3], 0, 1]


def test_a_sequence_of_rank_3_has_several_ids_at_one_place():
    value = sparse([[0, 1, 0], [0, 1, 1], [1, 0, 0]], [5, 6, 7], [2, 2, 2])
    assert read_sequence(value, 2, 2) == [[1, 1, 2], [5, 6, 7], [2, 1], 0, 0]


@pytest.mark.parametrize('combiner', ['mean', None])
def test_zeros_of_a_dense_sequence_are_gaps(combiner):
    value = np.array([[5, 0, 6], [0, 0, 0], [0, 7, 0]])
    assert read_sequence(value, 3, combiner=combiner) == [
        [0, 2, 7], [5, 6, 7], [3, 0, 2], 6, 0]


@pytest.mark.parametrize('value', [
    np.zeros([3], np.int64), np.zeros([3, 2, 2, 2], np.int64),
    lambda: tf.sparse.placeholder(tf.int64)])
def test_a_sequence_of_another_rank_is_refused(value):
    with pytest.raises(InputShapeError, match='E516 feature "f": a sequence must have a known'):
        read_sequence(value, 2)


@pytest.mark.parametrize('policy, samples, left', [
    ('drop', [1, 4], [3, 9]), ('clip', [0, 1, 2, 3, 4], [0, 3, 9, 9, 9]),
    ('mod', [0, 1, 2, 3, 4], [9, 3, 0, 7, 9])])
def test_i01_i02_i03_a_policy_makes_ids_legal_and_counts_those_that_were_not(policy, samples, left):
    # -1, 10 and 2**32 + 1 are not in [0, 10); the last is 4294967297, which never becomes row 1.
    with tf.Graph().as_default(), tf.Session() as session:
        batch, counts, _ = ids.IdReader(
            name='f', num_samples=5, combiner='sum', vocabulary_size=10, policy=policy).read(
                tf.constant([-1, 3, 10, 2**32 + 1, 9], tf.int64))
        assert session.run([batch.samples, batch.ids])[0].tolist() == samples
        assert session.run(batch.ids).tolist() == left
        assert session.run(tensors(counts.seen, counts.out_of_range)) == [len(left), 3]


WHERE = 'feature "f"'


def sparse_of(places, values, dtype=tf.int64):
    return tf.SparseTensor(tf.reshape(tf.constant(places, tf.int64), [-1, 2]),
                           tf.constant(values, dtype), [3, 2])


def ragged(rows, dtype=tf.int64):
    return tf.ragged.constant(rows, dtype=dtype, ragged_rank=1)


IDS, ROWS = sparse_of([[2, 0], [0, 1]], [7, 8]), ragged([[7], [], [8, 9]])


@pytest.mark.parametrize('dtype', [tf.float64, tf.float16, tf.int32])
def test_weights_of_any_numbers_are_float32_in_the_order_of_samples(dtype):
    found = weights_of_sparse(WHERE, IDS, sparse_of([[2, 0], [0, 1]], [5, 4], dtype))
    assert found.dtype == tf.float32 and found.numpy().tolist() == [4., 5.]
    found = weights_of_ragged(WHERE, ROWS, ragged([[1], [], [2, 3]], dtype))
    assert found.dtype == tf.float32 and found.numpy().tolist() == [1., 2., 3.]


@pytest.mark.parametrize('of, ids, other', [
    (weights_of_sparse, IDS, tf.constant([1., 2.])), (weights_of_sparse, IDS, ROWS),
    (weights_of_sparse, IDS, sparse_of([[2, 0], [0, 1]], ['a', 'b'], tf.string)),
    (weights_of_ragged, ROWS, IDS), (weights_of_ragged, ROWS, ragged([['a'], []], tf.string)),
    (weights_of_ragged, ROWS, [[1.]])])
def test_what_are_no_numbers_of_the_same_kind_are_refused(of, ids, other):
    with pytest.raises(InputShapeError, match=f'E517 {WHERE}'):
        of(WHERE, ids, other)


@pytest.mark.parametrize('of, ids, other', [
    (weights_of_sparse, IDS, sparse_of([[2, 0]], [1])),
    (weights_of_sparse, IDS, sparse_of([[0, 1], [2, 0]], [1, 2])),  # Not one by one.
    (weights_of_ragged, ROWS, ragged([[1], [2, 3]])),
    (weights_of_ragged, ROWS, ragged([[1], [2], [3]]))])
def test_i09_weights_at_other_places_are_refused_before_and_while_a_function_runs(of, ids, other):
    with pytest.raises((InputShapeError, FAILS), match='E518.*places of the ids'):
        of(WHERE, ids, other)
    spec = (tf.SparseTensorSpec([None, None], tf.int64) if of is weights_of_sparse
            else tf.RaggedTensorSpec([None, None], tf.int64))
    step = tf.function(lambda one, two: of(WHERE, one, two), input_signature=[spec, spec])
    with pytest.raises(FAILS, match='E518'):
        step(ids, other)


@pytest.mark.parametrize('bad', [float('nan'), float('inf')])
def test_i05_weights_are_finite(bad):
    with pytest.raises(FAILS, match='(?s)E518.*must be finite.*(nan|inf)'):
        weights_of_sparse(WHERE, IDS, sparse_of([[2, 0], [0, 1]], [bad, 1.], tf.float32))
    with pytest.raises(FAILS, match='(?s)E518.*must be finite'):
        weights_of_ragged(WHERE, ROWS, ragged([[1.], [], [bad, 1.]], tf.float32))
