import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from estimator_tpu_embedding.core.optimizer_base import Bounds
from estimator_tpu_embedding.core.optimizers import Adagrad, StochasticGradientDescent
from estimator_tpu_embedding.ops import rules


def update(optimizer, weight, gradient, *slots, rate=0.5):
    """One element through `update_rows`: (weight, slots)."""
    with tf.Graph().as_default(), tf.Session() as session:
        new, state = session.run(rules.update_rows(
            optimizer, tf.constant([[weight]]), tuple(tf.constant([[slot]]) for slot in slots),
            tf.constant([[gradient]]), tf.constant(rate)))
    return new[0, 0], [slot[0, 0] for slot in state]


def test_sgd_goes_against_the_gradient():
    assert update(StochasticGradientDescent(learning_rate=9.), 3., 2.) == (2., [])  # 3 - .5 * 2


def test_adagrad_divides_by_the_root_of_the_new_accumulator():
    # A = 5 + 2**2 = 9; w = 3 - .5 * 2 / 3
    weight, (accumulator,) = update(Adagrad(learning_rate=9.), 3., 2., 5.)
    assert accumulator == 9.
    np.testing.assert_allclose(weight, 3 - 1 / 3, rtol=1e-6)


def test_adagrad_with_the_smallest_legal_accumulator_and_no_gradient_is_finite():
    assert update(Adagrad(learning_rate=9.), 3., 0., 2.**-126) == (3., [np.float32(2.**-126)])


@pytest.mark.parametrize('options, expected', [
    ({'clip_gradients': Bounds(upper=1.)}, 2.5),                     # 3 - .5 * 1
    ({'clip_gradients': Bounds(lower=4.)}, 1.),                      # 3 - .5 * 4
    ({'clip_weights': Bounds(lower=2.25)}, 2.25),                    # 3 - 1 = 2, then 2.25
    ({'clip_weights': Bounds(upper=0.)}, 0.),                        # a bound of 0 is a bound
    ({'decay': .25}, 1.25),                                          # 3 * .75 - 1
    ({'decay': .25, 'decay_times_rate': True}, 3 * (1 - .125) - 1),  # the factor is .25 * .5
    ({'decay': .25, 'clip_gradients': Bounds(upper=1.), 'clip_weights': Bounds(lower=1.8)}, 1.8)])
def test_options_apply_in_the_documented_order(options, expected):
    optimizer = StochasticGradientDescent(learning_rate=9., **options)
    assert update(optimizer, 3., 2.)[0] == pytest.approx(expected, rel=1e-6)
