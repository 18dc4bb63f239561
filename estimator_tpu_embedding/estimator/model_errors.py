"""What an error within model_fn says of the call that it ended."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..columns import used
from ..core.plan import Plan
from ..errors import EteError, noted

_MOST_NAMES = 20


@contextlib.contextmanager
def told(where: str, features: Any, labels: Any) -> Iterator[None]:
    """Notes beneath an error of model_fn with what it was called.

    Its class and its text stay; errors of this package, which name their cause, stay whole.

    Args:
      where: the mode, and on which core if there are several.
      features: what model_fn is given.
      labels: what model_fn is given.
    """
    try:
        yield
    except EteError:
        raise
    except Exception as error:
        raise noted(error, f'This happened in model_fn, called {where}, with features '
                    f'{described(features)} and labels {described(labels)}.')


@contextlib.contextmanager
def columns_checked(plan: Plan | None) -> Iterator[None]:
    """Makes sure that model_fn uses the columns of the spec, whether it fails or not.

    Args:
      plan: of the spec; `None` without one.

    Raises:
      ConfigError: if it uses others.
    """
    columns = _tf.columns_used(tf.get_default_graph())
    try:
        yield
    except EteError:
        raise
    except Exception as error:
        used.check(columns, plan, error)
        raise
    used.check(columns, plan)


def described(structure: Any) -> str:
    """The types and shapes of tensors, for a message.

    >>> described({'x': tf.zeros([2, 3]), 'y': [tf.constant(1)]})
    "{'x': float32 [2, 3], 'y': [int32 []]}"
    """
    if isinstance(structure, Mapping):
        parts = [f'{key!r}: {described(structure[key])}'
                 for key in sorted(structure, key=str)[:_MOST_NAMES]]
        if len(structure) > _MOST_NAMES:
            parts.append(f'and {len(structure) - _MOST_NAMES} more')
        return f'{{{", ".join(parts)}}}'
    if isinstance(structure, (list, tuple)):
        parts = [described(each) for each in structure[:_MOST_NAMES]]
        if len(structure) > _MOST_NAMES:
            parts.append(f'and {len(structure) - _MOST_NAMES} more')
        return f'[{", ".join(parts)}]'
    dtype, shape = getattr(structure, 'dtype', None), getattr(structure, 'shape', None)
    if dtype is None or shape is None:
        return str(structure) if structure is None else type(structure).__name__
    kind = '' if isinstance(structure, tf.Tensor) else f'{type(structure).__name__} '
    return f'{kind}{tf.as_dtype(dtype).name} {_shape(shape)}'


def _shape(shape: tf.TensorShape) -> str:
    return 'of unknown shape' if shape.rank is None else str(shape.as_list())
