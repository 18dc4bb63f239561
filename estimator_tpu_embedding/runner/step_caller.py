"""Runs the steps of a loop one by one in the session, with the feeds of hooks and the host_call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from .. import _tf
from .step_ops import StepOps, StepResult


class FeedsKept(tf.train.SessionRunHook):
    """Passes all calls on to a hook of the user and keeps the feeds of that hook.

    Attributes:
      feeds: of the run that is about to begin.
    """

    def __init__(self, hook: tf.train.SessionRunHook):
        """Stands for `hook`."""
        self.feeds: dict[Any, Any] = {}
        self.begin = hook.begin
        self.after_create_session = hook.after_create_session
        self.after_run = hook.after_run
        self.end = hook.end
        self._before_run = hook.before_run

    def before_run(self, run_context: tf.train.SessionRunContext) -> Any:
        """Returns the arguments that the hook asks for; keeps their feeds."""
        asked = self._before_run(run_context)
        self.feeds = dict(asked.feed_dict or {}) if asked is not None else {}
        return asked


class StepCaller:
    """Runs steps of a loop one by one.

    Every step gets the feeds of all hooks. The host_call runs in the first step of a loop and in
    every so many after it.
    """

    def __init__(self, ops: StepOps, clock: tf.Tensor, hooks: Sequence[FeedsKept],
                 host_call_every: int):
        """Prepares to run a step.

        Args:
          ops: the step.
          clock: its times; see `measures.clock_of`.
          hooks: may feed tensors of the step.
          host_call_every: steps from one host_call to the next.
        """
        self._ops, self._hooks, self._host_call_every = ops, hooks, host_call_every
        self._fetched = StepResult(ops.loss, clock, () if ops.refused is None else ops.refused)
        self._has_looked_ahead = False
        self._feeds: dict[Any, Any] = {}
        self._callables: dict[bool, Any] = {}

    def begin_session(self) -> None:
        """Forgets the session before."""
        self._callables = {}
        self._has_looked_ahead = self._ops.lookahead is None

    def begin_loop(self, session: tf.Session) -> None:
        """Takes over the feeds of hooks; in a new session it looks up the first batch."""
        if not self._has_looked_ahead:
            assert self._ops.lookahead is not None
            session.run(self._ops.lookahead.begin)
            self._has_looked_ahead = True
        self._feeds = {key: value for hook in self._hooks for key, value in hook.feeds.items()}

    def run(self, session: tf.Session, number: int) -> StepResult:
        """Runs step `number` of a loop, counted from 0; it is not the last step."""
        calls = self._host_calls(number)
        fed = self._ops.feeds(has_next=True)
        if self._feeds:
            result, *_ = session.run([self._fetched, self._ops.operation, *calls],
                                     {**self._feeds, **fed})
            return result
        key = bool(calls)
        if key not in self._callables:  # TensorFlow optimizes the graph for each by itself.
            self._callables[key] = _tf.fast_callable(
                session, list(fed), [self._fetched.loss, self._fetched.clock,
                                     *self._fetched.refused], [self._ops.operation, *calls])
        loss, clock, *parts = self._callables[key](*map(np.array, fed.values()))
        return StepResult(loss, clock, type(self._fetched.refused)(*parts))

    def last(self, number: int, *, has_next: bool) -> tf.train.SessionRunArgs:
        """Returns the arguments of the run of the session that makes the last step of a loop.

        The results of that run begin with the `StepResult`.

        Args:
          number: of the step, counted from 0.
          has_next: whether a step of another loop is sure to follow.
        """
        return tf.train.SessionRunArgs([self._fetched, *self._host_calls(number)],
                                       feed_dict=self._ops.feeds(has_next=has_next))

    def _host_calls(self, number: int) -> list[tf.Operation]:
        """Returns the host_call if step `number` of a loop makes it."""
        is_due = number % self._host_call_every == 0
        return [self._ops.host_call] if is_due and self._ops.host_call is not None else []
