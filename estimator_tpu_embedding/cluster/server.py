"""Starts TensorFlow's server in a process: a worker's, or the client's own."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import Problem, SetupError, shown
from . import listening
from .addresses import Address, checked, is_loopback, number_of, seen_by
from .host_errors import HostUnavailableError

BOOT_JOB = 'etpe_boot'
"""The job that a server belongs to while no session tells it about a cluster.

A session that does names other jobs, since TensorFlow refuses two meanings of one name.
"""


class Target(str):
    """The target of a session that this package opens at a server of a cluster.

    Sessions of scripts at the addresses of TPUs are opened in this process instead.
    """


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A running server, which ends with its process.

    Attributes:
      target: opens a session at it, in this process.
      address: where others reach it.
      listens: the addresses on which it really listens.
    """

    target: Target
    address: Address
    listens: list[str]


_PROXIES = ('grpc_proxy', 'https_proxy', 'http_proxy')
_EXCEPT, _EXCEPT_OF_ALL = 'no_grpc_proxy', 'no_proxy'
_LOOPBACK = '127.0.0.1'
_running: list[Any] = []
_of_client: dict[str, Server] = {}


def start(where: str, asked: Address, *, expose: bool) -> Server:
    """Starts a server at an address of this machine, of which port 0 means any that is free.

    Raises:
      SetupError: E706 if the port is taken, E714 if the address is of another machine.
      ExposedServerError: E705.
    """
    listening.require_private(where, expose)
    _require_own(where, asked)
    listening.require_free(where, asked.port)
    config = tf.ConfigProto(device_count={'GPU': 0})
    try:
        server = tf.distribute.Server({BOOT_JOB: [str(asked)]}, job_name=BOOT_JOB, task_index=0,
                                      protocol='grpc', config=config)
    except tf.errors.OpError as error:
        raise SetupError(Problem('E706', where, f'a server must start at {asked}',
                                 shown(error.message, 300), 'Take another port.')) from error
    _running.append(server)
    address = Address(asked.host, int(server.target.rpartition(':')[2]))
    return Server(Target(server.target), address, [
        one for one in listening.own_addresses() if one.endswith(f':{address.port}')])


def for_workers(workers: Sequence[str], expose: bool) -> Server:
    """Returns the server of this process for its jobs; one that was started cannot end.

    Raises:
      HostUnavailableError: E707 if there is no way to them.
      SetupError, ExposedServerError: see `start`.
    """
    hosts = [checked(worker).host for worker in workers]
    far = [host for host in hosts if not is_loopback(host)]
    try:
        own = seen_by(far[0]) if far else _LOOPBACK
    except OSError as error:
        raise HostUnavailableError(Problem(
            'E707', f'worker at {far[0]}', 'there must be a way to it', str(error.strerror),
            'Look at the network of this machine.')) from error
    avoid_proxies([*hosts, own])
    if own not in _of_client:
        _of_client[own] = start('the server of this process', Address(own, 0), expose=expose)
    return _of_client[own]


def forget_proxies() -> None:
    """Makes this process, which is a worker and nothing else, use no proxy.

    gRPC would reach even 127.0.0.1 through a proxy for web pages.
    """
    for name in _PROXIES:
        os.environ.pop(name, None)


def avoid_proxies(hosts: Iterable[str]) -> None:
    """Makes gRPC reach some machines without a proxy; others, and other libraries, keep theirs."""
    if any(os.environ.get(name) for name in _PROXIES):
        before = os.environ.get(_EXCEPT, os.environ.get(_EXCEPT_OF_ALL, ''))
        known = [one for one in before.split(',') if one]
        os.environ[_EXCEPT] = ','.join(dict.fromkeys([*known, *hosts]))


def _require_own(where: str, asked: Address) -> None:
    number = number_of(asked.host)
    if number is not None:
        family = socket.AF_INET6 if ':' in number else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.bind((number, 0))
            return
        except OSError:
            pass
    raise SetupError(Problem(
        'E714', where, 'the address to listen on must be one of this machine', str(asked),
        f'Addresses of interfaces here: {", ".join(listening.interfaces().values()) or "none"}, '
        'and 127.0.0.1.'))
