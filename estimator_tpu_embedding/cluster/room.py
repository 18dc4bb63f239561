"""Refuses tables that the memory of a worker cannot hold, before a session gives them memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import ConfigError, Problem, bytes_text
from .addresses import parsed


def require_room(addresses: Sequence[str], available: Sequence[int], needed: Sequence[int]) -> None:
    """Makes sure that the tables of each worker fit into what its machine has.

    Workers with one address but for the port share a machine, so they share its memory.

    Args:
      addresses: of the workers, by host.
      available: bytes that each said it may still use, when it held nothing.
      needed: bytes of rows and slots of each host.

    Raises:
      ConfigError: E744 for each machine that has too little.
    """
    if problems := list(_problems(addresses, available, needed)):
        raise ConfigError(*problems)


def _problems(addresses: Sequence[str], available: Sequence[int], needed: Sequence[int]
              ) -> Iterator[Problem]:
    machines: dict[str, list[int]] = {}
    for host, address in enumerate(addresses):
        place = parsed(address)
        machines.setdefault(address if place is None else place.host, []).append(host)
    for hosts in machines.values():
        total, most = sum(needed[host] for host in hosts), min(available[host] for host in hosts)
        if total > most:
            yield too_large(
                ', '.join(f'worker {addresses[host]} of host {host}' for host in hosts),
                ' + '.join(_shown(needed[host]) for host in hosts)
                + (f' = {_shown(total)} on one machine' if len(hosts) > 1 else ''),
                f', of which {_shown(most)} are available')


def too_large(where: str, got: str, available: str = '') -> Problem:
    """Returns E744: the tables of a worker do not fit its memory."""
    return Problem('E744', where, f'rows and slots must fit its memory{available}', got,
                   'Take more workers on other machines, fewer or narrower rows, an optimizer with '
                   'fewer slots, or more memory.')


def _shown(count: int) -> str:
    return f'{count:,} bytes ({bytes_text(count)})'
