"""The queues in which the ids of coming steps wait, one per core."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from .backend import QUEUE_CAPACITY
from .placed_queue import PlacedQueue


class IdQueues:
    """One queue per core, of ids that are packed in any form."""

    def __init__(self, kinds: Sequence[tf.DType], places: Sequence[Sequence[str]]):
        """Creates the queues in the default graph.

        Args:
          kinds: the dtypes of the packed ids of one step of one core, at least one.
          places: for each core the device of each of these tensors; `''` is the current one.
        """
        self._queues = [PlacedQueue(QUEUE_CAPACITY, kinds, of_core, f'ids_of_core_{core}')
                        for core, of_core in enumerate(places)]

    def enqueue(self, packed: Sequence[tf.Tensor], *, core: int) -> tf.Operation:
        """Appends the ids of one step of `core`; waits while the queue is full."""
        return self._queues[core].enqueue(packed)

    def dequeue(self, *, core: int) -> list[tf.Tensor]:
        """Takes the oldest ids of `core`; waits for them."""
        return self._queues[core].dequeue()

    def close(self) -> tf.Operation:
        """Ends every wait."""
        return tf.group(*[queue.close() for queue in self._queues])
