"""The cluster of a job: finds its workers, opens sessions over them, and replaces lost ones."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import os
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from ..errors import Problem, bytes_text, counted, shown
from ..hosts.placement import CLIENT_JOB, HOST_JOB
from . import claims, listening, preflight, worker_calls
from .claims import ClaimedWorker
from .guarded_sessions import Calls
from .heartbeats import Heartbeats, Watched
from .host_errors import HostLostError
from .local_workers import Children
from .server import Server, Target, for_workers
from .worker_choice import ClusterChoice

_RUN = uuid.uuid4().hex
_MOST_LEFT = 6.0
"""Seconds that the end waits for threads that wait for silent workers."""


class Cluster:
    """The workers of a job. Sessions over them see its client as one more task.

    The claims of this process on its workers live as long as it, and so do its own workers.

    Attributes:
      choice: which processes are meant.
      is_remote: whether hosts are tasks of their own.
      run: the name under which workers are claimed; it differs between processes.
      generation: how often the workers were given up for lost.
      loss: the error with which they were given up, until they are prepared again.
    """

    is_remote = True

    def __init__(self, choice: ClusterChoice, say: Callable[[str], None] = logging.info,
                 run: str | None = None):
        """Contacts and starts nobody yet; `say` is told what is found later.

        The choice has no `problems`: whoever states one looks at them.
        """
        self.choice, self.run = choice, run or _RUN
        self._say, self._pid = say, os.getpid()
        self._lock = threading.RLock()
        self._children = (Children(choice.processes, expose=choice.expose)
                          if choice.processes else None)
        self._server: Server | None = None
        self._opened: list[ClaimedWorker] = []
        self._stale: set[str] = set()
        self.loss: BaseException | None = None
        self._heartbeats: Heartbeats | None = None
        self._calls: Calls | None = None
        self.generation = 0
        self._tables: list[list[dict[str, Any]]] = []
        atexit.register(self.close)

    @property
    def num_hosts(self) -> int:
        """The number of workers."""
        return self.choice.num_hosts

    @property
    def restart_deadline(self) -> float:
        """Seconds in which workers that were lost have to begin anew."""
        return self.choice.worker_deadline

    @property
    def target(self) -> Target:
        """The target of sessions over the workers, which are prepared if they never were."""
        return self._running().target

    def addresses(self) -> list[str]:
        """Returns the address of each host's worker, once they are prepared."""
        return [one.address for one in self._opened]

    def incarnations(self) -> list[str]:
        """Returns what differs whenever a worker's process begins, once they are prepared."""
        return [one.incarnation for one in self._opened]

    def config(self, session_config: Any = None) -> Any:
        """Returns the `ConfigProto` of a session, whose state on the workers ends with it."""
        config = tf.ConfigProto()
        if session_config is not None:
            config.CopyFrom(session_config)
        config.isolate_session_state = True
        config.ClearField('device_filters')
        config.cluster_def.CopyFrom(tf.train.ClusterSpec({
            CLIENT_JOB: [str(self._running().address)], HOST_JOB: self.addresses(),
        }).as_cluster_def())
        return config

    def prepare(self) -> None:
        """Makes sure that every worker answers, is claimed, of our version, and holds nothing.

        It is called before each session is made. After `lost`, own workers are killed and started
        anew. Others have to begin anew, and get `choice.worker_deadline` seconds for that.

        Raises:
          HostUnavailableError: E707, E711 if workers do not answer; says who does.
          SetupError: E705, E706, E708, E709, E712.
        """
        self.check()
        with self._lock:
            deadline = (self.choice.connect_deadline if self.loss is None
                        else self.choice.worker_deadline)
            is_new = self.loss is not None or not self._opened
            own = self._own_addresses(deadline) if self._children is not None else None
            if self._server is None:
                self._server = for_workers(own or self.choice.workers, self.choice.expose)
            self._opened = claims.opened(
                own or self.choice.workers, self.run, deadline, self._stale, self._say)
            self.loss = None
            if is_new:
                self._begin_watch()
                for line in self.description():
                    self._say(line)

    def check(self) -> None:
        """Returns once each worker has just answered, or one is known to be lost."""
        if self._heartbeats is not None:
            self._heartbeats.check()

    def lost(self, error: BaseException, generation: int | None = None) -> None:
        """Gives all workers up, because one of them was lost; the next `prepare` replaces them.

        Every call of a guarded session ends with `error`. Own workers are killed at once: whatever
        still runs on them must change nothing.

        Args:
          error: says which one, and how that was noticed.
          generation: the workers that are meant; a loss of earlier ones is ignored. `None` means
            those of now.
        """
        with self._lock:
            if self.loss is None and generation in (None, self.generation):
                self._end_watch(error)
                self.generation += 1
                self.loss = error
                self._stale.update(self.incarnations())
                if self._children is not None:
                    self._children.kill()

    def guard(self, session: tf.Session) -> None:
        """Lets calls of a new session raise a `HostLostError` once a worker is lost."""
        assert self._calls is not None, 'prepare() comes first'
        self._calls.guard(session)

    def answers(self) -> str:
        """Says how fast each worker has answered since the last call, the slowest first."""
        return '' if self._heartbeats is None else self._heartbeats.answers()

    def tell_tables(self, tables: Sequence[Sequence[dict[str, Any]]]) -> None:
        """Tells each worker the `name`, `rows` and `bytes` of each part of a table on its host.

        Raises:
          worker_calls.NoAnswerError: if a worker does not answer.
        """
        self._tables = [list(one) for one in tables]
        worker_calls.for_all(self.addresses(), lambda host, address: worker_calls.ask(
            address, 'tables', run=self.run, tables=self._tables[host],
            deadline=preflight.SECONDS))

    def require_resources(self, tables: Sequence[Sequence[dict[str, Any]]], directory: str = '',
                          checkpoint: str = '', resident: int | None = None) -> None:
        """Makes sure that the workers have memory for tables, and see the files of a job.

        Args:
          tables: see `tell_tables`.
          directory: that the job writes into, an absolute path; `''` if it writes none.
          checkpoint: the prefix of the one that is restored, an absolute path; `''` for none.
          resident: bytes of memory that the tables of a worker take at most; `None` for all.

        Raises:
          ConfigError: E744 if tables do not fit.
          SetupError: E741 if a worker sees other files, E742 if it cannot write any.
          HostLostError: E707 if a worker does not answer.
        """
        addresses = self.addresses()
        if tables:
            preflight.require_memory(
                addresses, [int(one.status['room']) for one in self._opened],
                [sum(one['bytes'] for one in host) if resident is None else
                 min(sum(one['bytes'] for one in host), resident) for host in tables])
        if directory:
            preflight.require_shared(addresses, directory)
        if checkpoint:
            preflight.require_same(addresses, checkpoint)
        with contextlib.suppress(worker_calls.NoAnswerError):  # Heartbeats will say so.
            self.tell_tables(tables)

    def bytes_of(self, host: int) -> int:
        """Returns the bytes of the tables on a host, once they were told."""
        return sum(one['bytes'] for one in self._tables[host]) if self._tables else 0

    def status_of(self, host: int) -> int | None:
        """Returns how an own worker ended, such as -9; `None` if it runs, or is not our own."""
        return None if self._children is None else self._children.status_of(host)

    def pids(self) -> list[int]:
        """Returns the processes of own workers; none if they are not our own."""
        return [] if self._children is None else self._children.pids()

    def description(self) -> list[str]:
        """Returns lines for people: who was found, and who can reach this process."""
        opened, server = self._opened, self._running()
        lines = [f'{counted(len(opened), "worker")}: ' + ', '.join(
            f'host {host} is {one.address} (process {one.status.get("pid")})'
            for host, one in enumerate(opened))]
        versions = dict(opened[0].status['versions'])
        lines.append('all have ' + ', '.join(
            f'{name} {shown(version)}' for name, version in versions.items() if name != 'Python'))
        if others := listening.interfaces_text():
            lines.append(f'this process listens on {", ".join(server.listens)}, which other '
                         f'machines reach by {others}')
        lines += [f'host {host} holds {counted(len(held), "table")}, '
                  f'{bytes_text(sum(one["bytes"] for one in held))}'
                  for host, held in enumerate(self._tables)]
        return lines

    def close(self) -> None:
        """Gives the workers back, and ends own ones; `prepare` may be called again."""
        if os.getpid() != self._pid:  # A forked child has no workers.
            return
        with self._lock:
            self._end_watch(HostLostError(Problem(
                'E723', 'cluster', 'its sessions must end before it does', 'a call of one')))
            if self._children is not None:
                self._children.end()
            else:
                claims.give_back(self.addresses(), self.run)
            self._stale.update(self.incarnations())
            self._opened, self.loss = [], None
        worker_calls.await_threads(_MOST_LEFT)

    def _begin_watch(self) -> None:
        on_loss = functools.partial(self.lost, generation=self.generation)
        self._heartbeats = Heartbeats(
            [Watched(host, one.address, one.incarnation) for host, one in enumerate(self._opened)],
            run=self.run, is_own=self._children is not None, status_of=self.status_of,
            bytes_of=self.bytes_of, on_loss=on_loss)
        self._calls = Calls(
            self._heartbeats.check, on_loss, lambda: self.choice.step_deadline)

    def _end_watch(self, error: BaseException) -> None:
        if self._heartbeats is not None and self._calls is not None:
            self._heartbeats.stop()
            self._calls.end(error)

    def _own_addresses(self, deadline: float) -> list[str]:
        """Returns the addresses of own workers, which are started if there are none."""
        assert self._children is not None
        listening.require_private('etpe run --processes', self.choice.expose)
        if self.loss is None and self._opened and not self._children.have_ended():
            return self.addresses()
        return self._children.start(deadline)

    def _running(self) -> Server:
        if self._server is None:
            self.prepare()
        assert self._server is not None
        return self._server


_clusters: dict[ClusterChoice, Cluster] = {}


def current(choice: ClusterChoice, say: Callable[[str], None] = logging.info) -> Cluster:
    """Returns the cluster of this process for a choice; the same one each time.

    Choices that differ only in their deadlines share one, which has the deadlines of the last.
    """
    key = dataclasses.replace(choice, connect_deadline=1.0, worker_deadline=1.0,
                              step_deadline=None)
    if key not in _clusters:
        _clusters[key] = Cluster(choice, say)
    _clusters[key].choice = choice
    return _clusters[key]
