"""Writes numbers, names, comments, optimizers and initializers as Python, in lines that fit.

Names come from files of strangers. `quoted` escapes them, and nothing else puts them into code.
"""

from __future__ import annotations

import math
import numbers
import struct
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.optimizers import Bounds, Optimizer

_WIDTH, _SHORT = 79, 58
"""Characters of a line, and of a call that stands on one line wherever it is."""
_STEP = '    '
ENTRY_WIDTH = _WIDTH - len(_STEP)

_NEGATED = 'use_non_lazy_adam'
OF_SLOTS = 'initial_accumulator'
"""The attribute of optimizers with a first value of slots, which configs do not hold."""
CLASSES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    'stochastic_gradient_descent': ('api.SGD', {}),
    'adagrad': ('api.Adagrad', {OF_SLOTS: 'initial_accumulator_value'}),
    'adagrad_momentum': ('api.AdagradMomentum', {
        name: name for name in ('momentum', 'use_nesterov', 'exponent', 'beta2', 'epsilon')}),
    'ftrl': ('api.FTRL', {
        'lr_power': 'learning_rate_power', 'l1': 'l1_regularization_strength',
        'l2': 'l2_regularization_strength', 'beta': 'beta',
        OF_SLOTS: 'initial_accumulator_value',
        'multiply_linear_by_lr': 'multiply_linear_by_learning_rate',
        'allow_zero_accumulator': 'allow_zero_accumulator'}),
    'adam': ('api.Adam', {'beta1': 'beta_1', 'beta2': 'beta_2', 'epsilon': 'epsilon',
                          _NEGATED: 'lazy_adam', 'use_sum_inside_sqrt': 'sum_inside_sqrt'})}
"""By algorithm: the class, and its arguments by attributes of our optimizer."""
NOT_IN_LAYER = 'adagrad_momentum'
"""The layer of TFRS does not take it."""

_INITIALIZERS = {
    'Zeros': '', 'Ones': '', 'Constant': 'value', 'RandomNormal': 'mean stddev seed',
    'TruncatedNormal': 'mean stddev seed', 'RandomUniform': 'minval maxval seed',
    'GlorotNormal': 'seed', 'GlorotUniform': 'seed',
    'VarianceScaling': 'scale mode distribution seed'}
"""The arguments of each class of initializers, which TensorFlow and Keras share."""
_MODULES = ('tensorflow.', 'tf_keras.', 'keras.')


def call(function: str, arguments: Mapping[str, str | None]) -> str:
    """Returns a call with keyword arguments, those that are not `None`.

    >>> call('f', {'a': '1', 'b': quoted('two'), 'c': None})
    "f(a=1, b='two')"
    """
    given = [f'{name}={value}' for name, value in arguments.items() if value is not None]
    whole = f'{function}({", ".join(given)})'
    if len(whole) <= _SHORT and '\n' not in whole:
        return whole
    return block(f'{function}(', given, ')')


def block(opening: str, entries: Iterable[str], closing: str) -> str:
    """Returns a call or a dict with an entry per line; entries may have lines of their own."""
    return '\n'.join([opening, *(textwrap.indent(f'{one},', _STEP) for one in entries), closing])


def comment(text: str, mark: str = '# ', width: int = _WIDTH) -> str:
    """Returns the lines of a comment; `text` must not hold unprintable characters."""
    return '\n'.join(textwrap.wrap(
        text, width, initial_indent=mark, subsequent_indent=f'#{" " * (len(mark) - 1)}',
        break_long_words=False, break_on_hyphens=False))


def quoted(name: str) -> str:
    r"""Returns a string of Python that is the name, whatever characters it has.

    >>> print(quoted("a'b\n"))
    "a'b\n"
    """
    return repr(str(name))


def number(value: Any) -> str:
    """Returns a finite number of Python or NumPy, in few digits that give the same float32.

    A number that is no float32 keeps all its digits. `None` and bools stay as they are.

    >>> number(0.10000000149011612), number(0.1), number(1 / 3), number(2), number(True)
    ('0.1', '0.1', '0.3333333333333333', '2', 'True')
    """
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, numbers.Integral):
        return repr(int(value))
    value = float(value)
    is_float32 = abs(value) <= _LARGEST and (
        struct.unpack('f', struct.pack('f', value))[0] == value)
    return repr(shortest(value) if is_float32 else value)


_LARGEST = 2.0**128 - 2.0**104


def shortest(number: float) -> float:
    """Returns the shortest decimal number that is the same float32 as a finite number.

    >>> shortest(0.05000000074505806)
    0.05
    """
    shorter = (float(f'{number:.{digits}g}') for digits in range(1, 18))
    return next(short for short in shorter if abs(short) <= _LARGEST
                and struct.pack('f', short) == struct.pack('f', number))


def initializer(made: Any) -> str | None:
    """Returns the call that makes an initializer again; `None` if there is none, or it is unknown.

    It is told by its class and by `get_config`, so TensorFlow need not be imported.
    """
    kind = type(made)
    if kind.__name__ not in _INITIALIZERS or not f'{kind.__module__}.'.startswith(_MODULES):
        return None
    config = made.get_config()
    found: dict[str, str | None] = {}
    for name in _INITIALIZERS[kind.__name__].split():
        value = config.get(name)
        if isinstance(value, str):
            found[name] = quoted(value)
        elif isinstance(value, numbers.Real) and math.isfinite(value):
            found[name] = number(value)
        elif value is not None:
            return None  # Such as the array of a `Constant`.
    return call(f'tf.initializers.{kind.__name__}', found)


def optimizer(made: Optimizer, rate: str, knows_first_values: bool) -> str:
    """Returns the call that makes an optimizer, with everything that TF2 takes.

    The arguments of its own are all written, because their defaults differ between the APIs.
    TF2 must have it. The rate is Python.
    """
    function, names = CLASSES[made.field]
    own: dict[str, str | None] = {}
    for attribute, argument in names.items():
        value = getattr(made, attribute)
        if attribute != OF_SLOTS or knows_first_values and value > 0:
            own[argument] = number(not value if attribute == _NEGATED else value)
    limits = made.clip_gradients
    return call(function, {
        'learning_rate': rate, **own,
        'use_gradient_accumulation': None if made.accumulate else 'False',
        **{f'clip_weight_{end}': None if value is None else number(value) for end, value in (
            ('min', made.clip_weights.lower), ('max', made.clip_weights.upper))},
        'weight_decay_factor': number(made.decay) if made.decay else None,
        'multiply_weight_decay_factor_by_learning_rate':
            'True' if made.decay and made.decay_times_rate else None,
        'clipvalue': None if limits == Bounds() else
            f'({number(limits.lower)}, {number(limits.upper)})'})
