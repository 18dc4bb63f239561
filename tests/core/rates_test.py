import functools

import pytest

from estimator_tpu_embedding.core.rates import ConstantRate, DynamicRate, twins


def ramp(slope, step):
    return slope * step


def lambdas(count):
    return [lambda step: step for _ in range(count)]


SHARED = functools.partial(ramp, 2.)


@pytest.mark.parametrize('functions, got', [
    (lambdas(3), '3 functions of the code of "<lambda>"'),
    ([functools.partial(ramp, slope) for slope in (1., 2.)], '2 functions of the code of "ramp"'),
    ([SHARED, SHARED], None), ([SHARED, abs], None), ([], None)])
def test_functions_of_the_same_code_are_said_once_per_code(functions, got):
    rates = [ConstantRate(value=.1), *[DynamicRate(function=one) for one in functions]]
    assert [(problem.code, problem.got) for problem in twins(rates)] == (
        [('W424', got)] if got else [])
