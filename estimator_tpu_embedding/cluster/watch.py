"""Watches over the sessions of a cluster, from one preparation of its workers to their loss."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import Problem
from .faults import HostLostError
from .guarded import Calls
from .heartbeats import Heartbeats, Rules, Watched


class Watch:
    """The sessions over workers that hold the state of one generation of them."""

    def __init__(self, workers: Sequence[Watched], rules: Rules):
        """Begins to watch the workers.

        Args:
          workers: one per host, which have answered just now.
          rules: about them; `on_loss` must call `end`.
        """
        self._heartbeats = Heartbeats(workers, rules)
        self._calls = Calls(self._heartbeats.check, rules.on_loss, rules.step_deadline)
        self._sessions: weakref.WeakSet[tf.Session] = weakref.WeakSet()

    def check(self) -> None:
        """Returns once each worker has just answered, or `on_loss` was told that one did not."""
        self._heartbeats.check()

    def answers(self) -> str:
        """Says how fast each worker has answered since the last call, the slowest first."""
        return self._heartbeats.answers()

    def guard(self, session: tf.Session) -> None:
        """Lets all calls of a session end once a worker is lost, with the error that says why."""
        _tf.pass_calls_through(session, self._calls.guarded)
        self._sessions.add(session)

    def end(self, error: BaseException | None = None) -> None:
        """Ends all calls, and leaves the sessions as they are: closing one may take for ever.

        Args:
          error: that ends the calls; `None` says that the cluster was closed.
        """
        if error is None:
            error = HostLostError(Problem(
                'E723', 'cluster', 'its sessions must end before it does', 'a call of one'))
        self._heartbeats.stop()
        self._calls.end(error)
        for session in self._sessions:
            _tf.leave_session(session)
        self._sessions.clear()
