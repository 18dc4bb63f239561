"""A backend that looks up one step early: the next batch's rows, while the model of a step runs.

With `pipeline_execution_with_tensor_core=True` the hardware looks up batch N + 1 before it updates
for batch N. So a step sees rows that lack exactly the update of the step before it. Here the run of
step N also looks up batch N + 1. That needs no result of the model, so TensorFlow executes both at
once. The update of step N waits for it, and the activations wait in a queue for step N + 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from ..ops.ids import IdBatch
from .backend import Activations, Backend, LookupReceipt
from .components import CoreComponents
from .packed import pack_crossings
from .placed_queue import PlacedQueue
from .placement import on
from .wrapper import BackendWrapper


class PipelinedBackend(BackendWrapper):
    """Wraps a backend so that it looks up one step ahead. See `backend.Backend` for the verbs.

    Attributes:
      plan, kernels, kinds, tables: as in the wrapped backend.
      has_next: a placeholder; feed `True` with every step that another step follows.
    """

    def __init__(self, backend: Backend, global_step: tf.Variable):
        """Wraps `backend`, in the default graph.

        Args:
          backend: for training; nobody else may call its `lookup`.
          global_step: the argument of dynamic learning rates.
        """
        super().__init__(backend)
        self.has_next = tf.placeholder_with_default(False, [], 'has_next')
        self._global_step = global_step
        self._cores = range(self.plan.topology.num_cores)
        self._components = CoreComponents(self)
        self._ahead = [PlacedQueue(1, self._components.kinds, self._components.places(core),
                                   f'looked_up_for_core_{core}') for core in self._cores]
        self._next = tf.cond(self.has_next, self._look_ahead_packed, lambda: tf.constant(0))

    def begin(self) -> tf.Operation:
        """Looks up the first batch; run once per session before its first step."""
        return self._look_ahead().op

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        step = tf.identity(self._global_step)
        with tf.control_dependencies([step]):
            components = self._ahead[core].dequeue()
            with on(self.placement.core(core)):
                packed, activations = self._components.unflatten(components)
        return activations, LookupReceipt(step, tuple(packed), activations)

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        with tf.control_dependencies([self._next]):
            return self._backend.update(receipts, gradients)

    def close(self) -> tf.Operation:
        return tf.group(self._backend.close(), *[queue.close() for queue in self._ahead])

    def end(self, *, host: int, core: int) -> tf.Operation:
        """Hands over an empty batch, for the last step to look up if the data ended early.

        Nobody uses its activations, because the batch itself is missing.
        """
        empty = {feature.name: IdBatch(
            tf.zeros([0], tf.int32), tf.zeros([0], tf.int64), 0,
            tf.zeros([0]) if feature.weight_feature else None) for feature in self.plan.features}
        return self._backend.enqueue(empty, host=host, core=core)

    def _look_ahead_packed(self) -> tf.Tensor:
        """Looks ahead within a function, which nobody else can rewrite once it is made."""
        done = self._look_ahead()
        if self.placement.is_remote:
            pack_crossings(tf.get_default_graph(), [[done]], self.placement.client)
        return done

    def _look_ahead(self) -> tf.Tensor:
        """Looks up the next batch of every core; returns 0 when that is done."""
        stored = []
        for core in self._cores:
            activations, receipt = self._backend.lookup(core=core)
            stored.append(self._ahead[core].enqueue(
                self._components.flatten(receipt.packed, activations)))
        with tf.control_dependencies(stored):
            return tf.constant(0)
