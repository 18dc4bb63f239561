"""How much memory this process may have at most, as the system says.

These are hard limits, whatever is free just now: what is above them fails for certain.
"""

from __future__ import annotations

import pathlib
import resource
from collections.abc import Iterator

from ..core.budget import Memory
from ..proto import files

_GROUPS = pathlib.Path('/sys/fs/cgroup')
_MOST = 2**20
"""Bytes that are read of a file of the system."""

_UNLIMITED = 2**60


def limit() -> Memory | None:
    """The tightest limit, or `None` if the system says nothing."""
    return min(_limits(), key=lambda memory: memory.bytes, default=None)


def _limits() -> Iterator[Memory]:
    yield from _of_process()
    machine = _fields('/proc/meminfo')
    swap = machine.get('SwapTotal', 0)
    if 'MemTotal' in machine:
        yield Memory(machine['MemTotal'] + swap, 'the memory and swap of this machine')
    for path in _files_of_groups(_text('/proc/self/cgroup')):
        number = _text(str(path)).strip()
        if number.isdecimal() and int(number) < _UNLIMITED:
            yield Memory(int(number) + swap, f'the limit in {path}' + (' and swap' * bool(swap)))


def _of_process() -> Iterator[Memory]:
    """What is left of the limits that a shell sets by `ulimit`."""
    taken = _fields('/proc/self/status')
    for name, kind, field in (('RLIMIT_AS', resource.RLIMIT_AS, 'VmSize'),
                              ('RLIMIT_DATA', resource.RLIMIT_DATA, 'VmData')):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield Memory(max(soft - taken.get(field, 0), 0), f'what is left of {name}')


def _files_of_groups(listing: str) -> Iterator[pathlib.Path]:
    """The files with the limits of the groups of a process and of those that these are in.

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
        # In a container the path may be that of the system outside, which is not there.
        for end in range(len(parts) + 1) if '..' not in parts else (0,):
            yield root.joinpath(*parts[:end], name)


def _fields(path: str) -> dict[str, int]:
    """The lines `name: 12 kB` of a file, in bytes."""
    found = {}
    for line in _text(path).splitlines():
        name, _, value = line.partition(':')
        number, _, unit = value.strip().partition(' ')
        if unit == 'kB' and number.isdecimal():
            found[name] = 1024 * int(number)
    return found


def _text(path: str) -> str:
    """What a file of the system holds; empty if it is not there."""
    try:
        with files.open_regular(path, follow=True) as stream:
            return files.read_at_most(stream, _MOST).decode(errors='replace')
    except (OSError, ValueError):
        return ''
