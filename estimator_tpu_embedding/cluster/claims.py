"""Asks several workers at once: claims them for a run, or only says who they are."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from ..errors import ConfigError, EteError, Problem, SetupError, shown
from . import addresses, process_facts, worker_calls
from .addresses import is_refused, stranger_at
from .host_errors import HostUnavailableError, no_answer
from .worker_calls import for_all

_REFUSED = 'connection refused: nobody listens there'
_PAUSE = .2
_LOOK = 1.0
"""Seconds in which a machine says that nobody listens at a port of it."""

_RENEWAL = 5.0
"""Seconds after which a claim is renewed while others are awaited, perhaps beyond a lease."""

_SOON = 2.0
"""Seconds after which a wait for a worker that does not listen is told."""

_RESTART = 60.0
"""Seconds that a worker may take to begin anew."""

_GIVING_BACK, _ANSWER = 10.0, 2.0
"""Seconds for all workers, and for each, to take a claim back."""


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimedWorker:
    """A worker that answered; its incarnation differs each time its process begins."""

    address: str
    incarnation: str
    status: dict[str, Any]


class _Holder(NamedTuple):
    """Who has a worker: for how many seconds it was silent, and how many its lease goes on."""

    run: Any
    client: Any
    silent: float
    left: float


def look_at(text: str, deadline: float) -> list[dict[str, Any]]:
    """Returns the status of each worker, with its `address`, and `why_not` if it did not answer.

    Raises:
      ConfigError: with every problem of the addresses; then nobody was contacted.
    """
    given = addresses.listed(text)
    if problems := list(addresses.problems(given)):
        raise ConfigError(*problems)

    def look(_: int, address: str) -> dict[str, Any]:
        if is_refused(addresses.checked(address), deadline):
            return {'address': address, 'why_not': _REFUSED}
        try:
            return {**worker_calls.ask(address, 'status', deadline=deadline),
                    'address': address, 'why_not': ''}
        except worker_calls.NoAnswerError as error:
            return {'address': address, 'why_not': str(error)}

    return for_all(given, look)


def opened(workers: Sequence[str], run: str, deadline: float, stale: Collection[str],
           say: Callable[[str], None]) -> list[ClaimedWorker]:
    """Returns the workers, each claimed for the run, of our version, and without its old state.

    Args:
      workers: addresses, one per host.
      run: that claims them.
      deadline: seconds until all must have answered. A worker that another client holds, and
        does not renew, gets the time until that lease ends.
      stale: incarnations that hold state of a lost session; they must begin anew.
      say: is told of a wait for another client's claim.

    Raises:
      HostUnavailableError: E707 for each worker that does not answer; names the others.
      SetupError: E703 if two addresses lead to one worker, E708 if another run has one, E709 if
        versions differ, E712 if something else answers.
    """
    found = [one if isinstance(one, ClaimedWorker)
             else dataclasses.replace(one, where=f'{one.where} of host {host}')
             for host, one in enumerate(_held(
                 workers, run, lambda address: _open(address, run, deadline, stale, say)))]
    ours = [one for one in found if isinstance(one, ClaimedWorker)]
    problems = [one for one in found if isinstance(one, Problem)]
    silent = tuple(host for host, one in enumerate(found)
                   if isinstance(one, Problem) and one.code == 'E707')
    if problems:
        give_back([one.address for one in ours], run)
        who = ', '.join(one.address for one in ours) or 'none'
        first, *others = problems
        first = dataclasses.replace(first, remedy=f'{first.remedy} Workers that answered: {who}.')
        error: EteError = (HostUnavailableError(first, *others, hosts=silent) if silent
                           else SetupError(first, *others))
        raise error
    _require_one_each(ours, run)
    _require_one_version(ours, run)
    return ours


def _held(workers: Sequence[str], run: str, work: Callable[[str], ClaimedWorker | Problem]
          ) -> list[ClaimedWorker | Problem]:
    """Opens all workers at once. Those that are ours stay claimed while others are awaited.

    That may take longer than a lease, and another run would take them.
    """
    awaited, is_over = set(workers), threading.Event()

    def open_and_hold(_: int, address: str) -> ClaimedWorker | Problem:
        try:
            one = work(address)
        finally:
            awaited.discard(address)
            if not awaited:
                is_over.set()
        while isinstance(one, ClaimedWorker) and not is_over.wait(_RENEWAL):
            with contextlib.suppress(worker_calls.NoAnswerError):  # Heartbeats will say so.
                worker_calls.ask(address, 'renew', run=run, deadline=_ANSWER)
        return one

    return for_all(workers, open_and_hold)


def give_back(workers: Sequence[str], run: str) -> None:
    """Ends the claims of a run on workers that answer at once; the others have their leases.

    No thread is started: a process that is about to end may not be able to.
    """
    end = time.monotonic() + _GIVING_BACK
    for address in workers:
        left = min(end - time.monotonic(), _ANSWER)
        if left > 0:
            with contextlib.suppress(worker_calls.NoAnswerError), \
                    worker_calls.Line(address, deadline=left) as line:
                line.call('release', run=run)


def _open(address: str, run: str, deadline: float, stale: Collection[str],
          say: Callable[[str], None]) -> ClaimedWorker | Problem:
    """Asks one worker until it is ours, or until the deadline."""
    end, told_at = time.monotonic() + deadline, time.monotonic() + _SOON
    why, has_waited, before, place = _REFUSED, False, 0.0, addresses.checked(address)
    while (left := end - time.monotonic()) > 0:
        if is_refused(place, _LOOK):  # If it does not say so, somebody may.
            if time.monotonic() > told_at:
                told_at = math.inf
                say(f'worker {address}: {_REFUSED}; waiting {left:.0f} s more')
            time.sleep(_PAUSE)
            continue
        if word := stranger_at(place, _LOOK):
            return _stranger(address, f'a server that says {word}')
        try:
            found = _claimed(address, worker_calls.ask(
                address, 'claim', run=run, client=process_facts.who(),
                process=process_facts.process(), deadline=left))
        except worker_calls.NoAnswerError as error:
            why = str(error)
            if error.is_final:
                return _of_another_version(address) or _stranger(address, why)
            time.sleep(_PAUSE)
            continue
        if isinstance(found, ClaimedWorker) and found.incarnation not in stale:
            return found
        if isinstance(found, ClaimedWorker):
            why = 'it holds state of a lost session and does not begin anew'
            with contextlib.suppress(worker_calls.NoAnswerError):  # The next claim says why.
                worker_calls.ask(address, 'reset', run=run, deadline=left)
        else:
            is_foreign = found.run != run
            why = (f'claimed by run {shown(found.run)} of {shown(found.client)}, silent for '
                   f'{found.silent} s')
            if found.silent < before and is_foreign:  # Its client has just renewed it.
                return Problem('E708', f'worker {address}', 'it must be free, or of this run', why,
                               'End that job, or take other workers.')
            before = found.silent
            if not has_waited and is_foreign:
                has_waited, end = True, end + found.left + _RESTART
                if found.left > 0:
                    say(f'worker {address} is {why}: waiting up to {found.left:.0f} s, until its '
                        'lease ends')
        time.sleep(_PAUSE)
    return no_answer(f'worker {address}', deadline, why)


def _claimed(address: str, answer: dict[str, Any]) -> ClaimedWorker | _Holder:
    """Returns the worker that answered a claim, if it is ours, or who has it.

    Raises:
      NoAnswerError: if the answer has other fields; it is final.
    """
    try:
        status = {**answer, 'versions': dict(answer['versions']), 'room': int(answer['room'])}
        if answer['is_ours']:
            return ClaimedWorker(address, str(answer['incarnation']), status)
        claim = answer['claim'] or {}
        return _Holder(claim.get('run'), claim.get('client'), *(
            float(claim.get(name) or 0.0) for name in ('silent_seconds', 'seconds_left')))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise worker_calls.NoAnswerError(
            f'an answer to a claim with other fields: {shown(", ".join(answer), 200)}',
            is_final=True) from None


def _of_another_version(address: str) -> ClaimedWorker | None:
    """Returns a worker that does not understand our claim, which nobody holds then.

    Every version has answered `status` in the same way, so the caller can compare versions.
    """
    try:
        answer = worker_calls.ask(address, 'status', deadline=_ANSWER)
        versions = dict(answer['versions'])
    except (worker_calls.NoAnswerError, KeyError, TypeError, ValueError):
        return None
    is_other = process_facts.differences(process_facts.versions(), versions)
    return ClaimedWorker(address, str(answer.get('incarnation')), answer) if is_other else None


def _stranger(address: str, why: str) -> Problem:
    return Problem('E712', f'worker {address}', 'a worker of this package must answer', why,
                   'Start "etpe worker" there, or correct the address.')


def _require_one_each(ours: Sequence[ClaimedWorker], run: str) -> None:
    """Makes sure that no worker was given by two names or interfaces of its machine.

    Raises:
      SetupError: E703 for each address that leads to the worker of an earlier one.
    """
    first: dict[str, str] = {}
    problems = [Problem('E703', f'worker {one.address} of host {host}', 'each worker must be '
                        'another process', 'the one that answers at '
                        f'{first[one.incarnation]}, too', 'Leave one of the addresses out.')
                for host, one in enumerate(ours)
                if first.setdefault(one.incarnation, one.address) != one.address]
    if problems:
        give_back(list(first.values()), run)
        raise SetupError(*problems)


def _require_one_version(ours: Sequence[ClaimedWorker], run: str) -> None:
    """Makes sure that all processes have the same software.

    Raises:
      SetupError: E709, with a table of versions.
    """
    own = process_facts.versions()
    others = {one.address: dict(one.status['versions']) for one in ours}
    wrong = {address: process_facts.differences(own, versions)
             for address, versions in others.items()}
    if not any(wrong.values()):
        return
    give_back([one.address for one in ours], run)
    names = ', '.join(sorted(set().union(*wrong.values())))
    table = [f'\n  {who}: ' + ', '.join(
        f'{name} {shown(versions.get(name, "unknown"))}' for name in process_facts.VERSIONS)
        for who, versions in (('this process', own), *others.items())]
    raise SetupError(Problem(
        'E709', 'cluster', f'all processes must have the same {names}', ''.join(table) + '\n',
        'Install the same package on all machines, and start their workers again.'))
