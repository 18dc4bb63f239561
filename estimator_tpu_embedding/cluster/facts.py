"""Gathers what a process of a cluster says about itself: versions, memory, addresses."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import socket
from typing import Any

import psutil
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
            'memory': {'used': psutil.Process().memory_info().rss,
                       'available': psutil.virtual_memory().available}}


def room() -> int:
    """Returns the bytes of memory that tables may take here: free bytes, within its limits."""
    free, limit = psutil.virtual_memory().available + psutil.swap_memory().free, memory.limit()
    return free if limit is None else min(free, limit.bytes)


def who() -> str:
    """Returns this process and its machine, for messages of others."""
    return f'process {os.getpid()} on {socket.gethostname()}'


def process() -> dict[str, Any]:
    """Returns what tells this process from all others, for `has_ended`."""
    return {'machine': _machine(), 'pid': os.getpid(), 'begun': _begun(os.getpid())}


def has_ended(process: Any) -> bool:
    """Whether a process has ended, as `process` described it; `False` for one of elsewhere.

    >>> has_ended(process()), has_ended({**process(), 'begun': '0'}), has_ended({})
    (False, True, False)
    """
    return (isinstance(process, dict) and process.get('machine') == _machine() != ''
            and process.get('begun') not in (None, _begun(process.get('pid'))))


def _machine() -> str:
    """Returns what differs between machines, their starts, and namespaces of processes."""
    boot = memory.text_of('/proc/sys/kernel/random/boot_id').strip()
    with contextlib.suppress(OSError):
        return boot and f'{boot} {os.readlink("/proc/self/ns/pid")}'
    return ''


def _begun(pid: Any) -> str | None:
    """Returns when a process began, in ticks of the machine; `None` if there is no such one."""
    state, *others = memory.text_of(f'/proc/{pid}/stat').rpartition(')')[2].split() or ['X']
    return None if state in 'ZX' else others[18]


def _digest() -> str:
    digest = hashlib.sha256()
    with files.open_regular(str(library.PATH), follow=True) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()[:12]
