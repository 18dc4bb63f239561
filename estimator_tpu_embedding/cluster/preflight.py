"""Looks, before a session is made, whether the workers have what it needs: memory and the disk."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import ConfigError, Problem, SetupError, bytes_text, shown
from . import process_facts, worker_calls
from .addresses import checked
from .host_errors import HostLostError, no_answer
from .worker_calls import for_all

SECONDS = 10.0
"""Seconds for a call of a worker that answered just before."""


def require_memory(addresses: Sequence[str], available: Sequence[int],
                   needed: Sequence[int]) -> None:
    """Makes sure that the tables of each worker fit into what its machine has.

    Workers with one address but for the port share a machine, so they share its memory.

    Raises:
      ConfigError: E744 for each machine that has too little.
    """
    machines: dict[str, list[int]] = {}
    for host, address in enumerate(addresses):
        machines.setdefault(checked(address).host, []).append(host)
    problems = []
    for hosts in machines.values():
        total, most = sum(needed[host] for host in hosts), min(available[host] for host in hosts)
        if total > most:
            problems.append(too_large(
                ', '.join(f'worker {addresses[host]} of host {host}' for host in hosts),
                ' + '.join(_shown(needed[host]) for host in hosts)
                + (f' = {_shown(total)} on one machine' if len(hosts) > 1 else ''),
                f', of which {_shown(most)} are available'))
    if problems:
        raise ConfigError(*problems)


def too_large(where: str, got: str, available: str = '') -> Problem:
    """Returns E744: the tables of a worker do not fit its memory."""
    return Problem('E744', where, f'rows and slots must fit its memory{available}', got,
                   'Take more workers on other machines, fewer or narrower rows, an optimizer with '
                   'fewer slots, or more memory.')


def _shown(count: int) -> str:
    return f'{count:,} bytes ({bytes_text(count)})'


def require_shared(addresses: Sequence[str], directory: str) -> None:
    """Makes sure that every worker writes into the same directory as this process.

    This process writes a note, and reads the note of each worker. No note stays.

    Raises:
      SetupError: E741 for each worker that sees another directory, E742 for each that cannot
        write to it.
      HostLostError: E707 if a worker does not answer.
    """
    def look(host: int, address: str) -> Iterator[Problem]:
        name, secret = secrets.token_hex(16), secrets.token_hex(16)

        def told(action: str) -> dict[str, Any]:
            return worker_calls.ask(
                address, 'note', deadline=SECONDS, directory=directory, name=name, action=action,
                text=secret)

        written = told('write')
        try:
            if written.get('is_missing'):
                yield _elsewhere(host, address, f'the directory {directory}', written['problem'])
            elif 'problem' in written:
                yield _unwritable(f'worker {address} of host {host}', directory,
                                  written['problem'])
            elif process_facts.note(directory, name, 'read').get('text') != secret:
                yield _elsewhere(host, address, f'the directory {directory}',
                                 'a file that it wrote there is not here')
        finally:
            process_facts.note(directory, name, 'remove')  # Some may write, but not remove.
            told('remove')

    own = secrets.token_hex(16)
    if 'problem' in (written := process_facts.note(directory, own, 'write')):
        raise SetupError(_unwritable('this process', directory, written['problem']))
    process_facts.note(directory, own, 'remove')
    _require_none(addresses, look)


def require_same(addresses: Sequence[str], checkpoint: str) -> None:
    """Makes sure that every worker finds the checkpoint that this process found.

    Raises:
      SetupError: E741 for each worker that finds another one, or none.
      HostLostError: E707 if a worker does not answer.
    """
    own = process_facts.index(checkpoint)
    if 'problem' in own:  # A job has deleted it meanwhile; whoever restores it says so.
        return

    def look(host: int, address: str) -> Iterator[Problem]:
        found = worker_calls.ask(address, 'index', deadline=SECONDS, checkpoint=checkpoint)
        if found.get('sha256') != own['sha256'] and 'sha256' in process_facts.index(checkpoint):
            yield _elsewhere(host, address, f'the checkpoint {checkpoint}', found.get(
                'problem', 'another checkpoint of that name'))

    _require_none(addresses, look)


def _require_none(addresses: Sequence[str],
                  look: Callable[[int, str], Iterator[Problem]]) -> None:
    """Asks all workers at once, and raises all problems that were found."""
    def looked(host: int, address: str) -> list[Problem] | Problem:
        try:
            return list(look(host, address))
        except worker_calls.NoAnswerError as error:
            return no_answer(f'worker {address} of host {host}', SECONDS, str(error))

    found = for_all(addresses, looked)
    silent = {host: one for host, one in enumerate(found) if isinstance(one, Problem)}
    problems = [problem for one in found if isinstance(one, list) for problem in one]
    if problems:
        raise SetupError(*problems)
    if silent:
        raise HostLostError(*silent.values(), hosts=tuple(silent))


def _unwritable(who: str, directory: str, why: str) -> Problem:
    return Problem('E742', who, f'it must be able to write files to {directory}', shown(why, 200),
                   'Let its user write there and make room, or take another directory.')


def _elsewhere(host: int, address: str, what: str, why: str) -> Problem:
    return Problem(
        'E741', f'worker {address} of host {host}', f'it must see {what}, as this process does',
        shown(why, 200), 'Take a directory on a disk that all machines share, under one path.')
