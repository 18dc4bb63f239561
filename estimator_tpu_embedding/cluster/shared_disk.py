"""Makes sure that all processes of a job see one disk, before a table is written or read there."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import Problem, SetupError, shown
from . import control, notes
from .faults import HostLostError
from .looking import for_all

_SECONDS = 10.0
"""Seconds for a call of a worker that answered just before."""


def require_shared(addresses: Sequence[str], directory: str) -> None:
    """Makes sure that every worker reads and writes the same directory as this process.

    Each reads a note of this process, and writes one that this process reads. No note stays.

    Args:
      addresses: of the workers, by host.
      directory: its absolute path; this process can write to it.

    Raises:
      SetupError: E741 for each worker that sees another directory, E742 for each that cannot
        write to it.
      HostLostError: E707 if a worker does not answer.
    """
    name, secret = secrets.token_hex(16), secrets.token_hex(16)

    def look(host: int, address: str) -> Iterator[Problem]:
        read = control.ask(address, 'note', deadline=_SECONDS, directory=directory, name=name,
                           action='read')
        if read.get('text') != secret:
            yield _elsewhere(host, address, f'the directory {directory}', read.get(
                'problem', 'another file of that name'))
        else:
            yield from _written_by(host, address, directory)

    own = notes.note(directory, name, 'write', secret)
    try:
        if 'problem' in own:
            raise SetupError(_unwritable('this process', directory, own['problem']))
        _require_none(addresses, look)
    finally:
        notes.note(directory, name, 'remove')


def require_same(addresses: Sequence[str], checkpoint: str) -> None:
    """Makes sure that every worker finds the checkpoint that this process found.

    Args:
      addresses: of the workers, by host.
      checkpoint: its prefix, an absolute path.

    Raises:
      SetupError: E741 for each worker that finds another one, or none.
      HostLostError: E707 if a worker does not answer.
    """
    own = notes.index(checkpoint)
    if 'problem' in own:  # A job has deleted it meanwhile; whoever restores it says so.
        return

    def look(host: int, address: str) -> Iterator[Problem]:
        found = control.ask(address, 'index', deadline=_SECONDS, checkpoint=checkpoint)
        if found.get('sha256') != own['sha256'] and 'sha256' in notes.index(checkpoint):
            yield _elsewhere(host, address, f'the checkpoint {checkpoint}', found.get(
                'problem', 'another checkpoint of that name'))

    _require_none(addresses, look)


def _written_by(host: int, address: str, directory: str) -> Iterator[Problem]:
    """Lets a worker write a note; yields what is wrong with it."""
    name, secret = secrets.token_hex(16), secrets.token_hex(16)

    def told(action: str) -> dict[str, Any]:
        return control.ask(address, 'note', deadline=_SECONDS, directory=directory, name=name,
                           action=action, text=secret)

    try:
        written = told('write')
        if 'problem' in written:
            yield _unwritable(f'worker {address} of host {host}', directory, written['problem'])
        elif notes.note(directory, name, 'read').get('text') != secret:
            yield _elsewhere(host, address, f'the directory {directory}',
                             'a file that it wrote there is not here')
    finally:
        told('remove')
        notes.note(directory, name, 'remove')  # Where the worker may write, but not remove.


def _require_none(addresses: Sequence[str],
                  look: Callable[[int, str], Iterator[Problem]]) -> None:
    """Asks all workers at once, and raises all problems that were found."""
    hosts = {address: host for host, address in enumerate(addresses)}

    def looked(address: str) -> list[Problem] | Problem:
        try:
            return list(look(hosts[address], address))
        except control.NoAnswerError as error:
            return Problem('E707', f'worker {address} of host {hosts[address]}',
                           f'it must answer within {_SECONDS:g} s', str(error),
                           'Look whether "etpe worker" runs there, with "etpe worker ls".')

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
