"""Holds the operations and tensors of one step, and the results of running it."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf


class Refused(NamedTuple):
    """The tables whose gradients are not finite, so that a step changes no table.

    Attributes:
      step: the global step that the step begins at.
      tables: their names, string `[n]`; usually none.
    """

    step: tf.Tensor
    tables: tf.Tensor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lookahead:
    """The operations of look-ups that run a step ahead; see `hosts.pipelined`.

    Attributes:
      begin: looks up the first batch; run once per session, before its first step.
      has_next: must be fed `True` with every step that another step follows.
    """

    begin: tf.Operation
    has_next: tf.Tensor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepOps:
    """The operations and tensors of one step.

    Attributes:
      operation: makes the step. In training that is everything that changes, except for the
        effects of a host_call.
      loss: mean of the losses of all cores; 0 in a prediction.
      is_step: must be fed `True` to run anything that takes a batch.
      host_call: in training the effects of a host_call in one step; `None` if there is none.
      refused: the tables that a training step does not update; `None` without tables.
      lookahead: `None` if a step looks up its own batch.
    """

    operation: tf.Operation
    loss: tf.Tensor
    is_step: tf.Tensor
    host_call: tf.Operation | None
    refused: Refused | None
    lookahead: Lookahead | None

    def feeds(self, *, has_next: bool) -> dict[tf.Tensor, bool]:
        """Returns the values that must be fed to run the step.

        Args:
          has_next: whether another step follows.
        """
        fed = {self.is_step: True}
        if self.lookahead is not None:
            fed[self.lookahead.has_next] = has_next
        return fed


class StepResult(NamedTuple):
    """The tensors, and after a step the values, that are fetched of every step.

    Attributes:
      loss: float scalar.
      clock: see `measures.clock_of`.
      refused: a `Refused`, or `()` if the step has no tables to update.
    """

    loss: Any
    clock: Any
    refused: Any
