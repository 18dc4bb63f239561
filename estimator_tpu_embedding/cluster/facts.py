"""Gathers what a process of a cluster says about itself: versions, memory, addresses."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
from typing import Any

import tensorflow.compat.v1 as tf

from ..hosts import memory
from ..native import library
from ..proto import files
from ..version import VERSION
from . import listening

VERSIONS = ('etpe', 'TensorFlow', 'kernels', 'Python')
"""What `versions` tells. All processes of a cluster must agree on all but Python."""


def versions() -> dict[str, str]:
    """Returns the versions that `VERSIONS` names; of the kernels, the beginning of their SHA-256.

    The kernels are loaded, so that graphs of other processes can use them here.
    """
    return {'etpe': VERSION, 'TensorFlow': tf.__version__,
            'kernels': _digest() if library.load() is not None else 'none',
            'Python': platform.python_version()}


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Returns the names of versions in which two processes must agree and do not.

    >>> differences({'etpe': '1', 'Python': '3.11'}, {'etpe': '2', 'Python': '3.12'})
    ['etpe']
    """
    return [name for name in VERSIONS if name != 'Python' and one.get(name) != other.get(name)]


def of_now() -> dict[str, Any]:
    """Returns the facts that change: addresses listened on, and bytes of memory."""
    return {'listens': listening.addresses_of(),
            'memory': {'used': memory.figures('/proc/self/status').get('VmRSS', 0),
                       'available': memory.figures('/proc/meminfo').get('MemAvailable', 0)}}


def room() -> int:
    """Returns the bytes of memory that tables may take here: free bytes, within its limits."""
    machine, limit = memory.figures('/proc/meminfo'), memory.limit()
    free = machine.get('MemAvailable', 0) + machine.get('SwapFree', 0)
    return free if limit is None else min(free, limit.bytes)


def who() -> str:
    """Returns this process and its machine, for messages of others."""
    return f'process {os.getpid()} on {socket.gethostname()}'


def _digest() -> str:
    digest = hashlib.sha256()
    with files.open_regular(str(library.PATH), follow=True) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()[:12]
