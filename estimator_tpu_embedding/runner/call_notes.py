"""Adds notes to an error of a user's function: with which arguments the function was called."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import EteError, noted

_MOST_NAMES = 20


@contextlib.contextmanager
def noting_call(call: str, **given: Any) -> Iterator[None]:
    """Adds to an error of the body a note with the arguments of the call.

    The class and the text of the error stay. Errors of this package get no note, since they name
    their cause.

    Args:
      call: the function, and how it was called.
      **given: its arguments, by names for the note.
    """
    try:
        yield
    except EteError:
        raise
    except Exception as error:
        shapes = ' and '.join(f'{name} {described(value)}' for name, value in given.items())
        raise noted(error, f'This happened in {call}, with {shapes}.')


def described(structure: Any) -> str:
    """Returns the types and shapes of tensors, for a message.

    >>> described({'x': tf.zeros([2, 3]), 'y': [tf.constant(1)]})
    "{'x': float32 [2, 3], 'y': [int32 []]}"
    """
    if isinstance(structure, Mapping):
        parts = [f'{key!r}: {described(structure[key])}'
                 for key in sorted(structure, key=str)[:_MOST_NAMES]]
        return f'{{{_listed(parts, len(structure))}}}'
    if isinstance(structure, (list, tuple)):
        return f'[{_listed(list(map(described, structure[:_MOST_NAMES])), len(structure))}]'
    dtype, shape = getattr(structure, 'dtype', None), getattr(structure, 'shape', None)
    if dtype is None or shape is None:
        return 'None' if structure is None else type(structure).__name__
    kind = '' if isinstance(structure, tf.Tensor) else f'{type(structure).__name__} '
    size = tf.TensorShape(shape)
    return (f'{kind}{tf.as_dtype(dtype).name} '
            f'{"of unknown shape" if size.rank is None else size.as_list()}')


def _listed(parts: list[str], count: int) -> str:
    return ', '.join(parts + [f'and {count - len(parts)} more'] * (count > len(parts)))
