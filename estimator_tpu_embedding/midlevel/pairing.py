"""Where batches wait between `enqueue`, `dequeue` and `apply_gradients`.

On the hardware the three are paired by the order of queues alone, and where a program pairs them
otherwise it hangs. Here nothing waits: what finds its queue empty or full fails, and says why.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from ..errors import Problem
from ..ops import checks

INFERENCE, TRAINING, EITHER = 0, 1, 2
"""What becomes of a batch: it gets no gradients, it must, or it may."""

CAPACITY = 64
"""Batches per replica that may wait to be dequeued."""


class Pairing:
    """The batches of one object, by replica, in the order in which they came."""

    def __init__(self, replicas: int, kinds: Sequence[tf.DType]):
        """Makes the queues, which live as long as this object.

        Args:
          replicas: how many, >= 1.
          kinds: dtypes of what is kept of a batch, at least one.
        """
        kinds = [tf.int32, *kinds]
        self._enqueued = [tf.queue.FIFOQueue(CAPACITY, kinds) for _ in range(replicas)]
        self._looked_up = [tf.queue.FIFOQueue(1, kinds) for _ in range(replicas)]

    def put(self, packed: Sequence[Sequence[tf.Tensor]], replicas: Sequence[int],
            use: tf.Tensor) -> None:
        """Appends one batch for each of `replicas`, or for none if one of them has no room.

        Args:
          packed: for each of them a batch.
          replicas: their numbers.
          use: int32 scalar, one of the constants above.
        """
        full = [checks.require(self._enqueued[replica].size() < CAPACITY, Problem(
            'E557', f'enqueue for replica {replica}', f'at most {CAPACITY} batches may wait to be '
            'dequeued', remedy='Call dequeue once for each enqueue.'), got=tf.constant('one more'))
            for replica in replicas]
        ready = [tensor for batch in packed for tensor in batch]
        with tf.control_dependencies([*full, *ready]):
            for replica, batch in zip(replicas, packed):
                self._enqueued[replica].enqueue([use, *batch])

    def take(self, replica: int) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """The oldest batch of a replica, and its use; it is kept for gradients if it may get any.

        When it is evaluated it fails with E554 if there is none, and with E555 if the last one
        must still get its gradients, which is given up then.
        """
        waiting, kept = self._enqueued[replica], self._looked_up[replica]
        with tf.control_dependencies([checks.require(waiting.size() > 0, Problem(
                'E554', f'dequeue in replica {replica}', 'there must be a batch that was enqueued '
                'and not yet dequeued', remedy='Call enqueue before dequeue, once for each '
                'dequeue, in the same thread.'), got=tf.constant('none'))]):
            use, *packed = waiting.dequeue()

        def keep() -> tf.Tensor:
            before = tf.cond(kept.size() > 0, lambda: kept.dequeue()[0],
                             lambda: tf.constant(INFERENCE))
            with tf.control_dependencies([checks.require(before != TRAINING, Problem(
                    'E555', f'dequeue in replica {replica}', 'a batch that is enqueued with '
                    'training=True needs one apply_gradients before the next one is dequeued',
                    remedy='Enqueue with training=False where apply_gradients is not called. If '
                    'it is, the step before failed in between: its batch and this one are given '
                    'up, and the next step goes on.'), got=tf.constant('none'))]):
                kept.enqueue([use, *packed])
            return tf.constant(True)

        with tf.control_dependencies([tf.cond(use == INFERENCE, lambda: tf.constant(True), keep)]):
            return tf.identity(use), [tf.identity(tensor) for tensor in packed]

    def take_looked_up(self) -> list[list[tf.Tensor]]:
        """For each replica the batch whose gradients have come; fails with E556 without one."""
        sizes = tf.stack([kept.size() for kept in self._looked_up])
        with tf.control_dependencies([checks.require(sizes > 0, Problem(
                'E556', 'apply_gradients', 'every replica must have dequeued a batch that was '
                'enqueued with training=True, since the last apply_gradients',
                remedy='Enqueue with training=True where apply_gradients is called; leave '
                'apply_gradients out in evaluation.'), got=tf.strings.join(
                    ['none in replica ', tf.strings.as_string(tf.argmin(sizes))]))]):
            return [kept.dequeue()[1:] for kept in self._looked_up]
