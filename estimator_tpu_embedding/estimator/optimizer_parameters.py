"""Declares the ten optimizers of tables.

Arguments, defaults, attributes and errors are the same as in TensorFlow 2.15. Its
`optimization_parameters.proto` has the formulas. In them `w` is a row, `g` is its summed gradient
and `rate` is the learning rate. They are computed element by element, in float32. Each example
makes one step on a row of one element: `update_rows` is the rule that trains tables.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

from ..core import optimizers
from ..core.optimizers import Bounds, Optimizer
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
"""The last arguments of all optimizers, with their defaults."""


@dataclass_transform()
def _parameters(cls: _T) -> _T:
    """Makes a dataclass of the core's optimizer of that name, with the arguments of `_TAIL`."""
    for name, default in _TAIL.items():
        if name not in cls.__annotations__:
            cls.__annotations__[name] = 'Any'
            setattr(cls, name, default)
    return _of_core(cls)


def _of_core(cls: _T) -> _T:
    """Makes a dataclass of the core's optimizer of the same name."""
    made: Any = dataclasses.dataclass(eq=False)(cls)
    made.core = getattr(optimizers, cls.__name__.removesuffix('Parameters'))
    return cast(_T, made)


class _OptimizationParameters:
    """The arguments that every optimizer of tables has; `AdagradParameters` describes them."""

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
                for name in names - _TAIL.keys() - {'learning_rate'}}


def _refuse_if(condition: bool, text: str) -> None:
    if condition:
        raise ValueError(text)


def _require_strengths(parameters: Any) -> None:
    for name in ('l1_regularization_strength', 'l2_regularization_strength'):
        value = getattr(parameters, name)
        _refuse_if(value < 0, f'{name} must be greater than or equal to 0. got {value}.')


def _require_moments(parameters: Any) -> None:
    for name in ('beta1', 'beta2'):
        value = getattr(parameters, name)
        _refuse_if(value < 0 or value >= 1, f'{name} must be between 0. and 1; got {value}.')
    _refuse_if(parameters.epsilon <= 0, f'epsilon must be positive; got {parameters.epsilon}.')


@_parameters
class AdagradParameters(_OptimizationParameters):
    """Adagrad: `A += g**2; w -= rate * g / sqrt(A)`.

    Attributes:
      learning_rate: >= 0; the rate of a table takes precedence.
      initial_accumulator: the first value of each element of `A`, > 0.
      use_gradient_accumulation: `True` sums the gradients of a row over all cores and updates the
        row once. `False` sums them within each core and updates the row once for each core that
        has it, beginning with core `id % num_cores`. Results then depend on the number of cores.
      clip_weight_min: the lower bound of each element after its update, or `None`.
      clip_weight_max: the upper bound, or `None`.
      weight_decay_factor: the share of each touched row that is subtracted, or `None`.
      multiply_weight_decay_factor_by_learning_rate: whether that share is times the rate.
      clip_gradient_min: the lower bound of each element of the summed gradient, or `None`.
      clip_gradient_max: the upper bound, or `None`.

    Raises:
      ValueError: as the original does, for values out of range.

    Here `A` becomes `5 + 2**2 = 9`, and `w` becomes `1 - 0.3 * 2 / 3`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = AdagradParameters(learning_rate=0.3, initial_accumulator=5.).to_optimizer()
    >>> w, (A,) = update_rows(rule, 1.0, (5.0,), gradient=2.0, rate=0.3)
    >>> round(float(w), 6), float(A)
    (0.8, 9.0)
    """

    learning_rate: float
    initial_accumulator: float = 0.1

    def _check(self) -> None:
        _refuse_if(self.initial_accumulator <= 0, 'Adagrad initial_accumulator must be greater '
                   f'than zero. Received: {self.initial_accumulator}.')


@_parameters
class AdagradMomentumParameters(_OptimizationParameters):
    """Adagrad whose scaled gradient passes through momentum.

        A += g**2
        step = g / (A + epsilon)**(1 / exponent)
        M = momentum * M + step
        w -= rate * M

    Attributes:
      learning_rate: >= 0.
      momentum: the decay of `M`.
      use_nesterov: whether `w -= rate * (momentum * M + step)` instead.
      exponent: > 0; 2 is the square root.
      beta2: the decay of `A`; 1 is the plain sum, otherwise
        `A = beta2 * A + (1 - beta2) * g**2`.
      epsilon: > 0.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `A` becomes 9, `M` becomes `0.5 * 2 + 2 / 3`, and `w` becomes `1 - 0.3 * M`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = AdagradMomentumParameters(learning_rate=0.3, momentum=0.5).to_optimizer()
    >>> w, (A, M) = update_rows(rule, 1.0, (5.0, 2.0), gradient=2.0, rate=0.3)
    >>> round(float(w), 6), float(A), round(float(M), 6)
    (0.5, 9.0, 1.666667)
    """

    learning_rate: float
    momentum: float
    use_nesterov: bool = False
    exponent: float = 2
    beta2: float = 1
    epsilon: float = 1e-10

    def _check(self) -> None:
        _refuse_if(self.epsilon <= 0, 'Adagrad momentum: epsilon must be positive')
        _refuse_if(self.exponent <= 0, 'Adagrad momentum: Precondition exponent must >0')


@_parameters
class ProximalAdagradParameters(_OptimizationParameters):
    """Adagrad with a proximal step for L1 and L2 regularization.

        A += g**2
        r = rate / sqrt(A)
        w -= r * g
        w = sign(w) * max(abs(w) - r * l1, 0) / (1 + r * l2)

    Attributes:
      learning_rate: >= 0.
      initial_accumulator: the first value of each element of `A`, > 0.
      l1_regularization_strength: >= 0.
      l2_regularization_strength: >= 0.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `A` becomes 9 and `r` is 0.1, so `w` becomes `1 - 0.1 * 2`, and then `0.8 - 0.1 * 1`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = ProximalAdagradParameters(
    ...     learning_rate=0.3, l1_regularization_strength=1.0).to_optimizer()
    >>> w, (A,) = update_rows(rule, 1.0, (5.0,), gradient=2.0, rate=0.3)
    >>> round(float(w), 6), float(A)
    (0.7, 9.0)
    """

    learning_rate: float
    initial_accumulator: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0

    def _check(self) -> None:
        _refuse_if(self.initial_accumulator <= 0, 'Adagrad initial_accumulator must be '
                   f'positive. Received: {self.initial_accumulator}.')
        _require_strengths(self)


@_parameters
class FtrlParameters(_OptimizationParameters):
    """Follow the regularized leader, for sparse models.

    The function `root(x)` is `x**-learning_rate_power`; `z` is the linear term.

        B = A + g**2
        z += g - (root(B) - root(A)) * w / rate
        A = B
        w = (clip(z, -l1, l1) - z) / ((root(A) + beta) / rate + 2 * l2)

    Attributes:
      learning_rate: >= 0; 0 leaves the table as it is.
      learning_rate_power: <= 0; -0.5 makes `root` the square root.
      initial_accumulator_value: the first value of each element of `A`, >= 0.
      l1_regularization_strength: >= 0.
      l2_regularization_strength: >= 0.
      multiply_linear_by_learning_rate: whether `z` is kept times the rate.
      beta: added to the root.
      allow_zero_accumulator: whether `A` may be 0.
      initial_linear_value: the first value of each element of `z`, 0; no argument.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `A` becomes `9 + 4**2`, `z` becomes `4 - (5 - 3) * 1`, and `w` becomes `-2 / 5`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = FtrlParameters(learning_rate=1.0, initial_accumulator_value=9.0).to_optimizer()
    >>> w, (A, z) = update_rows(rule, 1.0, (9.0, 0.0), gradient=4.0, rate=1.0)
    >>> round(float(w), 6), float(A), float(z)
    (-0.4, 25.0, 2.0)
    """

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
        _refuse_if(self.learning_rate_power > 0, 'learning_rate_power must be less than or '
                   f'equal to 0. got {self.learning_rate_power}.')
        _refuse_if(self.initial_accumulator_value < 0, 'initial_accumulator_value must be '
                   f'greater than or equal to 0. got {self.initial_accumulator_value}.')
        _require_strengths(self)
        self.initial_linear_value = 0.0

    def _own(self) -> dict[str, Any]:
        return {**super()._own(), 'initial_linear': self.initial_linear_value}


@_parameters
class AdamParameters(_OptimizationParameters):
    """Adam without bias correction, as on the hardware.

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        w -= rate * m / sqrt(v + epsilon**2)

    Attributes:
      learning_rate: >= 0.
      beta1: the decay of `m`, in [0, 1).
      beta2: the decay of `v`, in [0, 1).
      epsilon: > 0.
      lazy_adam: whether only the rows that were looked up move; `False` moves all rows.
      sum_inside_sqrt: `False` divides by `sqrt(v) + epsilon` instead.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `m` becomes `0.5 * 2 = 1`, `v` becomes `0.25 * 4 = 1`, and `w` becomes `1 - 0.1 * 1`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = AdamParameters(learning_rate=0.1, beta1=0.5, beta2=0.75).to_optimizer()
    >>> w, (m, v) = update_rows(rule, 1.0, (0.0, 0.0), gradient=2.0, rate=0.1)
    >>> round(float(w), 6), float(m), float(v)
    (0.9, 1.0, 1.0)
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-08
    lazy_adam: bool = True
    sum_inside_sqrt: bool = True

    def _check(self) -> None:
        _require_moments(self)
        _refuse_if(not (self.use_gradient_accumulation or self.lazy_adam),
                   'When disabling Lazy Adam, gradient accumulation must be used.')

    def _own(self) -> dict[str, Any]:
        own = super()._own()
        own['use_non_lazy_adam'] = not own.pop('lazy_adam')
        return own


@_parameters
class ProximalYogiParameters(_OptimizationParameters):
    """Yogi with a proximal step for L1 and L2 regularization, without bias correction.

        v += (1 - beta2) * sign(g**2 - v) * g**2
        m = beta1 * m + (1 - beta1) * g
        r = rate / (sqrt(v) + epsilon)
        w -= r * m
        w = sign(w) * max(abs(w) - r * l1, 0) / (1 + r * l2)

    The formula comes from Yogi in TensorFlow Addons.

    Attributes:
      learning_rate: >= 0.
      beta1: the decay of `m`, in [0, 1).
      beta2: the decay of `v`, in [0, 1).
      epsilon: > 0.
      l1_regularization_strength: >= 0.
      l2_regularization_strength: >= 0.
      initial_accumulator_value: the first value of each element of `v`, >= 0.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `v` becomes `0 + 0.25 * 4 = 1`, `m` becomes `0.5 * 2 = 1`, and `w` becomes `1 - 0.1`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = ProximalYogiParameters(
    ...     learning_rate=0.1, beta1=0.5, beta2=0.75, epsilon=1e-9).to_optimizer()
    >>> w, (v, m) = update_rows(rule, 1.0, (0.0, 0.0), gradient=2.0, rate=0.1)
    >>> round(float(w), 6), float(v), float(m)
    (0.9, 1.0, 1.0)
    """

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


@_parameters
class RMSPropParameters(_OptimizationParameters):
    """RMSProp: the gradient over the root of its running mean square, with momentum.

        s = rho * s + (1 - rho) * g**2
        M = momentum * M + rate * g / sqrt(s + epsilon)
        w -= M

    Attributes:
      learning_rate: >= 0.
      rho: the decay of `s`, which begins with 0.
      momentum: the decay of `M`.
      epsilon: added to `s`.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `s` becomes `0.5 * 14 + 0.5 * 4 = 9`, and `M` becomes `0.5 * 0.2 + 0.3 * 2 / 3`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = RMSPropParameters(
    ...     learning_rate=0.3, rho=0.5, momentum=0.5, epsilon=1e-9).to_optimizer()
    >>> w, (s, M) = update_rows(rule, 1.0, (14.0, 0.2), gradient=2.0, rate=0.3)
    >>> round(float(w), 6), float(s), round(float(M), 6)
    (0.7, 9.0, 0.3)
    """

    learning_rate: float
    rho: float
    momentum: float
    epsilon: float


@_parameters
class StochasticGradientDescentParameters(_OptimizationParameters):
    """Plain gradient descent: `w -= rate * g`.

    Attributes:
      learning_rate: >= 0.

    All optimizers share the other arguments: see `AdagradParameters`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = StochasticGradientDescentParameters(learning_rate=0.5).to_optimizer()
    >>> w, slots = update_rows(rule, 3.0, (), gradient=2.0, rate=0.5)
    >>> float(w)
    2.0
    """

    learning_rate: float


@_parameters
class MomentumParameters(_OptimizationParameters):
    """Momentum: `M = momentum * M + g; w -= rate * M`.

    Attributes:
      learning_rate: >= 0.
      momentum: the decay of `M`.
      use_nesterov: whether `w -= rate * (g + momentum * M)` instead.

    All optimizers share the other arguments: see `AdagradParameters`.

    Here `M` becomes `0.5 * 1 + 2`, and `w` becomes `1 - 0.1 * 2.5`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = MomentumParameters(learning_rate=0.1, momentum=0.5).to_optimizer()
    >>> w, (M,) = update_rows(rule, 1.0, (1.0,), gradient=2.0, rate=0.1)
    >>> round(float(w), 6), float(M)
    (0.75, 2.5)
    """

    learning_rate: float
    momentum: float
    use_nesterov: bool = False


@_of_core
class FrequencyEstimatorParameters(_OptimizationParameters):
    """Estimates how many steps lie between two look-ups of a row; trains nothing.

    The gap is the number of steps since the last look-up. The rule takes the global step in the
    place of `rate`.

        d = min(gap, max_delta)
        w = d if gap >= outlier_threshold * w else (1 - tau) * w + tau * d

    Attributes:
      tau: the weight of a new gap, in [0, 1].
      max_delta: the largest gap that counts, in steps.
      outlier_threshold: the multiple of `w` from which a gap replaces the estimate.
      weight_exponent: an exponent that only the hardware uses.

    The arguments that the other optimizers share cannot be set.

    Here `gap` is `18 - 10`, so `w` becomes `0.75 * 4 + 0.25 * 8`.

    >>> from estimator_tpu_embedding.ops.update_rules import update_rows
    >>> rule = FrequencyEstimatorParameters(
    ...     tau=0.25, max_delta=100., outlier_threshold=3., weight_exponent=1.).to_optimizer()
    >>> w, (last_step,) = update_rows(rule, 4.0, (10.0,), gradient=0.0, rate=18.0)
    >>> float(w), float(last_step)
    (5.0, 18.0)
    """

    tau: float
    max_delta: float
    outlier_threshold: float
    weight_exponent: float

    def __post_init__(self) -> None:
        """Gives the arguments of all optimizers the values that change nothing."""
        vars(self).update(learning_rate=1.0, **_TAIL)


ALL = {cls.__name__: cls for cls in _OptimizationParameters.__subclasses__()}
"""All classes by name."""
