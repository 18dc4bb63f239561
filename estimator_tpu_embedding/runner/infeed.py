"""A hook that starts the infeed threads with every session of a run, and ends them.

`session_feed` has the threads of one session.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow.compat.v1 as tf

from ..errors import Problem, UnsupportedError
from .faults import Failures
from .host_feeds import FeedGraph
from .progress import RunReport
from .session_feed import FeedRules, SessionFeed


class Infeed(tf.train.SessionRunHook):
    """Starts the infeed threads with every session of a run, and ends them.

    The steps of the run ask it for batches and wait for them. `feed_progress.FeedProgress` says
    when batches are drawn.
    """

    def __init__(self, graph: FeedGraph, rules: FeedRules, *, failures: Failures,
                 report: RunReport):
        """Prepares threads that are started with each session.

        Args:
          graph: the operations that carry the input.
          rules: how threads draw, and how long they are waited for.
          failures: told why a thread failed.
          report: gets the counts of ids; counts the steps.
        """
        self._rules = rules
        self._make = functools.partial(
            SessionFeed, graph=graph, rules=rules, failures=failures, report=report)
        self._current: SessionFeed | None = None

    def after_create_session(self, session: tf.Session, coord: object) -> None:
        """Starts the threads, which start every input from its beginning.

        Raises:
          Whatever ended a thread.
        """
        self.stop()
        self._rules.shutdown.restart()
        self._current = self._make(session)
        self._current.start()

    def request(self, steps: int, *, following: int) -> None:
        """Asks for the batches of more steps.

        Args:
          steps: how many will be run now.
          following: how many are sure to be run after those.
        """
        if self._current is not None:
            self._current.progress.request(steps, following)

    def await_batch(self, gives_up: Callable[[], bool]) -> None:
        """Waits until every core has its batch of the next step.

        So a step that lacks data does not begin, and changes nothing.

        Args:
          gives_up: asked now and then while a batch is lacking; ends the wait if it returns true.

        Raises:
          tf.errors.OutOfRangeError: if a host has no batch because its data has ended, if no
            host has a sample, or if `gives_up` returned true.
          UnsupportedError: if no session was announced to this hook.
          Whatever ended a thread.
        """
        if self._current is None:
            raise UnsupportedError(Problem(
                'E907', 'TPUConfig.experimental_feed_hook', 'its after_create_session must call '
                'that of TPUInfeedOutfeedSessionHook, which starts the input'))
        self._current.progress.await_batch(gives_up)

    def ended_input(self) -> str | None:
        """Returns the host whose data ended first, if that ended the run, or `None`."""
        return self._current.progress.ended_input if self._current is not None else None

    def interrupt(self) -> None:
        """Ends a wait of the step for its batch, from any thread; the step then fails."""
        if self._current is not None:
            self._current.interrupt()

    def stop(self) -> None:
        """Ends the threads; may be called at any time before the session is closed."""
        if self._current is not None:
            self._current.stop()
