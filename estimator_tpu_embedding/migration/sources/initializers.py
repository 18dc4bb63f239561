"""Writes initializers of TensorFlow and Keras as calls, for either API.

An initializer is told by its class and by `get_config`, so TensorFlow need not be imported.
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Mapping
from typing import Any

from ...errors import shown
from .facts import NOT_WRITABLE, Note, Table
from .text import Call, Expression, call, number, quoted

_NAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    'Zeros': ('zeros', ()), 'Ones': ('ones', ()), 'Constant': ('constant', ('value',)),
    'RandomNormal': ('random_normal', ('mean', 'stddev', 'seed')),
    'TruncatedNormal': ('truncated_normal', ('mean', 'stddev', 'seed')),
    'RandomUniform': ('random_uniform', ('minval', 'maxval', 'seed')),
    'GlorotNormal': ('glorot_normal', ('seed',)), 'GlorotUniform': ('glorot_uniform', ('seed',)),
    'VarianceScaling': ('variance_scaling', ('scale', 'mode', 'distribution', 'seed'))}
"""By class: the name in `tf.initializers` of TensorFlow 1, and the arguments."""

_MODULES = ('tensorflow.', 'tf_keras.', 'keras.')


def written(table: Table, target: str) -> Call | None:
    """Returns the call that makes the initializer of a table.

    Returns:
      `None` for the default of both APIs, and for an initializer that `notes_of` tells of.
    """
    initializer = table.spec.initializer
    if initializer is None or _is_default(table):
        return None
    arguments = _arguments(initializer)
    if arguments is None:
        return None
    old = _NAMES[type(initializer).__name__][0]
    name = old if target == 'tf1' else type(initializer).__name__
    return call(f'tf.initializers.{name}', arguments)


def notes_of(table: Table, where: str) -> list[Note]:
    """Returns the note of an initializer that is no instance of a known class."""
    initializer = table.spec.initializer
    if initializer is None or _arguments(initializer) is not None:
        return []
    return [Note(where=where, code=NOT_WRITABLE, fact='its initializer cannot be written as source '
                 f'({name_of(initializer)})', remedy='Import it, and give it to the table.')]


def name_of(value: Any) -> str:
    """Returns where a function or the class of an object is defined, fit for a message.

    A `functools.partial` is called as its function.
    """
    while isinstance(value, functools.partial):
        value = value.func
    named = value if hasattr(value, '__qualname__') else type(value)
    return shown(f'{getattr(named, "__module__", "?")}.{named.__qualname__}', 200)


def _is_default(table: Table) -> bool:
    """Whether an initializer is a truncated normal of deviation `1 / sqrt(dimension)`."""
    initializer = table.spec.initializer
    if type(initializer).__name__ != 'TruncatedNormal' or _arguments(initializer) is None:
        return False
    config = _config_of(initializer)
    return (config['mean'] == 0 and config.get('seed') is None and math.isclose(
        config['stddev'], 1 / math.sqrt(table.spec.dimension), rel_tol=1e-6))


def _config_of(initializer: Any) -> Mapping[str, Any]:
    return initializer.get_config()


def _arguments(initializer: Any) -> dict[str, Expression] | None:
    """Returns the arguments that make an initializer again; `None` if they are not known."""
    kind = type(initializer)
    if kind.__name__ not in _NAMES or not f'{kind.__module__}.'.startswith(_MODULES):
        return None
    config = _config_of(initializer)
    found: dict[str, Expression] = {}
    for name in _NAMES[kind.__name__][1]:
        value = config.get(name)
        if isinstance(value, str):
            found[name] = quoted(value)
        elif isinstance(value, numbers.Real) and math.isfinite(value):
            found[name] = number(value)
        elif value is not None:
            return None  # Such as the array of a `Constant`.
    return found
