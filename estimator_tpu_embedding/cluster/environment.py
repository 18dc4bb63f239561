"""Sets the environment variables of a cluster's processes: proxies, and what a child imports."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable

_PROXIES = ('grpc_proxy', 'https_proxy', 'http_proxy')
_EXCEPT, _EXCEPT_OF_ALL = 'no_grpc_proxy', 'no_proxy'
PACKAGE = str(__package__).partition('.')[0]
_PATH = 'PYTHONPATH'


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


def of_child() -> dict[str, str]:
    """Returns the variables of a process that is to import this very package."""
    root = str(pathlib.Path(__file__).resolve().parent.parent.parent)
    path = os.pathsep.join(filter(None, [root, os.environ.get(_PATH, '')]))
    return {**os.environ, _PATH: path}
