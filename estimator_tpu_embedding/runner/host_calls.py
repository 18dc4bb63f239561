"""Calls functions of users: `host_call` once per step, and others with a note if they fail.

The tensors of a host_call come from all cores. They have the values from before the step's own
increment of the global step: users who write summaries count on that. It runs when the step is
complete.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import EteError, noted

HostCall = tuple[Callable[..., Any], Any]
_MOST_NAMES = 20


def call(name: str, function: Callable[..., Any], tensors: Any) -> Any:
    """Calls the function of the field `name` of a spec with tensors by position or by name."""
    with noting_call(f'the function {name}[0] of the TPUEstimatorSpec', tensors=tensors):
        if not isinstance(tensors, Mapping):
            return function(*tensors)
        try:
            return function(**tensors)
        except TypeError as error:
            tf.logging.warning(
                "Exception while calling %s: %s. It is likely the tensors (%s[1]) do not match "
                "the function's arguments", name, error, name)
            raise


def call_on_host(name: str, function: Callable[..., Any], tensors: Any) -> Any:
    """Calls a function like `call`; refuses summaries of V1, since no writer would get them."""
    before = len(tf.get_collection(tf.GraphKeys.SUMMARIES))
    made = call(name, function, tensors)
    if len(tf.get_collection(tf.GraphKeys.SUMMARIES)) > before:
        raise ValueError('Please use tf.contrib.summary instead of tf.summary inside of '
                         'host_calls.  Use tf.compat.v2.summary with a file writer.')
    return made


def operations_of(made: Any) -> list[Any]:
    """Returns the operations and tensors of `made`, which the function of a host_call returned."""
    return [part for part in tf.nest.flatten(made) if part is not None]


def read_before_increment(global_step: tf.Variable, tensors: Sequence[tf.Tensor]) -> None:
    """Makes each change of the global step wait for tensors, unless they wait for the change."""
    ancestors = _ancestors(tensors)
    writes = [operation for operation in global_step.op.outputs[0].consumers()
              if operation.type.startswith('Assign')
              and operation is not global_step.initializer and operation not in ancestors]
    for write in writes:
        _tf.wait_for(write, [tensor.op for tensor in tensors])


def _ancestors(tensors: Sequence[tf.Tensor]) -> set[tf.Operation]:
    """Returns all operations that run before the tensors have values."""
    found: set[tf.Operation] = set()
    pending = [tensor.op for tensor in tensors]
    while pending:
        operation = pending.pop()
        if operation not in found:
            found.add(operation)
            pending += [each.op for each in operation.inputs] + list(operation.control_inputs)
    return found


@contextlib.contextmanager
def noting_call(call: str, **given: Any) -> Iterator[None]:
    """Adds to an error of the body a note with the call of a function and what was `given` to it.

    The class and the text of the error stay. Errors of this package get no note, since they name
    their cause.
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
