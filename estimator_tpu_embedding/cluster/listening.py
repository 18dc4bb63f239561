"""Finds on which addresses a process really listens, and whether other machines can reach them.

TensorFlow's server listens on all interfaces whatever address it is given. So the system is asked.
"""

from __future__ import annotations

import ipaddress
import socket

import psutil

from ..errors import ExposedServerError, Problem, SetupError
from .addresses import Address


def own_addresses() -> list[str]:
    """Returns the addresses on which this process listens, such as `['[::]:8470']`, sorted."""
    return sorted(str(Address(*one.laddr)) for one in psutil.Process().net_connections('tcp')
                  if one.status == psutil.CONN_LISTEN)


def interfaces() -> dict[str, str]:
    """Returns an address of each interface by which other machines could reach this one.

    An empty result means that the machine has loopback only.
    """
    found: dict[str, str] = {}
    for name, given in psutil.net_if_addrs().items():
        for one in given:
            address = one.address.partition('%')[0]
            if (one.family in (socket.AF_INET, socket.AF_INET6)
                    and not ipaddress.ip_address(address).is_loopback):
                found.setdefault(name, address)
    return found


def interfaces_text() -> str:
    """Returns `interfaces` for people, such as `'eth0 (10.0.0.3)'`; `''` if there is none."""
    return ', '.join(f'{name} ({address})' for name, address in sorted(interfaces().items()))


def require_private(where: str, expose: bool) -> None:
    """Makes sure that a server of TensorFlow may listen here.

    Raises:
      ExposedServerError: E705, if other machines could reach it and nobody agreed.
    """
    others = '' if expose else interfaces_text()
    if others:
        raise ExposedServerError(Problem(
            'E705', where, 'a server of TensorFlow listens on all interfaces and obeys everybody '
            'who reaches it, so it starts only where there is no interface but loopback', others,
            'In a private network, say --expose, or install(expose=True).'))


def require_free(where: str, port: int) -> None:
    """Makes sure that nobody listens on a port, which gRPC would share with any such server.

    Raises:
      SetupError: E706, with the process that listens there if it can be seen.
    """
    holders = [one.pid for one in psutil.net_connections('tcp')
               if one.status == psutil.CONN_LISTEN and one.laddr.port == port]
    if holders:
        pid = next(filter(None, holders), None)
        who = 'a process of another user' if pid is None else f'process {pid}'
        raise SetupError(Problem(
            'E706', where, f'port {port} must be free', f'{who} listens on it',
            'End that process, or take another port.'))
