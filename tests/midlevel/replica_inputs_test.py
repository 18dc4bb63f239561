import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_tpu_embedding.errors import InputShapeError
from estimator_tpu_embedding.midlevel import replica_inputs as inputs

api = tf.tpu.experimental.embedding
FAILS = tf.errors.InvalidArgumentError


def config_of(length=0, output_shape=None):
    table = api.TableConfig(vocabulary_size=100, dim=2, name='t')
    return api.FeatureConfig(table, max_sequence_length=length, output_shape=output_shape)


def read(value, output_shape, *, weight=None, length=0, declared=None, policy='error'):
    """What is read: samples, ids and weights as lists, and the ids truncated and out of range."""
    batch, counts = inputs.read('a/b', value, weight, config_of(length, declared), output_shape,
                                policy=policy)
    assert batch.num_samples == np.prod(output_shape)
    assert batch.samples.dtype == tf.int32 and batch.ids.dtype == tf.int64
    assert int(counts.seen) == len(batch.ids) and int(counts.missing) == 0
    weights = None if batch.weights is None else batch.weights.numpy().tolist()
    return (batch.samples.numpy().tolist(), batch.ids.numpy().tolist(), weights,
            int(counts.truncated), int(counts.out_of_range))


def traced(value, output_shape, *, spec, weight=None, length=0, declared=None):
    """The same in a function whose arguments have the unknown dimensions of `spec`."""
    found = {}

    @tf.function(input_signature=[spec] if weight is None else [
        spec, type(spec)(spec.shape, tf.float32)])
    def step(one, weight=None):
        batch, counts = inputs.read('a/b', one, weight, config_of(length, declared),
                                    output_shape, policy='error')
        found['weighted'] = batch.weights is not None
        return batch.samples, batch.ids, batch.weights if found['weighted'] else (), (
            counts.truncated)
    samples, ids, weights, truncated = step(*[value] if weight is None else [value, weight])
    return (samples.numpy().tolist(), ids.numpy().tolist(),
            weights.numpy().tolist() if found['weighted'] else None, int(truncated), 0)


def sparse(indices, values, shape, dtype=tf.int64):
    return tf.SparseTensor(np.array(indices, np.int64).reshape(-1, len(shape)),
                           tf.constant(values, dtype), shape)


def ragged(rows, dtype=tf.int64):
    return tf.ragged.constant(rows, dtype=dtype, ragged_rank=1)


def code_of(call):
    with pytest.raises(InputShapeError) as caught:
        call()
    return caught.value.code


DENSE = [([3], [5, 0, 7], (3,)), ([2, 2, 1], [1, 2, 3, 4], (2, 2)), ([4], [1, 2, 3, 4], (2, 2)),
         ([1, 2, 2, 1], [1, 2, 3, 4], (1, 2, 2))]


@pytest.mark.parametrize('shape, ids, output_shape', DENSE)
def test_every_id_of_a_dense_tensor_is_a_sample_zero_too(shape, ids, output_shape):
    value = tf.reshape(tf.constant(ids), shape)
    expected = (list(range(len(ids))), ids, None, 0, 0)
    assert read(value, output_shape, declared=output_shape) == expected
    unknown = [None] * (len(shape) - 1) + ([1] if len(shape) > 1 else [None])
    assert traced(value, output_shape, spec=tf.TensorSpec(unknown, tf.int32),
                  declared=output_shape) == expected


def test_dense_ids_of_another_shape_are_refused():
    assert code_of(lambda: read(tf.constant([1, 2, 3]), (2, 2))) == 'E534'
    with pytest.raises(FAILS, match=r'(?s)E535.*a/b.*\(4,\).*shape \[3\]'):
        traced(tf.constant([1, 2, 3], tf.int64), (4,), spec=tf.TensorSpec([None], tf.int64))
    # As many ids, but of other samples.
    with pytest.raises(FAILS, match=r'(?s)E535.*shape \[3, 2, 1\]'):
        traced(tf.ones([3, 2, 1], tf.int64), (2, 3), spec=tf.TensorSpec([None, None, 1], tf.int64))


def test_all_but_the_last_index_of_a_sparse_tensor_is_the_sample():
    assert read(sparse([[0, 0], [2, 0], [2, 4]], [5, 0, 5], [3, 5], tf.int32), (3,)) == (
        [0, 2, 2], [5, 0, 5], None, 0, 0)
    assert read(sparse([[1, 2, 0], [0, 1, 1], [1, 2, 9]], [7, 8, 9], [2, 3, 10]), (2, 3)) == (
        [1, 5, 5], [8, 7, 9], None, 0, 0)
    assert read(sparse([[1, 0, 1, 0]], [7], [2, 2, 2, 1]), (2, 2, 2)) == ([5], [7], None, 0, 0)
    # Rows that are laid out in two dimensions.
    assert read(sparse([[3, 1], [2, 0]], [7, 8], [4, 2]), (2, 2), declared=(2, 2)) == (
        [2, 3], [8, 7], None, 0, 0)


@pytest.mark.parametrize('indices, shape, output_shape', [
    ([[2, 0]], [3, 1], (2,)), ([], [0, 0], (2,)), ([[0, 3, 0]], [2, 3, 1], (2, 3)),
    ([[-1, 0]], [2, 1], (2,)), ([[0, -1]], [2, 1], (2,)), ([[2**32, 0]], [2, 1], (2,))])
def test_sparse_ids_out_of_the_output_shape_are_an_error(indices, shape, output_shape):
    value = sparse(indices, [1] * len(indices), shape)
    with pytest.raises((InputShapeError, FAILS), match='E53[45]'):
        read(value, output_shape)
    with pytest.raises(FAILS, match='(?s)E535.*(dense_shape|indices from)'):
        traced(value, output_shape, spec=tf.SparseTensorSpec([None] * len(shape), tf.int64))


def test_sequences_are_cut_and_what_is_cut_is_counted():
    value = sparse([[1, 0], [0, 3], [0, 1], [1, 2**32], [0, 2]], [1, 2, 3, 4, 5], [2, 2**33])
    expected = [1, 2], [3, 1], None, 3, 0
    assert read(value, (2, 2), length=2) == expected
    assert traced(value, (2, 2), length=2,
                  spec=tf.SparseTensorSpec([None, None], tf.int64)) == expected
    value = ragged([[1, 2, 3], [], [4]])
    expected = [0, 1, 4], [1, 2, 4], None, 1, 0
    assert read(value, (3, 2), length=2) == expected
    assert traced(value, (3, 2), length=2,
                  spec=tf.RaggedTensorSpec([None, None], tf.int64)) == expected
    for value in (sparse([[0, 0]], [1], [3, 1]), ragged([[1], [], []])):  # Not a dense [3, 1].
        assert read(value, (3, 2), length=2) == ([0], [1], None, 0, 0)


@pytest.mark.parametrize('output_shape, expected', [
    ((4,), ([0, 0, 0, 1, 3], [1, 2, 3, 4, 5], None, 0, 0)),
    ((2, 2), ([0, 0, 0, 1, 3], [1, 2, 3, 4, 5], None, 0, 0)),  # As many rows as samples.
    ((4, 2), ([0, 1, 2, 6], [1, 2, 4, 5], None, 1, 0)),
    ((2, 3, 2), ([0, 1, 2, 3, 9], [1, 2, 3, 4, 5], None, 0, 0))])
def test_rows_of_a_ragged_tensor_are_samples_or_are_laid_out(output_shape, expected):
    for row_splits in (tf.int32, tf.int64):
        value = ragged([[1, 2, 3], [4], [], [5]]).with_row_splits_dtype(row_splits)
        assert read(value, output_shape, declared=output_shape) == expected
        assert traced(value, output_shape, declared=output_shape, spec=tf.RaggedTensorSpec(
            [None, None], tf.int64, row_splits_dtype=row_splits)) == expected


def test_weights_are_of_the_kind_of_their_ids():
    value = sparse([[0, 0], [1, 0]], [1, 2], [2, 1])
    with pytest.raises(InputShapeError, match='E517.*Weight specified for dense input a/b, which '
                       'is not allowed. Weight will always be 1 in this case.'):
        read(tf.constant([1, 2]), (2,), weight=tf.constant([1, 2]))
    with pytest.raises(InputShapeError, match='E517.*Weight for a/b is type .*RaggedTensor.* which '
                       'does not match type input which is SparseTensor.'):
        read(value, (2,), weight=ragged([[1], [2]]))


def test_ids_of_other_types_are_refused():
    assert read(tf.constant([1, 255], tf.uint8), (2,), policy='drop')[1] == [1]
    for dtype in (tf.float32, tf.bool):
        assert code_of(lambda: read(tf.zeros([2], dtype), (2,))) == 'E510'
    with pytest.raises(InputShapeError, match='Input a/b is of unknown type .*list'):
        read([1, 2], (2,))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(0, 99), max_size=4), min_size=1, max_size=5),
       st.integers(0, 3), st.booleans())
def test_all_forms_of_the_same_ids_give_the_same_batch(rows, length, weighted):
    value = ragged(rows)
    weight = tf.cast(value, tf.float32) if weighted else None
    output_shape = (len(rows), length) if length else (len(rows),)
    found = read(value, output_shape, weight=weight, length=length)
    cells = [(row, place) for row, ids in enumerate(rows) for place in range(len(ids))
             if not length or place < length]
    assert found[:2] == ([row * length + place if length else row for row, place in cells],
                         [rows[row][place] for row, place in cells])
    assert found[3] == sum(map(len, rows)) - len(cells)
    as_sparse = value.to_sparse()
    assert read(as_sparse, output_shape, length=length,
                weight=None if weight is None else weight.to_sparse()) == found
    if length:
        assert read(value, output_shape, declared=output_shape, weight=weight) == (
            found if length > 1 else read(value, (len(rows),), weight=weight))
    if all(len(ids) == 1 for ids in rows) and not weighted and not length:
        assert read(tf.constant(rows, tf.int64), output_shape) == found
        assert read(tf.constant(sum(rows, []), tf.int32), output_shape) == found
