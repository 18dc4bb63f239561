"""First values that are made piece by piece are those that TensorFlow makes at once."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.native import first_values

SHAPE = (1001, 7)


@pytest.mark.parametrize('initializer', [
    tf.truncated_normal_initializer(stddev=.3, seed=5), tf.random_uniform_initializer(-1, 1, -3),
    tf.random_normal_initializer(1., 2., 2**40 + 3), tf.glorot_uniform_initializer(),
    tf.keras.initializers.TruncatedNormal(stddev=.2)],
    ids=lambda initializer: type(initializer).__name__)
def test_pieces_have_the_numbers_of_the_whole_bit_for_bit(initializer, monkeypatch):
    monkeypatch.setattr(first_values, 'PIECE_BYTES', 4 * 7 * 100)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        whole = initializer(SHAPE, dtype=tf.float32)
        variable = tf.get_variable('v', SHAPE, initializer=tf.zeros_initializer(),
                                   use_resource=True)
        filled = first_values.written(
            lambda rows, values: tf.raw_ops.ResourceScatterUpdate(
                resource=variable.handle, indices=rows, updates=values),
            SHAPE, first_values.piece_of(whole))
        with tf.Session() as session:
            session.run(variable.initializer)
            expected = session.run(whole)
            session.run(filled)
            np.testing.assert_array_equal(session.run(variable), expected)
    assert len(np.unique(expected)) > 6000


@pytest.mark.parametrize('make', [
    tf.orthogonal_initializer(), lambda shape: tf.random.normal(shape)[::-1],
    lambda shape: tf.random.normal(shape) * tf.ones([7])])
def test_what_other_operations_make_is_made_at_once(make):
    with tf.Graph().as_default():
        assert first_values.piece_of(make(SHAPE)) is None
