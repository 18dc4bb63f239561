"""A queue whose elements are spread over devices, so that each tensor waits where it is used."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from .placement import on


class PlacedQueue:
    """One FIFO queue per device that elements have a tensor on; together they behave as one.

    A tensor crosses to its device when it is enqueued. So it is there when a step takes it.
    """

    def __init__(self, capacity: int, kinds: Sequence[tf.DType], places: Sequence[str], name: str):
        """Makes the queues, in the default graph or eagerly.

        Args:
          capacity: elements that may wait, >= 1.
          kinds: the dtypes of the tensors of an element. Lengths vary, so no shapes.
          places: the device of each tensor; `''` is the current one.
          name: of the queues.
        """
        self._numbers = {place: [number for number, each in enumerate(places) if each == place]
                         for place in dict.fromkeys(places)}
        self._count = len(kinds)
        self._queues = {}
        for place, numbers in self._numbers.items():
            with on(place):
                self._queues[place] = tf.queue.FIFOQueue(
                    capacity, [kinds[number] for number in numbers], name=name)

    def enqueue(self, tensors: Sequence[tf.Tensor]) -> tf.Operation:
        """Appends an element; waits while the queue is full."""
        done = []
        for place, queue in self._queues.items():
            with on(place):
                done.append(queue.enqueue([tensors[number] for number in self._numbers[place]]))
        return done[0] if len(done) == 1 else tf.group(*done)

    def dequeue(self) -> list[tf.Tensor]:
        """Takes the oldest element; waits for it."""
        tensors: list[tf.Tensor | None] = [None] * self._count
        for place, queue in self._queues.items():
            with on(place):
                found = tf.nest.flatten(queue.dequeue())
            for number, tensor in zip(self._numbers[place], found):
                tensors[number] = tensor
        return [tensor for tensor in tensors if tensor is not None]

    def size(self) -> tf.Tensor:
        """Returns how many elements wait, an int32 scalar."""
        return next(iter(self._queues.values())).size()

    def close(self) -> tf.Operation:
        """Ends every wait."""
        return tf.group(*[queue.close(cancel_pending_enqueues=True)
                          for queue in self._queues.values()])
