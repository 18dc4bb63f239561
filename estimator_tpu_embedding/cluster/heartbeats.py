"""Finds out within seconds that a worker has died, stands still, or began anew.

Per worker one thread asks every second, in a session of its own, and another renews the claim. One
thread for all of them looks at how long each has been silent.
"""

from __future__ import annotations

import collections
import dataclasses
import statistics
import threading
import time
from collections.abc import Callable, Sequence

from ..errors import Problem, bytes_text
from . import worker_calls
from .addresses import checked, is_refused
from .host_errors import HostLostError

PERIOD = 1.0  # Seconds between two questions.
SILENCE = 3.0
"""Seconds that an answer may take; a worker that needs more is lost."""

_LOOK = .1  # Seconds between two looks at all workers.
_LATE = .5  # Seconds of silence after which an address is asked whether anybody listens at all.
_MOST_REFUSALS = 3  # Times that nobody may listen.
_MOST_NAMED = 4  # Workers whose answers are told.
_MOST_ANSWERS = 3600  # Answers that are remembered of each.
_RENEWAL = 5.0  # Seconds between two renewals of a claim.
_CALL = SILENCE + 1  # Seconds for a call. Then its thread looks whether it is still needed.


@dataclasses.dataclass(slots=True)
class Watched:
    """A worker that is watched.

    Attributes:
      incarnation: differs when its process begins anew.
      asked: when the question was asked that has no answer yet; `None` if there is none.
      questions: how many were asked.
      answered: the number of the newest question that was answered.
      refusals: how often nobody listened, since the last answer.
      next_look: when to look again whether somebody listens.
      has_begun_anew: whether it lost its tables, or its claim.
      answers: the seconds that each took, of late. They show who keeps the others waiting.
    """

    host: int
    address: str
    incarnation: str
    asked: float | None = None
    questions: int = 0
    answered: int = 0
    refusals: int = 0
    next_look: float = 0.0
    has_begun_anew: bool = False
    answers: collections.deque[float] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=_MOST_ANSWERS))


class Heartbeats:
    """Watches workers until one is lost, or until it is stopped; safe to use from any thread."""

    def __init__(self, workers: Sequence[Watched], *, run: str, is_own: bool,
                 status_of: Callable[[int], int | None], bytes_of: Callable[[int], int],
                 on_loss: Callable[[HostLostError], None]):
        """Begins to watch.

        Args:
          run: whose claims are renewed.
          is_own: whether the workers are children of this process; these have no lease.
          status_of: host -> how its process ended, such as -9, or `None`.
          bytes_of: host -> bytes of its tables.
          on_loss: told of the first loss.
        """
        self._workers, self._run, self._is_own = workers, run, is_own
        self._status_of, self._bytes_of, self._on_loss = status_of, bytes_of, on_loss
        self._change = threading.Condition()
        self._has_ended = threading.Event()
        self._now = 0.0  # Seconds in which this process ran.
        self._is_urgent = False
        worker_calls.begin_thread(self._supervise, 'watch-workers')
        for one in workers:
            worker_calls.begin_thread(self._beat, f'heartbeat-{one.host}', one)
            if not is_own:
                worker_calls.begin_thread(self._renew, f'lease-{one.host}', one)

    def stop(self) -> None:
        """Ends the threads, without a wait for them."""
        self._has_ended.set()
        with self._change:
            self._change.notify_all()

    def answers(self) -> str:
        """Says how fast each worker has answered since the last call, the slowest first."""
        with self._change:
            found = sorted((one for one in self._workers if one.answers),
                           key=lambda one: -max(one.answers))[:_MOST_NAMED]
            text = ', '.join(
                f'{one.host} ({one.address}) in {1000 * statistics.fmean(one.answers):.0f} ms, '
                f'longest {1000 * max(one.answers):.0f} ms' for one in found)
            for one in self._workers:
                one.answers.clear()
        return f'hosts answered: {text}' if text else ''

    def check(self) -> None:
        """Returns once every worker has answered a question asked after this call, or is lost."""
        with self._change:
            asked = [(one, one.questions + 1) for one in self._workers]
            self._is_urgent = True
            self._change.notify_all()
            self._change.wait_for(lambda: self._has_ended.is_set() or all(
                one.answered >= number for one, number in asked), 4 * SILENCE)
            self._is_urgent = False

    def _beat(self, one: Watched) -> None:
        line, is_open, began = worker_calls.Line(one.address, deadline=_CALL), False, 0.0
        while not self._has_ended.is_set():
            with self._change:
                one.questions += 1
                if one.asked is None:
                    began, one.asked = time.monotonic(), self._now
            try:
                if is_open:
                    line.beat()
                else:
                    self._note(one, line.call('renew', run=self._run))
                    is_open = True
            except worker_calls.NoAnswerError as error:
                one.has_begun_anew |= error.is_final
                self._has_ended.wait(_LOOK)
                continue
            with self._change:
                one.answers.append(time.monotonic() - began)
                one.asked, one.answered, one.refusals = None, one.questions, 0
                self._change.notify_all()
                # Answers of other workers wake this thread, too.
                self._change.wait_for(
                    lambda: self._is_urgent or self._has_ended.is_set(), PERIOD)
        line.leave()  # The worker may be silent, and it begins anew before it works again.

    def _renew(self, one: Watched) -> None:
        """Renews a claim; steps may delay that for long, so it says nothing about silence."""
        line = worker_calls.Line(one.address, deadline=_CALL)
        while not self._has_ended.wait(_RENEWAL):
            try:
                self._note(one, line.call('renew', run=self._run))
            except worker_calls.NoAnswerError:
                continue
        line.leave()

    @staticmethod
    def _note(one: Watched, answer: dict[str, object]) -> None:
        if not answer['is_ours'] or answer['incarnation'] != one.incarnation:
            one.has_begun_anew = True

    def _supervise(self) -> None:
        last = time.monotonic()
        while not self._has_ended.wait(_LOOK):
            # If this thread looks late, its process was stopped or the machine was busy. Nobody
            # else can be blamed for that time, so most of it does not count.
            before, last = last, time.monotonic()
            self._now += min(last - before, 2 * _LOOK)
            for one in self._workers:
                why = self._why_lost(one)
                if why is not None:
                    self._on_loss(HostLostError(Problem(
                        'E721', f'host {one.host}, worker {one.address}',
                        f'it must answer within {SILENCE:g} s', why,
                        'All workers begin anew with the last checkpoint.'), hosts=(one.host,)))
                    self.stop()
                    return

    def _why_lost(self, one: Watched) -> str | None:
        """Returns why a worker is lost, or `None` as long as it is not."""
        status = self._status_of(one.host)
        if status is not None:
            return f'exit {status}' + (': ' if status != -9 else ': possibly memory; ') + (
                f'table bytes on this host: {bytes_text(self._bytes_of(one.host))}')
        if one.has_begun_anew:
            return 'its process began anew, so its tables are gone'
        asked = one.asked
        silent = 0.0 if asked is None else self._now - asked
        if silent > _LATE and not self._is_own and self._now > one.next_look:
            one.next_look = self._now + _LATE
            one.refusals += is_refused(checked(one.address), _LOOK)
        if one.refusals >= _MOST_REFUSALS:
            return 'connection refused: its process has ended'
        if silent > SILENCE:
            return f'frozen or cut off: no answer for {silent:.1f} s'
        return None
