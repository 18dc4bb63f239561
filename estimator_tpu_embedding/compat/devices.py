"""`tf.config.list_logical_devices` and its like: scripts count the cores of a TPU by them.

There are no devices of these names: what is placed on one runs on the CPU, by TensorFlow's soft
placement, which is on outside of sessions.
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
    """Lets the cores of the system that a resolver finds be those that are listed from now on."""
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
    """What lists a device per emulated core too, after those of TensorFlow."""
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
