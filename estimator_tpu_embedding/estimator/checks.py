"""Checks single settings of a TPUConfig and positive numbers, with the errors of the original."""

from __future__ import annotations

import re
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
