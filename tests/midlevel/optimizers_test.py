import numpy as np
import pytest
import tensorflow as tf

from estimator_tpu_embedding.core import optimizers as core
from estimator_tpu_embedding.core.optimizer_base import Bounds
from estimator_tpu_embedding.core.rates import ConstantRate, rate_tags
from estimator_tpu_embedding.midlevel import optimizers

api = tf.tpu.experimental.embedding
COMMON = {'learning_rate': .5, 'clip_weight_min': -1., 'clip_weight_max': 2.,
          'weight_decay_factor': .25, 'multiply_weight_decay_factor_by_learning_rate': True,
          'clipvalue': (None, 3.)}
EXPECTED = {'learning_rate': .5, 'clip_weights': Bounds(lower=-1., upper=2.), 'decay': .25,
            'decay_times_rate': True, 'clip_gradients': Bounds(upper=3.)}


@pytest.mark.parametrize('optimizer, own, expected', [
    (api.SGD, {}, core.StochasticGradientDescent(**EXPECTED)),
    (api.Adagrad, {'initial_accumulator_value': .75},
     core.Adagrad(**EXPECTED, initial_accumulator=.75)),
    (api.AdagradMomentum, {'momentum': .9, 'use_nesterov': True, 'exponent': 3, 'beta2': .8,
                           'epsilon': 1e-3},
     core.AdagradMomentum(**EXPECTED, momentum=.9, use_nesterov=True, exponent=3, beta2=.8,
                          epsilon=1e-3)),
    (api.FTRL, {'learning_rate_power': -.25, 'l1_regularization_strength': .1,
                'l2_regularization_strength': .2, 'beta': .3, 'initial_accumulator_value': .75,
                'multiply_linear_by_learning_rate': True, 'allow_zero_accumulator': True},
     core.Ftrl(**EXPECTED, lr_power=-.25, l1=.1, l2=.2, beta=.3, initial_accumulator=.75,
               multiply_linear_by_lr=True, allow_zero_accumulator=True)),
    (api.Adam, {'beta_1': .8, 'beta_2': .7, 'epsilon': 1e-3, 'lazy_adam': False,
                'sum_inside_sqrt': False},
     core.Adam(**EXPECTED, beta1=.8, beta2=.7, epsilon=1e-3, use_non_lazy_adam=True,
               use_sum_inside_sqrt=False))], ids=lambda value: getattr(value, '__name__', None))
def test_every_number_arrives_and_the_slots_are_those_of_tensorflow(optimizer, own, expected):
    one = optimizer(**COMMON, **own)
    assert optimizers.core_optimizer(one) == expected
    assert not list(optimizers.core_optimizer(optimizer()).problems('defaults'))
    assert optimizers.slot_names(one) == tuple(one._slot_names())
    assert [slot.initial_value for slot in optimizers.core_optimizer(one).slots] == [
        pytest.approx(float(initializer([], tf.float32)))
        for initializer in one._slot_initializers()]


def test_a_decay_of_zero_is_none_and_gradients_may_be_applied_one_by_one():
    one = optimizers.core_optimizer(api.SGD(
        use_gradient_accumulation=False, weight_decay_factor=0.,
        multiply_weight_decay_factor_by_learning_rate=True))
    assert not one.accumulate and one.decay is None and not one.decay_times_rate
    assert one.clip_gradients == one.clip_weights == Bounds()
    assert optimizers.core_optimizer(api.SGD(clipvalue=2.)).clip_gradients == Bounds(
        lower=-2., upper=2.)


def test_equal_functions_are_one_rate_that_ignores_the_step():
    class Schedule:
        def rate(self):
            return .125

    schedule, other = Schedule(), Schedule()
    rates = [optimizers.rate_of(api.Adam(function)) for function in (
        schedule.rate, schedule.rate, other.rate, .5)]
    assert rates[0] == rates[1] != rates[2]
    assert list(rate_tags(rates).values()) == [0, 1]
    assert rates[0].function(np.int64(7)) == .125
    assert rates[3] == ConstantRate(value=.5)
    assert optimizers.core_optimizer(api.Adam(schedule.rate)).learning_rate == 0.
