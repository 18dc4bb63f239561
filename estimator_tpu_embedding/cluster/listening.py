"""Finds on which addresses a process really listens, and whether other machines can reach them.

TensorFlow's server listens on all interfaces whatever address it is given. So the truth is read
from the tables of the system, in /proc.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import os
import re
import socket
import struct
import sys
from collections.abc import Iterator

from ..errors import ExposedServerError, Problem, SetupError
from ..proto import files
from .addresses import Address

_LISTENING = '0A'
_MOST = 2**24
"""Bytes read of a table of the system, at most."""

_SIOCGIFADDR = 0x8915


def addresses_of(pid: int | str = 'self') -> list[str]:
    """Returns the addresses on which a process listens, such as `['[::]:8470']`, sorted."""
    own = set(_sockets_of(pid))
    return sorted(str(address) for address, inode in _listening() if inode in own)


def holder_of(port: int) -> int | None:
    """Returns the process that listens on a port; `None` if there is none, or it is not ours."""
    wanted = {inode for address, inode in _listening() if address.port == port}
    pids = (name for name in os.listdir('/proc') if name.isdecimal()) if wanted else ()
    return next((int(pid) for pid in pids if not wanted.isdisjoint(_sockets_of(pid))), None)


def interfaces() -> dict[str, str]:
    """Returns an address of each interface by which other machines could reach this one.

    An empty result means that the machine has loopback only.
    """
    found: dict[str, str] = {}
    for _, name in socket.if_nameindex():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked, \
                contextlib.suppress(OSError):  # It has no address.
            packed = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack('256s', name.encode()[:15]))
            found[name] = socket.inet_ntoa(packed[20:24])
    for line in text_of('/proc/net/if_inet6').splitlines():
        number, *_, name = line.split()
        found.setdefault(name, str(ipaddress.ip_address(bytes.fromhex(number))))
    return {name: address for name, address in found.items()
            if not ipaddress.ip_address(address).is_loopback}


def require_private(where: str, expose: bool) -> None:
    """Makes sure that a server of TensorFlow may listen here.

    Args:
      where: the process that would listen, for the message.
      expose: whether the user agreed that other machines can reach it.

    Raises:
      ExposedServerError: E705, if other machines could reach it and nobody agreed.
    """
    others = {} if expose else interfaces()
    if others:
        raise ExposedServerError(Problem(
            'E705', where, 'a server of TensorFlow listens on all interfaces and obeys everybody '
            'who reaches it, so it starts only where there is no interface but loopback',
            ', '.join(f'{name} ({address})' for name, address in sorted(others.items())),
            'In a private network, say --expose, or install(expose=True).'))


def require_free(where: str, port: int) -> None:
    """Makes sure that nobody listens on a port, except for port 0, which means any.

    Raises:
      SetupError: E706, with the process that listens there if it can be seen.
    """
    try:
        for family, number in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((number, port))
    except OSError as error:
        if isinstance(error, PermissionError):
            raise SetupError(Problem(
                'E706', where, f'port {port} must be one that this user may take',
                str(error.strerror), 'Take one above 1023.')) from error
        holder = holder_of(port)
        if holder is None and port not in {address.port for address, _ in _listening()}:
            return  # There is no such family of addresses here.
        who = 'a process of another user' if holder is None else f'process {holder}'
        raise SetupError(Problem('E706', where, f'port {port} must be free',
                                 f'{who} listens on it',
                                 'End that process, or take another port.')) from error


def _listening() -> Iterator[tuple[Address, str]]:
    """Yields each address on which anyone listens, and the inode of its socket."""
    for table in ('/proc/net/tcp', '/proc/net/tcp6'):
        for line in text_of(table).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTENING:
                number, _, port = fields[1].partition(':')
                yield Address(_number(number), int(port, 16)), fields[9]


def _number(hexadecimal: str) -> str:
    """Returns an address that the system wrote as words of 32 bits in its own order of bytes."""
    given = bytes.fromhex(hexadecimal)
    step = -1 if sys.byteorder == 'little' else 1
    return str(ipaddress.ip_address(b''.join(
        given[at:at + 4][::step] for at in range(0, len(given), 4))))


def _sockets_of(pid: int | str) -> Iterator[str]:
    """Yields the inodes of the sockets that a process has open; none if it cannot be seen."""
    folder = f'/proc/{pid}/fd'
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):  # It was closed meanwhile.
                if found := re.fullmatch(r'socket:\[(\d+)\]', os.readlink(f'{folder}/{name}')):
                    yield found[1]


def text_of(path: str) -> str:
    """Returns the text of a file of the system; empty if there is none."""
    with contextlib.suppress(OSError), files.open_regular(path, follow=False) as file:
        return files.read_at_most(file, _MOST).decode(errors='replace')
    return ''
