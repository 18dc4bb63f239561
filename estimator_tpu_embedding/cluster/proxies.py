"""Keeps a proxy for web pages out of the way of gRPC, which would use it even for 127.0.0.1."""

from __future__ import annotations

import os
from collections.abc import Iterable

_USED = ('grpc_proxy', 'https_proxy', 'http_proxy')
_EXCEPT, _EXCEPT_OF_ALL = 'no_grpc_proxy', 'no_proxy'


def forget() -> None:
    """Makes this process, which is a worker and nothing else, use no proxy."""
    for name in _USED:
        os.environ.pop(name, None)


def avoid(hosts: Iterable[str]) -> None:
    """Makes gRPC reach some machines without a proxy; others, and other libraries, keep theirs."""
    if any(os.environ.get(name) for name in _USED):
        before = os.environ.get(_EXCEPT, os.environ.get(_EXCEPT_OF_ALL, ''))
        known = [one for one in before.split(',') if one]
        os.environ[_EXCEPT] = ','.join(dict.fromkeys([*known, *hosts]))
