"""Finds the limits that the operating system sets on the memory of this process.

It looks at the machine, at control groups, and at the part of each `ulimit` that this process has
not used yet. How much memory other processes leave free does not count: a job that needs more than
such a limit fails for certain.
"""

from __future__ import annotations

import pathlib
import resource
from collections.abc import Iterator

import psutil

from ..core.budget import Memory
from ..proto import files

_GROUPS = pathlib.Path('/sys/fs/cgroup')
_MOST = 2**20
"""Bytes read of a file of the system, at most."""

_UNLIMITED = 2**60


def limit() -> Memory:
    """Returns the tightest limit."""
    return min(_limits(), key=lambda memory: memory.bytes)


def _limits() -> Iterator[Memory]:
    taken = psutil.Process().memory_info()
    for name, field in (('RLIMIT_AS', 'vms'), ('RLIMIT_DATA', 'data')):
        soft, _ = resource.getrlimit(getattr(resource, name))
        if soft != resource.RLIM_INFINITY:
            yield Memory(max(soft - getattr(taken, field), 0), f'what is left of {name}')
    swap = psutil.swap_memory().total
    yield Memory(psutil.virtual_memory().total + swap, 'the memory and swap of this machine')
    for path in _files_of_groups(text_of('/proc/self/cgroup')):
        number = text_of(str(path)).strip()
        if number.isdecimal() and int(number) < _UNLIMITED:
            yield Memory(int(number) + swap, f'the limit in {path}' + (' and swap' * bool(swap)))


def _files_of_groups(listing: str) -> Iterator[pathlib.Path]:
    """Yields the files with the limits of a process's control groups and of all groups above them.

    Args:
      listing: `/proc/self/cgroup`: lines `0::/a/b` of version 2, `4:memory:/a/b` of version 1.
    """
    for line in listing.splitlines():
        number, controllers, path = (line.split(':', 2) + ['', ''])[:3]
        if number == '0' and not controllers:
            root, name = _GROUPS, 'memory.max'
        elif 'memory' in controllers.split(','):
            root, name = _GROUPS / 'memory', 'memory.limit_in_bytes'
        else:
            continue
        parts = pathlib.PurePosixPath(path).parts[1:]
        # In a container the path may be the one of the system outside, which does not exist here.
        for end in range(len(parts) + 1) if '..' not in parts else (0,):
            yield root.joinpath(*parts[:end], name)


def text_of(path: str) -> str:
    """Returns the text of a file of the system; empty if there is no such file."""
    try:
        with files.open_regular(path, follow=True) as stream:
            return files.read_at_most(stream, _MOST).decode(errors='replace')
    except (OSError, ValueError):
        return ''
