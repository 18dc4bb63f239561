"""Python as text: numbers and initializers."""

import struct

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from estimator_tpu_embedding.migration import python_text as text

v1 = tf.compat.v1


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_float32_has_digits_that_read_back_as_the_same_float32(value):
    again = float(text.number(value))
    assert struct.pack('f', again) == struct.pack('f', value)
    assert len(text.number(value)) <= len(repr(value)) + 4  # such as 1e+16 for 10000000272564224.0


@pytest.mark.parametrize('value, written', [
    (True, 'True'), (2, '2'), (2., '2.0'), (np.float32(.1), '0.1'), (np.int64(3), '3'),
    (-0., '-0.0'), (1e-8, '1e-08'), (float(np.float32(1e-8)), '1e-08'), (1e300, '1e+300')])
def test_numbers_are_short(value, written):
    assert text.number(value) == written


@pytest.mark.parametrize('initializer', [
    v1.zeros_initializer(), tf.ones_initializer(), tf.constant_initializer(3.),
    v1.constant_initializer(2), tf.random_uniform_initializer(-1., 1., seed=7),
    v1.random_normal_initializer(.5, .25), tf.keras.initializers.TruncatedNormal(stddev=.125),
    v1.glorot_uniform_initializer(), tf.initializers.GlorotNormal(),
    v1.variance_scaling_initializer(2., 'fan_out', distribution='uniform')],
    ids=lambda one: f'{type(one).__module__}.{type(one).__name__}')
def test_an_initializer_of_tf1_is_that_of_tf2_with_the_same_numbers(initializer):
    again = eval(text.initializer(initializer), {'tf': tf})
    config, new = initializer.get_config(), again.get_config()
    assert type(again).__name__ == type(initializer).__name__
    assert {name: new[name] for name in config if name != 'dtype'} == {
        name: value for name, value in config.items() if name != 'dtype'}


@pytest.mark.parametrize('initializer', [
    lambda shape, dtype: None, tf.constant_initializer(np.ones([9, 4])),
    type('Zeros', (), {'get_config': lambda self: 1 / 0, '__call__': None})()],
    ids=['function', 'array', 'namesake'])
def test_others_are_told_and_not_guessed(initializer):
    assert text.initializer(initializer) is None
