"""Gathers what a process of a cluster says of itself: versions, memory, addresses, and its disk.

Small files, notes, show whether processes see one disk. A worker writes and reads them for its
client, and the client for itself. What an operating system refuses is part of an answer, and no
error.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import socket
from typing import Any

import psutil
import tensorflow.compat.v1 as tf

from ..checkpoint import file_names
from ..checkpoint.storage import Storage, free_bytes
from ..hosts import memory_limits
from ..native import library
from ..proto import files
from ..version import VERSION

VERSIONS = ('etpe', 'TensorFlow', 'kernels', 'Python')
"""What `versions` tells. All processes of a cluster must agree on all but Python."""

_MOST = 4096


def versions() -> dict[str, str]:
    """Returns the versions that `VERSIONS` names; of the kernels, the beginning of their SHA-256.

    The kernels are loaded, so that graphs of other processes can use them here.
    """
    kernels = _sha256(str(library.PATH))[:12] if library.load() is not None else 'none'
    return {'etpe': VERSION, 'TensorFlow': tf.__version__, 'kernels': kernels,
            'Python': platform.python_version()}


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Returns the names of versions in which two processes must agree and do not.

    >>> differences({'etpe': '1', 'Python': '3.11'}, {'etpe': '2', 'Python': '3.12'})
    ['etpe']
    """
    return [name for name in VERSIONS if name != 'Python' and one.get(name) != other.get(name)]


def free_memory() -> int:
    """Returns the bytes of memory that tables may take here: free bytes, within its limits."""
    free = psutil.virtual_memory().available + psutil.swap_memory().free
    return int(min(free, memory_limits.limit().bytes))


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


def note(directory: str, name: str, action: str, text: str = '') -> dict[str, Any]:
    """Writes, reads or removes a note in a directory that all processes should have.

    Returns:
      The `text` of a note that was read. `problem` says why nothing was done, and `is_missing`
      whether that is because there is no such directory or note.

    Raises:
      ValueError: for another name or action.
    """
    if not re.fullmatch('[0-9A-Za-z]{1,64}', name):
        raise ValueError(f'the name of a note must have letters and digits only, not {name!r}')
    if action not in ('write', 'read', 'remove'):
        raise ValueError(f'a note can be written, read and removed, but not {action!r}')
    file = file_names.note(name)
    try:
        with Storage(directory) as storage:
            if action == 'write':
                storage.create(file, text.encode())
                storage.sync(file)
            elif action == 'remove':
                storage.remove(file)
            else:
                with storage.open(file) as stream:
                    return {'text': stream.read(_MOST).decode(errors='replace')}
    except OSError as error:
        problem = error.strerror or str(error)
        if error.errno == errno.ENOSPC:
            problem += f'; {free_bytes(directory):,} bytes are free'
        return {'problem': problem, 'is_missing': error.errno == errno.ENOENT}
    return {}


def index(checkpoint: str) -> dict[str, Any]:
    """Returns the `sha256` of the index of a checkpoint, or the `problem` of reading it."""
    try:
        return {'sha256': _sha256(os.path.abspath(checkpoint + file_names.INDEX))}
    except OSError as error:
        return {'problem': error.strerror or str(error)}


def _machine() -> str:
    """Returns what differs between machines, their starts, and namespaces of processes."""
    boot = memory_limits.text_of('/proc/sys/kernel/random/boot_id').strip()
    with contextlib.suppress(OSError):
        return boot and f'{boot} {os.readlink("/proc/self/ns/pid")}'
    return ''


def _begun(pid: Any) -> str | None:
    """Returns when a process began, in ticks of the machine; `None` if there is no such one."""
    state, *others = memory_limits.text_of(f'/proc/{pid}/stat').rpartition(')')[2].split() or ['X']
    return None if state in 'ZX' else others[18]


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with files.open_regular(path, follow=True) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
