"""Lists the emulated cores in `tf.config.list_logical_devices` and its siblings.

Scripts count the cores of a TPU with these functions. There are no devices of the listed names:
TensorFlow's soft placement, which is on outside of sessions, runs their operations on the CPU.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from .. import defaults

_last: Any = None


def tell_of(resolver: Any) -> None:
    """Lists, from now on, the cores of the system that a resolver finds."""
    global _last
    _last = resolver


def replaced() -> Iterator[tuple[str, str, Any]]:
    """Yields the path below `tf`, the name and the function of each."""
    for name, device, prefix in (
            ('list_logical_devices', tf.config.LogicalDevice, '/device'),
            ('list_physical_devices', tf.config.PhysicalDevice, '/physical_device')):
        function = _with_cores(getattr(tf.config, name), device, prefix)
        yield 'config', name, function
        yield 'config.experimental', name, function


def _with_cores(function: Any, device: Any, prefix: str) -> Callable[..., list[Any]]:
    """Returns a function that lists TensorFlow's devices, then one per emulated core."""
    original = inspect.unwrap(function)  # An earlier install() may have been here.

    @functools.wraps(original)
    def listed(device_type: str | None = None) -> list[Any]:
        found = original(device_type)
        if device_type not in (None, 'TPU'):
            return list(found)
        system = defaults.system_of(_last)
        return [*found, *[device(f'{prefix}:TPU:{core}', 'TPU')
                          for core in range(system.topology.num_cores)]]

    return listed
