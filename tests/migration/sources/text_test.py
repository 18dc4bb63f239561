import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_tpu_embedding.core.float32 import shortest
from estimator_tpu_embedding.migration.sources.text import (
    Argument,
    Call,
    call,
    comment,
    lines,
    number,
    quoted,
)


def text(*arguments, **more):
    return '\n'.join(lines(*arguments, **more))


def test_what_fits_is_one_line_and_other_calls_have_an_argument_per_line():
    short = call('f', {'a': '1', 'b': call('g', {'c': '2'})})
    assert text('X = ', short) == 'X = f(a=1, b=g(c=2))'
    assert text('X = ', call('f', {'a': '1', 'b': call('g', {'c': quoted('x' * 70)})})) == (
        f"X = f(\n    a=1,\n    b=g(\n        c='{'x' * 70}',\n    ),\n)")


def test_a_line_of_79_columns_fits_and_one_of_80_does_not():
    assert len(text('X = ', call('f', {'a': quoted('x' * 68)}))) == 79
    assert text('X = ', call('f', {'a': quoted('x' * 69)})).count('\n') == 2


def test_comments_stand_above_an_argument_and_remarks_behind_it():
    value = Call('{', [Argument("'a': ", '1', ['See a.'], 'not known')])
    assert text('X = ', value) == "X = {\n    # See a.\n    'a': 1,  # not known\n}"


def test_comments_are_folded_and_their_words_stay_whole():
    found = comment('word ' * 40, '    ')
    assert len(found) > 1 and all(len(line) <= 79 for line in found)
    assert all(line.startswith('    # word') for line in found)
    assert comment('x' * 100) == [f'# {"x" * 100}']


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_float32_has_digits_that_read_back_as_the_same_float32(value):
    again = float(number(value))
    assert struct.pack('f', again) == struct.pack('f', value)
    assert len(number(value)) <= len(repr(value)) + 4  # such as 1e+16 for 10000000272564224.0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_that_is_no_float32_keeps_all_its_digits(value):
    with np.errstate(over='ignore'):
        if float(np.float32(value)) != value:
            assert float(number(value)) == value


@pytest.mark.parametrize('value, written', [
    (True, 'True'), (2, '2'), (2., '2.0'), (np.float32(.1), '0.1'), (np.int64(3), '3'),
    (-0., '-0.0'), (1e-8, '1e-08'), (float(np.float32(1e-8)), '1e-08'), (1e300, '1e+300')])
def test_numbers_are_short(value, written):
    assert number(value) == written


def test_the_largest_float32_is_written_in_full():
    largest = 2.**128 - 2.**104
    assert shortest(largest) <= largest and math.isfinite(shortest(largest))
