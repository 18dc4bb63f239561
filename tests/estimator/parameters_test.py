import inspect

import pytest

import estimator_tpu_embedding as ete
from estimator_tpu_embedding.core.optimizer_base import Bounds
from estimator_tpu_embedding.core.optimizers import Adagrad, StochasticGradientDescent

TAIL = ['use_gradient_accumulation', 'clip_weight_min', 'clip_weight_max', 'weight_decay_factor',
        'multiply_weight_decay_factor_by_learning_rate', 'clip_gradient_min', 'clip_gradient_max']


@pytest.mark.parametrize('cls, first', [
    (ete.AdagradParameters, ['learning_rate', 'initial_accumulator']),
    (ete.StochasticGradientDescentParameters, ['learning_rate'])])
def test_arguments_have_the_order_of_the_original_and_become_attributes(cls, first):
    assert list(inspect.signature(cls).parameters) == first + TAIL
    made = cls(*[.5] * len(first), True, -1., 1., .1, True, -2., 2.)
    assert [getattr(made, name) for name in first + TAIL] == [
        *[.5] * len(first), True, -1., 1., .1, True, -2., 2.]


def test_parameters_become_the_optimizer_of_a_plan():
    assert ete.AdagradParameters(.1).to_optimizer() == Adagrad(learning_rate=.1)
    assert ete.StochasticGradientDescentParameters(
        .2, clip_gradient_min=-1., clip_weight_max=0., weight_decay_factor=.3,
        multiply_weight_decay_factor_by_learning_rate=True).to_optimizer() == (
            StochasticGradientDescent(
                learning_rate=.2, clip_gradients=Bounds(lower=-1.), decay=.3,
                clip_weights=Bounds(upper=0.), decay_times_rate=True))


def test_bad_values_get_the_errors_of_the_original():
    with pytest.raises(ValueError, match='When using gradient clipping limits, gradient  '
                                         'accumulation must be enabled.'):
        ete.AdagradParameters(.1, use_gradient_accumulation=False, clip_gradient_max=0.)
    with pytest.raises(ValueError, match='Adagrad initial_accumulator must be greater than zero. '
                                         'Received: 0.'):
        ete.AdagradParameters(.1, initial_accumulator=0.)
