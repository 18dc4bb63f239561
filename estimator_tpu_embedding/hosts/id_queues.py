"""The queues in which the ids of coming steps wait, one per core."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from .backend import QUEUE_CAPACITY


class IdQueues:
    """One queue per core, of ids that are packed in any form."""

    def __init__(self, cores: int, kinds: Sequence[tf.DType]):
        """Creates the queues in the default graph.

        Args:
          cores: how many, >= 1.
          kinds: the dtypes of the packed ids of one step of one core, at least one.
        """
        # Lengths vary, so no shapes.
        self._queues = [
            tf.queue.FIFOQueue(QUEUE_CAPACITY, list(kinds), name=f'ids_of_core_{core}')
            for core in range(cores)]

    def enqueue(self, packed: Sequence[tf.Tensor], *, core: int) -> tf.Operation:
        """Appends the ids of one step of `core`; waits while the queue is full."""
        return self._queues[core].enqueue(list(packed))

    def dequeue(self, *, core: int) -> list[tf.Tensor]:
        """Takes the oldest ids of `core`; waits for them."""
        tensors: list[tf.Tensor] = tf.nest.flatten(self._queues[core].dequeue())
        return tensors

    def close(self) -> tf.Operation:
        """Ends every wait."""
        return tf.group(*[queue.close(cancel_pending_enqueues=True) for queue in self._queues])
