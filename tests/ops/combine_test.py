import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from harness.graphs import id_batch

from estimator_tpu_embedding.ops import combine

# Two ids in sample 0, none in sample 1, one in sample 2.
SAMPLES = [[4, 6], [], [5]]
ROWS = np.array([[1., 10.], [3., 30.], [5., 50.]], np.float32)


def run(function, values, combiner):
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(function(tf.constant(values), id_batch(SAMPLES), combiner))


@pytest.mark.parametrize('combiner, first', [
    ('sum', [4., 40.]),      # 1 + 3
    (None, [4., 40.]),       # as sum
    ('mean', [2., 20.]),     # (1 + 3) / 2
    ('sqrtn', [4 / 2**.5, 40 / 2**.5])])
def test_i04_rows_of_a_sample_are_combined_and_an_empty_sample_is_exactly_zero(combiner, first):
    result = run(combine.combine, ROWS, combiner)
    np.testing.assert_allclose(result, [first, [0., 0.], [5., 50.]], rtol=1e-6)
    assert (result[1] == 0).all()


@pytest.mark.parametrize('combiner, share', [('sum', 1.), ('mean', .5), ('sqrtn', .5**.5)])
def test_each_id_receives_its_share_of_the_gradient_of_its_sample(combiner, share):
    gradient = np.array([[2., 4.], [8., 8.], [6., 6.]], np.float32)
    result = run(combine.spread, gradient, combiner)
    np.testing.assert_allclose(
        result, [[2 * share, 4 * share], [2 * share, 4 * share], [6., 6.]], rtol=1e-6)


# Weights 1 and 3 in sample 0: sum 4, root of the sum of squares sqrt(10); weight 0 in sample 2.
@pytest.mark.parametrize('combiner, first, last', [
    ('sum', 1. + 9., 0.), (None, 10., 0.), ('mean', 10 / 4, 0.), ('sqrtn', 10 / 10**.5, 0.)])
def test_i06_weights_multiply_rows_and_norms_of_0_give_0(combiner, first, last):
    with tf.Graph().as_default(), tf.Session() as session:
        batch = id_batch(SAMPLES)._replace(weights=tf.constant([1., 3., 0.]))
        result = session.run(combine.combine(tf.constant(ROWS), batch, combiner))
    np.testing.assert_allclose(result[:, 0], [first, 0., last], rtol=1e-6)


def test_spread_is_the_transpose_of_combine():
    generator = np.random.default_rng(3)
    rows, gradient = (generator.normal(size=(3, 2)).astype(np.float32) for _ in range(2))
    for combiner in ('sum', 'mean', 'sqrtn', None):
        forward = (run(combine.combine, rows, combiner) * gradient).sum()
        backward = (run(combine.spread, gradient, combiner) * rows).sum()
        np.testing.assert_allclose(forward, backward, rtol=1e-5)
