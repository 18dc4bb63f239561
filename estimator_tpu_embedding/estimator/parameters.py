"""The classes that say how tables are trained, as `tf.compat.v1.tpu.experimental` had them.

Arguments, defaults, attributes and errors are those of TensorFlow 2.15. What the numbers mean is
said in `core/optimizers.py`, where they go.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

from ..core import optimizers
from ..core.optimizer_base import Limits, Optimizer
from ..errors import Problem, UnsupportedError

_T = TypeVar('_T', bound=type)
_NAMES_IN_CORE = {
    'initial_accumulator_value': 'initial_accumulator',
    'l1_regularization_strength': 'l1', 'l2_regularization_strength': 'l2',
    'learning_rate_power': 'lr_power', 'multiply_linear_by_learning_rate': 'multiply_linear_by_lr',
    'sum_inside_sqrt': 'use_sum_inside_sqrt'}
_TAIL = {'use_gradient_accumulation': True, 'clip_weight_min': None, 'clip_weight_max': None,
         'weight_decay_factor': None, 'multiply_weight_decay_factor_by_learning_rate': None,
         'clip_gradient_min': None, 'clip_gradient_max': None}


@dataclass_transform()
def _with_tail(cls: _T) -> _T:
    """Makes a dataclass whose last arguments are those that all optimizers have."""
    for name, default in _TAIL.items():
        if name not in cls.__annotations__:
            cls.__annotations__[name] = 'Any'
            setattr(cls, name, default)
    return cast(_T, dataclasses.dataclass(eq=False)(cls))


class _OptimizationParameters:
    """What every optimizer of tables has.

    Attributes:
      learning_rate: >= 0; that of a table takes precedence.
      use_gradient_accumulation: sum all gradients of a row over all cores, then update it once.
        If false, sum them within each core, and update the row once for each core that has it,
        beginning with core `id % num_cores`: results depend on the number of cores.
      clip_weight_min: lower bound of each element after its update, or `None`.
      clip_weight_max: upper bound.
      weight_decay_factor: this share of each touched row is subtracted, or `None`.
      multiply_weight_decay_factor_by_learning_rate: that share is times the learning rate.
      clip_gradient_min: lower bound of each element of the summed gradient, or `None`.
      clip_gradient_max: upper bound.
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
        """The checks of one class."""

    def to_optimizer(self) -> Optimizer:
        """These parameters as the value that a plan holds.

        Raises:
          UnsupportedError: for a class that is none of the original's.
        """
        if not hasattr(self, 'core'):
            raise UnsupportedError(Problem(
                'E916', type(self).__name__, 'it must be one of the classes of TensorFlow, '
                'since an engine knows no other rule'))
        return self.core(
            **self._own(), learning_rate=self.learning_rate,
            accumulate=bool(self.use_gradient_accumulation),
            clip_weights=Limits(lower=self.clip_weight_min, upper=self.clip_weight_max),
            clip_gradients=Limits(lower=self.clip_gradient_min, upper=self.clip_gradient_max),
            decay=self.weight_decay_factor,
            decay_times_rate=bool(self.multiply_weight_decay_factor_by_learning_rate))

    def _own(self) -> dict[str, Any]:
        """The hyper-parameters of this class alone, under their names in `core/`."""
        names = {field.name for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {_NAMES_IN_CORE.get(name, name): getattr(self, name)
                for name in names - _TAIL.keys() - {'learning_rate'}}


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise ValueError(text)


def _require_strengths(parameters: Any) -> None:
    for name in ('l1_regularization_strength', 'l2_regularization_strength'):
        value = getattr(parameters, name)
        _require(not value < 0, f'{name} must be greater than or equal to 0. got {value}.')


def _require_moments(parameters: Any) -> None:
    for name in ('beta1', 'beta2'):
        value = getattr(parameters, name)
        _require(not (value < 0 or value >= 1), f'{name} must be between 0. and 1; got {value}.')
    _require(not parameters.epsilon <= 0, f'epsilon must be positive; got {parameters.epsilon}.')


@_with_tail
class StochasticGradientDescentParameters(_OptimizationParameters):
    """`w -= rate * g`."""

    core = optimizers.StochasticGradientDescent

    learning_rate: float


@_with_tail
class AdagradParameters(_OptimizationParameters):
    """`A += g**2; w -= rate * g / sqrt(A)`; `initial_accumulator` is > 0."""

    core = optimizers.Adagrad

    learning_rate: float
    initial_accumulator: float = 0.1

    def _check(self) -> None:
        _require(not self.initial_accumulator <= 0, 'Adagrad initial_accumulator must be greater '
                 f'than zero. Received: {self.initial_accumulator}.')


@_with_tail
class AdagradMomentumParameters(_OptimizationParameters):
    """Adagrad whose preconditioned gradient passes through momentum."""

    core = optimizers.AdagradMomentum

    learning_rate: float
    momentum: float
    use_nesterov: bool = False
    exponent: float = 2
    beta2: float = 1
    epsilon: float = 1e-10

    def _check(self) -> None:
        _require(not self.epsilon <= 0, 'Adagrad momentum: epsilon must be positive')
        _require(not self.exponent <= 0, 'Adagrad momentum: Precondition exponent must >0')


@_with_tail
class ProximalAdagradParameters(_OptimizationParameters):
    """Adagrad with a proximal step for L1 and L2 regularization."""

    core = optimizers.ProximalAdagrad

    learning_rate: float
    initial_accumulator: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0

    def _check(self) -> None:
        _require(not self.initial_accumulator <= 0, 'Adagrad initial_accumulator must be '
                 f'positive. Received: {self.initial_accumulator}.')
        _require_strengths(self)


@_with_tail
class AdamParameters(_OptimizationParameters):
    """Adam on the rows that were looked up (`lazy_adam`), or on all."""

    core = optimizers.Adam

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-08
    lazy_adam: bool = True
    sum_inside_sqrt: bool = True

    def _check(self) -> None:
        _require_moments(self)
        _require(bool(self.use_gradient_accumulation or self.lazy_adam),
                 'When disabling Lazy Adam, gradient accumulation must be used.')

    def _own(self) -> dict[str, Any]:
        own = super()._own()
        own['use_non_lazy_adam'] = not own.pop('lazy_adam')
        return own


@_with_tail
class FtrlParameters(_OptimizationParameters):
    """Follow the regularized leader.

    Attributes:
      initial_linear_value: what each element of the linear term starts with.
    """

    core = optimizers.Ftrl

    learning_rate: float
    learning_rate_power: float = -0.5
    initial_accumulator_value: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0
    use_gradient_accumulation: Any = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    multiply_linear_by_learning_rate: bool = False
    beta: float = 0
    allow_zero_accumulator: bool = False

    def _check(self) -> None:
        _require(not self.learning_rate_power > 0, 'learning_rate_power must be less than or '
                 f'equal to 0. got {self.learning_rate_power}.')
        _require(not self.initial_accumulator_value < 0, 'initial_accumulator_value must be '
                 f'greater than or equal to 0. got {self.initial_accumulator_value}.')
        _require_strengths(self)
        self.initial_linear_value = 0.0

    def _own(self) -> dict[str, Any]:
        return {**super()._own(), 'initial_linear': self.initial_linear_value}


@_with_tail
class ProximalYogiParameters(_OptimizationParameters):
    """Yogi with a proximal step for L1 and L2 regularization."""

    core = optimizers.ProximalYogi

    learning_rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-3
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0
    initial_accumulator_value: float = 1e-6

    def _check(self) -> None:
        _require_moments(self)
        _require_strengths(self)


@_with_tail
class MomentumParameters(_OptimizationParameters):
    """`M = momentum * M + g; w -= rate * M`."""

    core = optimizers.Momentum

    learning_rate: float
    momentum: float
    use_nesterov: bool = False


@_with_tail
class RMSPropParameters(_OptimizationParameters):
    """The gradient divided by the root of its running mean square, through momentum."""

    core = optimizers.RMSProp

    learning_rate: float
    rho: float
    momentum: float
    epsilon: float


@dataclasses.dataclass(eq=False)
class FrequencyEstimatorParameters(_OptimizationParameters):
    """Estimates how often rows are looked up; what all others share cannot be set."""

    core = optimizers.FrequencyEstimator

    tau: float
    max_delta: float
    outlier_threshold: float
    weight_exponent: float

    def __post_init__(self) -> None:
        """Sets what all optimizers have to what changes nothing."""
        vars(self).update(learning_rate=1.0, **_TAIL)


ALL: dict[str, type[_OptimizationParameters]] = {cls.__name__: cls for cls in (
    AdagradParameters, AdagradMomentumParameters, AdamParameters, FrequencyEstimatorParameters,
    FtrlParameters, MomentumParameters, ProximalAdagradParameters, ProximalYogiParameters,
    RMSPropParameters, StochasticGradientDescentParameters)}
"""All classes by name."""
