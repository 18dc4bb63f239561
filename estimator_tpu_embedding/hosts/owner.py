"""The owner of the rows of one host: an engine that the messages of `exchange.py` reach.

It looks up the ids of a message, and sends sums back. For an update it gets gradients of the same
groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from ..native import library
from ..ops.ids import IdBatch
from .native import NativeEngine


class Examined(NamedTuple):
    """The gradients of an update, examined before anything is written.

    Attributes:
      nonfinite: int32 `[tables]`, how many elements of each table's gradients are not finite.
      write: the learning rates by table -> a bool scalar; evaluating it makes the update.
    """

    nonfinite: tf.Tensor
    write: Callable[[Mapping[str, tf.Tensor]], tf.Tensor]


class Owner:
    """Holds the rows of one host. All its tensors are on the device of that host.

    It refuses a message that is none, whatever is in it.

    Attributes:
      plan: of this host; see `Plan.plan_of_owner`.
      kinds: the dtypes of what `pack` returns.
    """

    def __init__(self, engine: NativeEngine):
        """Makes an engine whose plan has one host an owner."""
        self.plan = engine.plan
        self.kinds = [tf.int32, tf.int32]  # Grouped ids; how many samples each feature has.
        self.open, self.load = engine.open, engine.load
        self._engine = engine

    def pack(self, message: tf.Tensor) -> list[tf.Tensor]:
        """Returns the ids of a message in the form of this owner."""
        return list(library.load().ete_group_message(engine=self._engine.handle, message=message))

    def unpack(self, packed: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
        """Returns the rows of a message by feature; its groups stand for samples."""
        return self._engine.unpack(packed[:-1])

    def lookup(self, packed: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns the sums of the ids that `pack` gave."""
        grouped, lengths = packed
        sums = library.load().ete_lookup_parts(
            engine=self._engine.now_attached(), grouped=grouped, lengths=lengths, handles=[])
        sums.set_shape([None])  # So that it can be packed with others.
        return sums

    def examine(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[tf.Tensor],
                step: tf.Tensor) -> Examined:
        """Examines the gradients of all cores before anything is written."""
        names = [table.name for table in self.plan.tables]
        parts = {'grouped': [grouped for grouped, _ in packed],
                 'lengths': [lengths for _, lengths in packed], 'parts': list(gradients)}

        def write(rates: Mapping[str, tf.Tensor]) -> tf.Tensor:
            done = library.load().ete_update_parts(
                engine=self._engine.now_attached(), rates=tf.stack([rates[name] for name in names]),
                counted=[0], handles=[], **parts)  # Who calls this has seen all counts.
            with tf.control_dependencies([done]):
                attached = self._engine.require_attached(step)
            with tf.control_dependencies([attached]):
                return tf.constant(True)

        nonfinite = library.load().ete_count_parts(engine=self._engine.handle, **parts)
        return Examined(tf.ensure_shape(nonfinite, [len(names)]), write)
