"""A worker: a process that holds the shards of one host, and does what its client's graphs say.

Its memory belongs to one run at a time. The run may give the worker back, or its client may be
silent for longer than the lease, or have ended on the same machine. Then the process executes
itself anew. It keeps its number and its port, and nothing of the run is left. A worker that a
client started for itself has no lease. It ends with that client.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import psutil

from .. import _process, _tf
from ..proto import files
from . import listening, process_facts
from .addresses import Address
from .server import Server, forget_proxies, start

TOKEN = 'etpe_control'
"""Names the function of a worker that clients call."""

LEASE_SECONDS = 60.0
_MOST_VALUES = 100_000
_PAUSE = .1
"""Seconds between two looks at the lease; the answer to the last call leaves meanwhile."""


@dataclasses.dataclass(slots=True)
class _Holder:
    run: str
    client: str
    renewed: float
    has_ended: Callable[[], bool]
    is_leaving: bool = False


class Lease:
    """The claim of one run on a worker; safe to use from any thread.

    It is over if the client was silent for too long, gave the worker back, or is known to have
    ended. Then the process of the worker begins anew, so a lease is never given to a second run.

    >>> lease = Lease(60, clock=lambda: 5.0)
    >>> lease.claim('run-1', 'alice'), lease.claim('run-2', 'bob')
    (True, False)
    >>> lease.as_data()['client'], lease.is_over()
    ('alice', False)
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
        """Begins without a claim."""
        self._seconds, self._clock = seconds, clock
        self._lock = threading.Lock()
        self._holder: _Holder | None = None

    def claim(self, run: str, client: str, has_ended: Callable[[], bool] = lambda: False) -> bool:
        """Claims or renews; returns whether the worker is this run's from now on."""
        with self._lock:
            if self._holder is None:
                self._holder = _Holder(run, client, self._clock(), has_ended)
            return self._renew(run)

    def renew(self, run: str) -> bool:
        """Returns whether the worker is still this run's."""
        with self._lock:
            return self._renew(run)

    def release(self, run: str) -> bool:
        """Ends the claim of a run; returns whether it had one."""
        with self._lock:
            is_held = self._renew(run)
            if self._holder is not None and is_held:
                self._holder.is_leaving = True
            return is_held

    def is_over(self) -> bool:
        """Whether there was a claim that has ended."""
        with self._lock:
            return self._holder is not None and self._left(self._holder) <= 0

    def as_data(self) -> dict[str, Any] | None:
        """Returns who has the worker, for how long silent, and seconds left; `None` if nobody."""
        with self._lock:
            if self._holder is None:
                return None
            left = self._left(self._holder)
            return {'run': self._holder.run, 'client': self._holder.client,
                    'silent_seconds': round(self._clock() - self._holder.renewed, 3),
                    'seconds_left': None if left == float('inf') else round(max(left, 0.0), 3)}

    def _renew(self, run: str) -> bool:
        holder = self._holder
        if holder is None or holder.run != run or self._left(holder) <= 0:
            return False
        holder.renewed = self._clock()
        return True

    def _left(self, holder: _Holder) -> float:
        if holder.is_leaving or holder.has_ended():
            return 0.0
        return holder.renewed + self._seconds - self._clock()


class Worker:
    """What a worker answers to its clients; safe to call from any thread."""

    def __init__(self, lease: Lease, versions: dict[str, str]):
        """Begins without a client."""
        self._lease, self._versions = lease, versions
        self._begun, self._incarnation = time.monotonic(), uuid.uuid4().hex
        self._tables: list[dict[str, Any]] = []
        self._room = process_facts.free_memory()
        self.must_begin_anew = threading.Event()
        self._verbs: dict[str, Callable[..., dict[str, Any]]] = {
            'status': self._status, 'claim': self._claim, 'renew': self._renew,
            'tables': self._take_tables, 'reset': self._reset, 'release': self._release,
            'note': process_facts.note, 'index': process_facts.index}

    def answer(self, request: bytes) -> bytes:
        """Returns the answer to a call, both as JSON.

        A call has `verb` and `arguments`. An answer has `incarnation`, which differs each time
        the process begins, and what the verb gives; or `error`.
        """
        try:
            call = files.json_object(bytearray(request), _MOST_VALUES)
            found = self._verbs[call['verb']](**call['arguments'])
        except Exception as error:  # The client raises it.
            found = {'error': f'{type(error).__name__}: {error}'}
        return json.dumps({**found, 'incarnation': self._incarnation}).encode()

    def _status(self) -> dict[str, Any]:
        return {'pid': os.getpid(), 'versions': self._versions, 'tables': self._tables,
                'room': self._room,
                'seconds': round(time.monotonic() - self._begun, 3),
                'claim': self._lease.as_data(), 'listens': listening.own_addresses(),
                'memory': {'used': psutil.Process().memory_info().rss,
                           'available': psutil.virtual_memory().available}}

    def _claim(self, run: str, client: str, process: Any = None) -> dict[str, Any]:
        is_seen = not process_facts.has_ended(process)  # A user may hide its processes from others.
        is_ours = self._lease.claim(
            run, client, lambda: is_seen and process_facts.has_ended(process))
        return {'is_ours': is_ours, **self._status()}

    def _renew(self, run: str) -> dict[str, Any]:
        return {'is_ours': self._lease.renew(run), 'claim': self._lease.as_data()}

    def _take_tables(self, run: str, tables: list[dict[str, Any]]) -> dict[str, Any]:
        is_ours = self._lease.renew(run)
        if is_ours:
            self._tables = tables
        return {'is_ours': is_ours}

    def _reset(self, run: str) -> dict[str, Any]:
        """Begins anew for its run, which has to claim it again."""
        is_ours = self._lease.renew(run)
        if is_ours:
            self.must_begin_anew.set()
        return {'is_ours': is_ours}

    def _release(self, run: str) -> dict[str, Any]:
        """Begins anew, for any run."""
        return {'is_ours': self._lease.release(run)}


def serve(address: Address, tell: Callable[[Server, dict[str, str]], None], *,
          expose: bool, lease_seconds: float, parent: int | None) -> int:
    """Is a worker until a signal ends the process, or it has to begin anew.

    Args:
      address: where clients reach it.
      tell: is called once it listens, with the versions of this process.
      expose: whether other machines may reach it.
      lease_seconds: of silence of its client after which it begins anew.
      parent: the process that it ends with, or `None`.

    Raises:
      SetupError, ExposedServerError: if it cannot listen there.
    """
    forget_proxies()
    if parent is not None:
        _process.end_with_parent()
        # The client may need this worker to save, after it was told to end.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    versions = process_facts.versions()
    seconds = lease_seconds if parent is None else float('inf')
    lease = Lease(seconds)
    worker = Worker(lease, versions)
    _tf.register_function(TOKEN, answer := worker.answer)
    tell(start(f'worker {address}', address, expose=expose), versions)
    while parent in (None, os.getppid()):
        time.sleep(_PAUSE)
        if worker.must_begin_anew.is_set() or lease.is_over():
            time.sleep(_PAUSE)
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    del answer  # It was alive until here, for the registry keeps no function.
    os._exit(0)
