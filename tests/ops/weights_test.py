import pytest
import tensorflow as tf

from estimator_tpu_embedding.errors import InputShapeError
from estimator_tpu_embedding.ops import checks
from estimator_tpu_embedding.ops.ids import weights_of_ragged, weights_of_sparse

FAILS = tf.errors.InvalidArgumentError
WHERE = 'feature "f"'


def sparse(places, values, dtype=tf.int64):
    return tf.SparseTensor(tf.reshape(tf.constant(places, tf.int64), [-1, 2]),
                           tf.constant(values, dtype), [3, 2])


def ragged(rows, dtype=tf.int64):
    return tf.ragged.constant(rows, dtype=dtype, ragged_rank=1)


IDS, ROWS = sparse([[2, 0], [0, 1]], [7, 8]), ragged([[7], [], [8, 9]])


@pytest.mark.parametrize('dtype', [tf.float64, tf.float16, tf.int32])
def test_weights_of_any_numbers_are_float32_in_the_order_of_samples(dtype):
    found = weights_of_sparse(WHERE, IDS, sparse([[2, 0], [0, 1]], [5, 4], dtype))
    assert found.dtype == tf.float32 and found.numpy().tolist() == [4., 5.]
    found = weights_of_ragged(WHERE, ROWS, ragged([[1], [], [2, 3]], dtype))
    assert found.dtype == tf.float32 and found.numpy().tolist() == [1., 2., 3.]


@pytest.mark.parametrize('of, ids, other', [
    (weights_of_sparse, IDS, tf.constant([1., 2.])), (weights_of_sparse, IDS, ROWS),
    (weights_of_sparse, IDS, sparse([[2, 0], [0, 1]], ['a', 'b'], tf.string)),
    (weights_of_ragged, ROWS, IDS), (weights_of_ragged, ROWS, ragged([['a'], []], tf.string)),
    (weights_of_ragged, ROWS, [[1.]])])
def test_what_are_no_numbers_of_the_same_kind_are_refused(of, ids, other):
    with pytest.raises(InputShapeError, match=f'E517 {WHERE}'):
        of(WHERE, ids, other)


@pytest.mark.parametrize('of, ids, other', [
    (weights_of_sparse, IDS, sparse([[2, 0]], [1])),
    (weights_of_sparse, IDS, sparse([[0, 1], [2, 0]], [1, 2])),  # The same places, not one by one.
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


@pytest.mark.parametrize('of, ids, other', [
    (weights_of_sparse, IDS, sparse([[2, 0]], [1])), (weights_of_sparse, IDS, sparse([], [])),
    (weights_of_sparse, IDS, sparse([[0, 0], [2, 0], [2, 1]], [1, 2, 3])),
    (weights_of_ragged, ROWS, ragged([[1], [2]])),
    (weights_of_ragged, ROWS, ragged([[1], [2, 3], [4]]))])
def test_gathered_checks_leave_a_weight_for_each_id(of, ids, other):
    spec = (tf.SparseTensorSpec([None, None], tf.int64) if of is weights_of_sparse
            else tf.RaggedTensorSpec([None, None], tf.int64))

    @tf.function(input_signature=[spec, spec])
    def step(one, two):
        with checks.gathered() as conditions:
            found = of(WHERE, one, two)
        return found, conditions.holds()

    found, right = step(ids, other)
    assert found.shape == ids.values.shape and not right
    found, right = step(ids, ids)
    assert right and sorted(found.numpy()) == [7, 8, 9][:len(found)]


@pytest.mark.parametrize('bad', [float('nan'), float('inf')])
def test_i05_weights_are_finite(bad):
    with pytest.raises(FAILS, match='(?s)E518.*must be finite.*(nan|inf)'):
        weights_of_sparse(WHERE, IDS, sparse([[2, 0], [0, 1]], [bad, 1.], tf.float32))
    with pytest.raises(FAILS, match='(?s)E518.*must be finite'):
        weights_of_ragged(WHERE, ROWS, ragged([[1.], [], [bad, 1.]], tf.float32))
