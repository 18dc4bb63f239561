"""Starts workers on this machine that belong to this process and never outlive it."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import subprocess
import sys

from ..errors import Problem
from ..proto import files
from .host_errors import HostUnavailableError
from .worker_calls import Caller

PACKAGE = str(__package__).partition('.')[0]
_PATH = 'PYTHONPATH'
_MOST_VALUES = 1000


class Children:
    """Own workers, one per host, at free ports of loopback.

    The system kills a worker when the *thread* ends that started it. So one thread starts all of
    them, and lives as long as the process.
    """

    def __init__(self, count: int, *, expose: bool):
        """Starts none yet."""
        self._count, self._expose = count, expose
        self._processes: list[subprocess.Popen[bytes]] = []
        self._caller: Caller | None = None

    def start(self, deadline: float) -> list[str]:
        """Starts all; returns their addresses.

        Raises:
          HostUnavailableError: E711 if one ends or is silent; then all have been ended.
        """
        self.end()
        self._caller = self._caller or Caller()
        for _ in range(self._count):
            self._processes.append(self._caller.result(self._start_one))
        with concurrent.futures.ThreadPoolExecutor(self._count, 'start-worker') as pool:
            told = [pool.submit(_address_of, process) for process in self._processes]
            try:
                late = concurrent.futures.wait(told, deadline).not_done
            finally:
                if not all(one.done() for one in told):
                    self.kill()  # Then the threads end, too.
        found = {host: one.result() for host, one in enumerate(told) if one not in late}
        problems = {host: Problem(
            'E711', f'worker {host} of this job', f'it must start within {deadline:g} s',
            f'it ended with status {process.wait()}' if host in found else 'no address',
            'What it said is above, on standard error.')
            for host, process in enumerate(self._processes) if found.get(host) is None}
        if problems:
            self.end()
            raise HostUnavailableError(*problems.values(), hosts=tuple(problems))
        return [address for address in found.values() if address is not None]

    def pids(self) -> list[int]:
        """Returns the process of each worker."""
        return [process.pid for process in self._processes]

    def status_of(self, host: int) -> int | None:
        """Returns how the worker of a host ended, such as -9 for SIGKILL; `None` if it runs."""
        return self._processes[host].poll()

    def have_ended(self) -> bool:
        """Whether any of them has ended."""
        return any(process.poll() is not None for process in self._processes)

    def end(self) -> None:
        """Ends all at once, and waits until they are gone."""
        self.kill()
        for process in self._processes:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._processes = []

    def kill(self) -> None:
        """Kills all; `end` and `start` wait until they are gone."""
        for process in self._processes:
            process.kill()  # SIGKILL ends a process that is stopped, too.

    def _start_one(self) -> subprocess.Popen[bytes]:
        # Signals of a terminal go to its own group only: the client decides when workers end.
        return subprocess.Popen(
            [sys.executable, '-P', '-m', PACKAGE, 'worker',
             '--listen', '127.0.0.1:0', '--parent', str(os.getpid()),
             *['--expose'] * self._expose],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment(),
            process_group=0)


def _address_of(process: subprocess.Popen[bytes]) -> str | None:
    """Returns where a worker says that it listens; `None` if it ends before."""
    assert process.stdout is not None
    for line in process.stdout:
        try:
            return str(files.json_object(bytearray(line), _MOST_VALUES)['address'])
        except (ValueError, KeyError):  # Some library printed a line of its own.
            continue
    return None


def environment() -> dict[str, str]:
    """Returns the variables of a process that is to import this very package."""
    root = str(pathlib.Path(__file__).resolve().parent.parent.parent)
    path = os.pathsep.join(filter(None, [root, os.environ.get(_PATH, '')]))
    return {**os.environ, _PATH: path}
