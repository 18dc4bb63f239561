"""Holds the arguments and checks that all optimizers of tables share."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

from ..core.optimizer_base import Bounds, Optimizer
from ..errors import Problem, UnsupportedError

_T = TypeVar('_T', bound=type)
_NAMES_IN_CORE = {
    'initial_accumulator_value': 'initial_accumulator',
    'l1_regularization_strength': 'l1', 'l2_regularization_strength': 'l2',
    'learning_rate_power': 'lr_power', 'multiply_linear_by_learning_rate': 'multiply_linear_by_lr',
    'sum_inside_sqrt': 'use_sum_inside_sqrt'}
TAIL = {'use_gradient_accumulation': True, 'clip_weight_min': None, 'clip_weight_max': None,
        'weight_decay_factor': None, 'multiply_weight_decay_factor_by_learning_rate': None,
        'clip_gradient_min': None, 'clip_gradient_max': None}
"""The last arguments of all optimizers, with their defaults."""


@dataclass_transform()
def with_tail(cls: _T) -> _T:
    """Makes a dataclass that has the arguments of `TAIL` at its end."""
    for name, default in TAIL.items():
        if name not in cls.__annotations__:
            cls.__annotations__[name] = 'Any'
            setattr(cls, name, default)
    return cast(_T, dataclasses.dataclass(eq=False)(cls))


class _OptimizationParameters:
    """The arguments that every optimizer of tables has.

    Attributes:
      learning_rate: >= 0; the rate of a table takes precedence.
      use_gradient_accumulation: `True` sums the gradients of a row over all cores and updates the
        row once. `False` sums them within each core and updates the row once for each core that
        has it, beginning with core `id % num_cores`. Results then depend on the number of cores.
      clip_weight_min: the lower bound of each element after its update, or `None`.
      clip_weight_max: the upper bound, or `None`.
      weight_decay_factor: the share of each touched row that is subtracted, or `None`.
      multiply_weight_decay_factor_by_learning_rate: whether that share is times the rate.
      clip_gradient_min: the lower bound of each element of the summed gradient, or `None`.
      clip_gradient_max: the upper bound, or `None`.
    """

    core: ClassVar[type[Optimizer]]

    learning_rate: float
    use_gradient_accumulation: Any
    clip_weight_min: float | None
    clip_weight_max: float | None
    weight_decay_factor: float | None
    multiply_weight_decay_factor_by_learning_rate: bool | None
    clip_gradient_min: float | None
    clip_gradient_max: float | None

    def __post_init__(self) -> None:
        """Checks the arguments.

        Raises:
          ValueError: as the original does.
        """
        has_clipping = self.clip_gradient_min is not None or self.clip_gradient_max is not None
        if not self.use_gradient_accumulation and has_clipping:
            raise ValueError('When using gradient clipping limits, gradient  accumulation must '
                             'be enabled.')
        self._check()

    def _check(self) -> None:
        """Makes the checks of one class."""

    def to_optimizer(self) -> Optimizer:
        """Returns these parameters as the value that a plan holds.

        Raises:
          UnsupportedError: for a class that the original does not have.
        """
        if not hasattr(self, 'core'):
            raise UnsupportedError(Problem(
                'E916', type(self).__name__, 'it must be one of the classes of TensorFlow, '
                'since an engine knows no other rule'))
        return self.core(
            **self._own(), learning_rate=self.learning_rate,
            accumulate=bool(self.use_gradient_accumulation),
            clip_weights=Bounds(lower=self.clip_weight_min, upper=self.clip_weight_max),
            clip_gradients=Bounds(lower=self.clip_gradient_min, upper=self.clip_gradient_max),
            decay=self.weight_decay_factor,
            decay_times_rate=bool(self.multiply_weight_decay_factor_by_learning_rate))

    def _own(self) -> dict[str, Any]:
        """Returns the hyper-parameters of this class alone, by their names in `core/`."""
        names = {field.name for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {_NAMES_IN_CORE.get(name, name): getattr(self, name)
                for name in names - TAIL.keys() - {'learning_rate'}}


def require(condition: bool, text: str) -> None:
    """Raises ValueError with a text of the original unless a condition holds."""
    if not condition:
        raise ValueError(text)


def require_strengths(parameters: Any) -> None:
    """Raises ValueError unless both strengths of regularization are >= 0."""
    for name in ('l1_regularization_strength', 'l2_regularization_strength'):
        value = getattr(parameters, name)
        require(not value < 0, f'{name} must be greater than or equal to 0. got {value}.')


def require_moments(parameters: Any) -> None:
    """Raises ValueError unless both decays are in [0, 1) and epsilon is > 0."""
    for name in ('beta1', 'beta2'):
        value = getattr(parameters, name)
        require(not (value < 0 or value >= 1), f'{name} must be between 0. and 1; got {value}.')
    require(not parameters.epsilon <= 0, f'epsilon must be positive; got {parameters.epsilon}.')
