"""The owner of the rows of one host: an engine that the messages of `ops/exchange.py` reach.

It looks up the ids of a message, and sends sums back. For an update it gets gradients of the same
groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..ops import messages
from ..ops.ids import IdBatch
from .backend import Examined
from .stock import StockEngine


class Owner(Protocol):
    """Holds the rows of one host. All its tensors are on the device of that host.

    Attributes:
      plan: of this host; see `Plan.plan_of_owner`.
      kernels: what computes, `'native'` or `'stock'`.
      kinds: the dtypes of what `pack` returns.
    """

    plan: Plan
    kernels: str
    kinds: list[tf.DType]

    def open(self) -> tf.Operation:
        """See `backend.Executor`."""

    def load(self) -> tf.Operation:
        """See `backend.Executor`."""

    def pack(self, message: tf.Tensor) -> list[tf.Tensor]:
        """Returns the ids of a message in the form of this owner."""

    def unpack(self, packed: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
        """Returns the rows of a message by feature; its groups stand for samples."""

    def lookup(self, packed: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns the sums of the ids that `pack` gave."""

    def examine(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[tf.Tensor],
                step: tf.Tensor) -> Examined:
        """Examines the gradients of all cores before anything is written.

        Args:
          packed: for each core the result of `pack`.
          gradients: of each core.
          step: int64 scalar, for messages.
        """


class StockOwner:
    """An owner that is a stock engine. See `Owner`."""

    kernels = 'stock'

    def __init__(self, engine: StockEngine):
        """Makes an engine an owner; its plan is `Plan.plan_of_owner`."""
        self.plan = engine.plan
        self.kinds = [*engine.kinds, tf.int32]
        self.open, self.load = engine.open, engine.load
        self._engine = engine

    def pack(self, message: tf.Tensor) -> list[tf.Tensor]:
        batch, lengths = messages.read_message(self.plan, message)
        return [*self._engine.pack(batch), lengths]

    def unpack(self, packed: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
        return self._engine.unpack(packed[:-1])

    def lookup(self, packed: Sequence[tf.Tensor]) -> tf.Tensor:
        return messages.write_sums(self.plan, self._engine.lookup(packed[:-1]), packed[-1])

    def examine(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[tf.Tensor],
                step: tf.Tensor) -> Examined:
        return self._engine.examine(
            [of_core[:-1] for of_core in packed],
            [messages.read_gradients(self.plan, gradient, of_core[-1])
             for gradient, of_core in zip(gradients, packed)])
