"""The optimizer parameters of `tf.tpu.experimental`."""

from __future__ import annotations

from typing import Any

from ..core.optimizers import Adagrad, Limits, Optimizer, StochasticGradientDescent
from ..errors import Problem, UnsupportedError


class _OptimizationParameters:
    """What all optimizers share; every argument becomes an attribute of the same name."""

    def __init__(self, learning_rate: float, use_gradient_accumulation: bool = True,
                 clip_weight_min: float | None = None, clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool | None = None,
                 clip_gradient_min: float | None = None,
                 clip_gradient_max: float | None = None):
        """Stores the arguments.

        Args:
          learning_rate: >= 0.
          use_gradient_accumulation: sum the gradients of a row over the step, then update once.
          clip_weight_min: lower bound on each weight after its update.
          clip_weight_max: upper bound on each weight after its update.
          weight_decay_factor: `w -= factor * w` on touched rows before the update.
          multiply_weight_decay_factor_by_learning_rate: the factor is `factor * rate` instead.
          clip_gradient_min: lower bound on each element of the summed gradient.
          clip_gradient_max: upper bound on each element of the summed gradient.

        Raises:
          ValueError: for gradient bounds without accumulation.
        """
        if not use_gradient_accumulation and not (
                clip_gradient_min is None and clip_gradient_max is None):
            raise ValueError('When using gradient clipping limits, gradient  accumulation must '
                             'be enabled.')
        self.learning_rate = learning_rate
        self.use_gradient_accumulation = use_gradient_accumulation
        self.clip_weight_min = clip_weight_min
        self.clip_weight_max = clip_weight_max
        self.weight_decay_factor = weight_decay_factor
        self.multiply_weight_decay_factor_by_learning_rate = (
            multiply_weight_decay_factor_by_learning_rate)
        self.clip_gradient_min = clip_gradient_min
        self.clip_gradient_max = clip_gradient_max

    def to_optimizer(self) -> Optimizer:
        """These parameters as the value that the plan holds."""
        raise NotImplementedError


def _common(parameters: _OptimizationParameters) -> dict[str, object]:
    return {
        'learning_rate': parameters.learning_rate,
        'accumulate': bool(parameters.use_gradient_accumulation),
        'clip_weights': Limits(lower=parameters.clip_weight_min,
                               upper=parameters.clip_weight_max),
        'clip_gradients': Limits(lower=parameters.clip_gradient_min,
                                 upper=parameters.clip_gradient_max),
        'decay': parameters.weight_decay_factor,
        'decay_times_rate': bool(parameters.multiply_weight_decay_factor_by_learning_rate),
    }


class StochasticGradientDescentParameters(_OptimizationParameters):
    """`w -= rate * g`."""

    def to_optimizer(self) -> Optimizer:
        """These parameters as the value that the plan holds."""
        return StochasticGradientDescent(**_common(self))  # type: ignore[arg-type]


class AdagradParameters(_OptimizationParameters):
    """`A += g**2; w -= rate * g / sqrt(A)`."""

    def __init__(self, learning_rate: float, initial_accumulator: float = 0.1,
                 use_gradient_accumulation: bool = True, clip_weight_min: float | None = None,
                 clip_weight_max: float | None = None,
                 weight_decay_factor: float | None = None,
                 multiply_weight_decay_factor_by_learning_rate: bool | None = None,
                 clip_gradient_min: float | None = None,
                 clip_gradient_max: float | None = None):
        """Stores the arguments.

        Args:
          learning_rate: >= 0.
          initial_accumulator: what each element of `A` starts with, > 0.
          use_gradient_accumulation: see the base class, as for all that follow.
          clip_weight_min: see there.
          clip_weight_max: see there.
          weight_decay_factor: see there.
          multiply_weight_decay_factor_by_learning_rate: see there.
          clip_gradient_min: see there.
          clip_gradient_max: see there.

        Raises:
          ValueError: for an accumulator that is not positive.
        """
        super().__init__(learning_rate, use_gradient_accumulation, clip_weight_min,
                         clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clip_gradient_min,
                         clip_gradient_max)
        if initial_accumulator <= 0:
            raise ValueError('Adagrad initial_accumulator must be greater than zero. Received: '
                             f'{initial_accumulator}.')
        self.initial_accumulator = initial_accumulator

    def to_optimizer(self) -> Optimizer:
        """These parameters as the value that the plan holds."""
        return Adagrad(initial_accumulator=self.initial_accumulator,
                       **_common(self))  # type: ignore[arg-type]


class _UnsupportedParameters(_OptimizationParameters):
    """An optimizer that this version does not run."""

    def __init__(self, *args: Any, **kwargs: Any):
        """Raises UnsupportedError."""
        del args, kwargs
        raise UnsupportedError(Problem(
            'E909', type(self).__name__, 'this optimizer is not supported yet',
            remedy='Use AdagradParameters or StochasticGradientDescentParameters.'))


class AdamParameters(_UnsupportedParameters):
    """Not supported yet."""


class FtrlParameters(_UnsupportedParameters):
    """Not supported yet."""
