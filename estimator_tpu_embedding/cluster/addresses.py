"""Reads addresses of workers, checks a list of them, and finds out what answers at one."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import Problem, shown

_MOST_PORT = 65535
_REMEDY = 'An address looks like 10.0.0.3:8470.'
_SETTINGS = b'\x04'
_GREETING = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\0\0\0' + _SETTINGS + bytes(5)
"""How a client of gRPC begins, RFC 9113, 3.4: the preface and an empty SETTINGS frame."""


class Address(NamedTuple):
    """A machine by name or number, and a port of it.

    >>> str(Address('::1', 8470)), str(Address('10.0.0.3', 8470))
    ('[::1]:8470', '10.0.0.3:8470')
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f'[{self.host}]:{self.port}' if ':' in self.host else f'{self.host}:{self.port}'


def split(text: str) -> list[str]:
    """Returns the addresses of a list as a flag has it.

    >>> split('10.0.0.3:8470, grpc://10.0.0.4:8470,')
    ['10.0.0.3:8470', '10.0.0.4:8470']
    """
    parts = (part.strip() for part in text.split(','))
    return [part.removeprefix('grpc://') for part in parts if part]


def listed(given: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the addresses that a user gave: in a list, or separated by commas.

    Where there is none, an empty one stands, so that it is refused: `--workers "$WORKERS"`
    without that variable must not train elsewhere than it was told.

    >>> listed('10.0.0.3:8470,10.0.0.4:8470'), listed('')
    (('10.0.0.3:8470', '10.0.0.4:8470'), ('',))
    """
    if isinstance(given, str):
        return tuple(split(given)) or (given,)
    return tuple(given) or ('',) if isinstance(given, (list, tuple)) else (repr(given),)


def parsed(text: str, *, lowest_port: int = 1) -> Address | None:
    """Returns an address, or `None` if it is none.

    >>> parsed('[::1]:8470').host, parsed('10.0.0.3'), parsed('10.0.0.3:99999')
    ('::1', None, None)
    """
    host, _, port = text.rpartition(':')
    if host.startswith('[') and host.endswith(']'):
        host = host[1:-1]
    elif ':' in host:
        return None
    if not host or '/' in host or not (port.isascii() and port.isdecimal() and len(port) < 6):
        return None
    return Address(host, int(port)) if lowest_port <= int(port) <= _MOST_PORT else None


def checked(text: str) -> Address:
    """Returns an address about which `problems` said nothing."""
    address = parsed(text)
    assert address is not None, text
    return address


def problems(texts: Sequence[str]) -> Iterator[Problem]:
    """Yields every problem of the addresses of workers.

    Names of machines are looked up, but nobody is contacted. Two names of one machine with the
    same port are one worker, so they are refused like an address that is there twice.
    """
    seen: dict[tuple[str, int], int] = {}
    local: dict[bool, int] = {}
    for index, text in enumerate(texts):
        where = f'worker {index}'
        address = parsed(text) if isinstance(text, str) else None
        if address is None:
            yield Problem('E702', where, f'its address must have a machine, a colon and a port in '
                          f'[1, {_MOST_PORT}]', _seen(text), _REMEDY)
            continue
        number = number_of(address.host)
        if number is None:
            yield Problem('E704', where, 'its machine must be a number or a name that can be '
                          'looked up', shown(text), 'Correct the name, or use its number.')
            continue
        if _of(number).is_unspecified:
            yield Problem('E704', where, 'its machine must be one that others reach', shown(text),
                          'Give the address by which other machines know it.')
            continue
        first = seen.setdefault((number, address.port), index)
        if first != index:
            yield Problem('E703', where, 'each worker must be another process',
                          f'the address of worker {first}: {shown(text)}', 'Leave one out.')
        local.setdefault(_is_loopback(number), index)
    if len(local) == 2:
        yield Problem('E715', f'worker {local[True]}', 'workers reach each other by their '
                      'addresses, so an address of loopback fits only if all are of loopback',
                      shown(texts[local[True]]), 'Give the address that other machines know.')


def _seen(given: object) -> str:
    text = shown(given) if isinstance(given, str) else repr(given)
    return text if text.strip() else 'nothing'


def number_of(host: str) -> str | None:
    """Returns the number of a machine, such as `'10.0.0.3'`; `None` if its name is unknown."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return str(found[0][4][0]) if found else None


def is_loopback(host: str) -> bool:
    """Whether a machine is this one, by an address that no other machine can use."""
    number = number_of(host)
    return number is not None and _is_loopback(number)


def _is_loopback(number: str) -> bool:
    return _of(number).is_loopback


def _of(number: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(number.partition('%')[0])


def is_refused(address: Address, seconds: float) -> bool:
    """Whether a machine says that nobody listens there; one that says nothing may be slow."""
    try:
        socket.create_connection(address, timeout=seconds).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False


def stranger_at(address: Address, seconds: float) -> str:
    """Returns how a server answers a client of gRPC, if it knows no gRPC; `''` in doubt."""
    try:
        with socket.create_connection(address, timeout=seconds) as line:
            line.settimeout(seconds)
            line.sendall(_GREETING)
            answer = line.recv(64)
    except OSError:
        return ''
    is_grpc = answer[3:4] == _SETTINGS  # The first frame of a server, after 3 bytes of its size.
    return '' if is_grpc or len(answer) < 4 else shown(answer.decode('latin-1').split('\r\n')[0])


def seen_by(host: str) -> str:
    """Returns the address of this machine that another one reaches it by; sends no packet.

    Raises:
      OSError: if there is no way to it.
    """
    family, kind, _, _, place = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as way:
        way.connect(place)
        return str(way.getsockname()[0])
