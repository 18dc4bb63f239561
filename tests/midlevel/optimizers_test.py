"""Rates and slots; `feature_configs_test` compares all numbers with those of the original."""

import numpy as np
import pytest
import tensorflow as tf

from estimator_tpu_embedding.core.rates import ConstantRate, rate_tags
from estimator_tpu_embedding.midlevel import feature_configs

api = tf.tpu.experimental.embedding


def test_equal_functions_are_one_rate_that_ignores_the_step():
    class Schedule:
        def rate(self):
            return .125

    schedule, other = Schedule(), Schedule()
    rates = [feature_configs.rate_of(api.Adam(function)) for function in (
        schedule.rate, schedule.rate, other.rate, .5)]
    assert rates[0] == rates[1] != rates[2]
    assert list(rate_tags(rates).values()) == [0, 1]
    assert rates[0].function(np.int64(7)) == .125
    assert rates[3] == ConstantRate(value=.5)
    assert feature_configs.core_optimizer(api.Adam(schedule.rate)).learning_rate == 0.


@pytest.mark.parametrize('make', [api.SGD, api.Adagrad, api.AdagradMomentum, api.FTRL, api.Adam])
def test_slots_and_what_they_begin_with_are_those_of_tensorflow(make):
    one = make()
    made = feature_configs.core_optimizer(one)
    assert not list(made.problems('defaults'))
    assert feature_configs.slot_names(one) == tuple(one._slot_names())
    assert [slot.initial_value for slot in made.slots] == [
        pytest.approx(float(initializer([], tf.float32)))
        for initializer in one._slot_initializers()]
