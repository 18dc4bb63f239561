"""Where the ids of coming steps wait, one queue per core."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..ops.ids import IdBatch
from .backend import QUEUE_CAPACITY, CoreBatch


class IdQueues:
    """The queues of one backend in one graph, whatever it makes of ids before they wait."""

    def __init__(self, cores: int, kinds: Sequence[tf.DType]):
        """Creates them in the default graph.

        Args:
          cores: how many, >= 1.
          kinds: the dtypes of what waits for one step of one core, at least one.
        """
        # Lengths vary, so no shapes.
        self._queues = [
            tf.queue.FIFOQueue(QUEUE_CAPACITY, list(kinds), name=f'ids_of_core_{core}')
            for core in range(cores)]

    def enqueue(self, packed: Sequence[tf.Tensor], *, core: int) -> tf.Operation:
        """Appends the ids of one step of `core`; waits while the queue is full."""
        return self._queues[core].enqueue(list(packed))

    def dequeue(self, *, core: int) -> list[tf.Tensor]:
        """The oldest ids of `core`; waits for them."""
        tensors: list[tf.Tensor] = tf.nest.flatten(self._queues[core].dequeue())
        return tensors

    def close(self) -> tf.Operation:
        """Ends every wait."""
        return tf.group(*[queue.close(cancel_pending_enqueues=True) for queue in self._queues])


def kinds_of(plan: Plan) -> list[tf.DType]:
    """The dtypes of what `pack` gives."""
    return [kind for feature in plan.features for kind in (
        tf.int32, tf.int64, *([tf.float32] if feature.weight_feature else ()))]


def pack(plan: Plan, batch: CoreBatch) -> list[tf.Tensor]:
    """A batch as flat vectors, as queues carry it.

    Returns:
      Per feature samples, ids, and if the plan weights it weights, of 1 where the batch has none.
    """
    tensors = []
    for feature in plan.features:
        samples, ids, _, weights = batch[feature.name]
        tensors += [samples, ids]
        if feature.weight_feature:
            tensors.append(tf.ones_like(ids, tf.float32) if weights is None else weights)
        else:
            assert weights is None, f'the plan has no weights for feature "{feature.name}"'
    return tensors


def unpack(plan: Plan, tensors: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
    """What `pack` was given; what comes out of a queue is checked to be vectors."""
    vectors = iter([tensor if tensor.shape.rank == 1 else tf.ensure_shape(tensor, [None])
                    for tensor in tensors])
    return {feature.name: IdBatch(
        next(vectors), next(vectors),
        plan.num_samples(feature),
        next(vectors) if feature.weight_feature else None) for feature in plan.features}
