"""Finds the limits that the operating system sets on the memory of this process.

It looks at the machine, at control groups, and at the part of each `ulimit` that this process has
not used yet. How much memory other processes leave free does not count: a job that needs more than
such a limit fails for certain.
"""

from __future__ import annotations

import pathlib
import resource
from collections.abc import Iterator

from ..core.budget import Memory
from ..proto import files

_GROUPS = pathlib.Path('/sys/fs/cgroup')
_MOST = 2**20
"""Bytes read of a file of the system, at most."""

_UNLIMITED = 2**60


def limit() -> Memory | None:
    """Returns the tightest limit, or `None` if the system says nothing."""
    return min(_limits(), key=lambda memory: memory.bytes, default=None)


def _limits() -> Iterator[Memory]:
    yield from _of_process()
    machine = figures('/proc/meminfo')
    swap = machine.get('SwapTotal', 0)
    if 'MemTotal' in machine:
        yield Memory(machine['MemTotal'] + swap, 'the memory and swap of this machine')
    for path in _files_of_groups(text_of('/proc/self/cgroup')):
        number = text_of(str(path)).strip()
        if number.isdecimal() and int(number) < _UNLIMITED:
            yield Memory(int(number) + swap, f'the limit in {path}' + (' and swap' * bool(swap)))


def _of_process() -> Iterator[Memory]:
    """Yields, for each limit that a shell sets by `ulimit`, the part not used yet."""
    taken = figures('/proc/self/status')
    for name, kind, field in (('RLIMIT_AS', resource.RLIMIT_AS, 'VmSize'),
                              ('RLIMIT_DATA', resource.RLIMIT_DATA, 'VmData')):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield Memory(max(soft - taken.get(field, 0), 0), f'what is left of {name}')


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


def figures(path: str) -> dict[str, int]:
    """Reads the lines `name: 12 kB` of a file; returns bytes by name."""
    found = {}
    for line in text_of(path).splitlines():
        name, _, value = line.partition(':')
        number, _, unit = value.strip().partition(' ')
        if unit == 'kB' and number.isdecimal():
            found[name] = 1024 * int(number)
    return found


def text_of(path: str) -> str:
    """Returns the text of a file of the system; empty if there is no such file."""
    try:
        with files.open_regular(path, follow=True) as stream:
            return files.read_at_most(stream, _MOST).decode(errors='replace')
    except (OSError, ValueError):
        return ''
