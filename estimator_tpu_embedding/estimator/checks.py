"""Checks single settings of a TPUConfig and positive numbers, with the errors of the original."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any


def parse_iterations_per_loop(value: Any) -> tuple[int, str]:
    """Returns `(steps, 'count')` or `(seconds, 'seconds')` for a value of `iterations_per_loop`.

    Raises:
      ValueError: for a value that is neither a number of steps nor a time.

    >>> parse_iterations_per_loop('100'), parse_iterations_per_loop('5m')
    ((100, 'count'), (300, 'seconds'))
    """
    found = re.fullmatch(r'([1-9][0-9]*)([smh]?)', str(value))
    if found is None or isinstance(value, bool):
        raise ValueError(
            'Invalid TPUConfig `iterations_per_loop` value. Value must be positive integer value '
            'or time-based value `<N><s|m|h>` where <N> is anypositive integer and `s`, `m`, '
            '`h` are unit of time in seconds, minutes, hours respectively. Examples of valid '
            'values: `3600s`, `60m`, `1h`.')
    number, unit = int(found.group(1)), found.group(2)
    return (number * {'s': 1, 'm': 60, 'h': 3600}[unit], 'seconds') if unit else (number, 'count')


def check_positive(value: Any, name: str) -> None:
    """Raises the original's errors unless `value` is a positive whole number."""
    if not isinstance(value, int) and not hasattr(value, '__index__'):
        raise TypeError(f'{name} must be int, got {type(value)}')
    if value <= 0:
        raise ValueError(f'{name} must be positive, got {value}')


def check_partition_dims(dims: Any, cores: int | None, *, is_per_host: bool) -> None:
    """Raises ValueError unless `input_partition_dims` of a TPUConfig are possible.

    Args:
      dims: the value of `input_partition_dims`.
      cores: cores of a replica, or `None`.
      is_per_host: whether the input is PER_HOST_V2.
    """
    if not isinstance(dims, (list, tuple)) or len(dims) not in (1, 2):
        raise ValueError('input_partition_dims must be a list/tuple with one or two elements.')
    if not is_per_host:
        raise ValueError('input_partition_dims is only supported in PER_HOST_V2 mode.')
    if cores is None:
        raise ValueError('input_partition_dims requires setting num_cores_per_replica.')


def check_partitioned_input(dims: Any, cores: int, features: Any, labels: Any) -> None:
    """Raises ValueError unless `input_partition_dims` fit what input_fn gives.

    Args:
      dims: `[dims of features]` or `[dims of features, dims of labels]`: for each tensor, in the
        structure of the tensors, its parts per dimension, or `None`.
      cores: of a replica.
      features: the `tf.TypeSpec`s of what is not looked up.
      labels: likewise; `None` if there are none.
    """
    for number, (name, value) in enumerate((('feature', features), ('label', labels))):
        if value is None or number == len(dims) or number and dims[number] is None:
            continue
        where, given = f'TPUConfig.input_partition_dims[{number}] mismatched', dims[number]
        expected, got = (sorted(each) if isinstance(each, Mapping) else []
                         for each in (value, given))
        if expected != got:
            raise ValueError(f'{where} {name} keys. Expected {expected}, got {got}')
        for spec, parts in _matched(value, given, f'{where} the structure of {name}s.'):
            _check_parts(spec, parts, cores)


def _matched(value: Any, dims: Any, problem: str) -> Iterator[tuple[Any, Any]]:
    """Yields each tensor of a structure with its part of `dims`. A list is no structure."""
    if isinstance(value, Mapping):
        keys = sorted(value)
        if not isinstance(dims, Mapping) or sorted(dims) != keys:
            raise ValueError(f'{problem} Expected the keys {keys}, got {dims}')
        for key in keys:
            yield from _matched(value[key], dims[key], problem)
    elif isinstance(value, tuple):
        if not isinstance(dims, tuple) or len(dims) != len(value):
            raise ValueError(f'{problem} Expected a tuple of {len(value)}, got {dims}')
        for each in zip(value, dims):
            yield from _matched(*each, problem)
    else:
        yield value, dims


def _check_parts(spec: Any, dims: Any, cores: int) -> None:
    if dims is None:
        return
    if not isinstance(dims, (list, tuple)) or not all(
            isinstance(parts, int) and parts >= 1 for parts in dims):
        raise ValueError(f'All input partition dims must be >= 1. Got {dims}.')
    if math.prod(dims) not in (1, cores):
        raise ValueError('The product of each input partition dim should equal to '
                         f'num_cores_per_replica. (dim = {dims}, num_cores_per_replica = {cores})')
    shape = getattr(spec, 'shape', None)
    if math.prod(dims) > 1 and (shape is None or shape.rank != len(dims)):
        raise ValueError(
            'Input partition dims must have the same number of dimensions as the `Tensor` to be '
            f'partitioned. (tensor shape = {shape}, input partition dims = {dims}).')
