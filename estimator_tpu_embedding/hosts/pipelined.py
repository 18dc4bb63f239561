"""Look-ups one step ahead: while the model of a step runs, the next batch is looked up.

With `pipeline_execution_with_tensor_core=True` the hardware looks up batch N + 1 before it
updates for batch N, so what a step sees lacks exactly the update of the step before it. Here
that look-up is part of the run of step N: it needs nothing of the model, so TensorFlow executes
both at once, and the update of step N waits for it. What was looked up waits in a queue.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from ..ops.ids import IdBatch
from .backend import Activations, Backend, LookupReceipt
from .wrapper import BackendWrapper


class PipelinedBackend(BackendWrapper):
    """Another backend, one step ahead. See `backend.Backend` for the verbs.

    Attributes:
      plan, kernels, kinds, tables: those of the other backend.
      has_next: must be fed `True` with every step that another step follows.
    """

    def __init__(self, backend: Backend, global_step: tf.Variable):
        """Makes `backend` run ahead.

        Args:
          backend: for training; its `lookup` is not to be called by anyone else.
          global_step: what dynamic learning rates are functions of.
        """
        super().__init__(backend)
        self.has_next = tf.placeholder_with_default(False, [], 'has_next')
        self._global_step = global_step
        self._cores = range(self.plan.topology.num_cores)
        # The ids, and the activations in the order of features.
        kinds = self.kinds + [tf.float32] * len(self.plan.features)
        self._ahead = [tf.queue.FIFOQueue(1, kinds, name=f'looked_up_for_core_{core}')
                       for core in self._cores]
        self._next = tf.cond(self.has_next, self._look_ahead, lambda: tf.constant(0))

    def begin(self) -> tf.Operation:
        """Looks up the first batch; run once per session before its first step."""
        return self._look_ahead().op

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        step = tf.identity(self._global_step)
        with tf.control_dependencies([step]):
            tensors = self._ahead[core].dequeue()
        at = len(self.kinds)
        activations = {feature.name: tf.ensure_shape(values, self.plan.output_shape(feature))
                       for feature, values in zip(self.plan.features, tensors[at:])}
        return activations, LookupReceipt(step, tuple(tensors[:at]), activations)

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        with tf.control_dependencies([self._next]):
            return self._backend.update(receipts, gradients)

    def close(self) -> tf.Operation:
        return tf.group(self._backend.close(), *[
            queue.close(cancel_pending_enqueues=True) for queue in self._ahead])

    def end(self, *, host: int, core: int) -> tf.Operation:
        """Lets the last step look ahead where the data ended before the job did.

        What it finds is never used: the batch itself is missing.
        """
        empty = {feature.name: IdBatch(
            tf.zeros([0], tf.int32), tf.zeros([0], tf.int64), 0,
            tf.zeros([0]) if feature.weight_feature else None) for feature in self.plan.features}
        return self._backend.enqueue(empty, host=host, core=core)

    def _look_ahead(self) -> tf.Tensor:
        """Looks up the next batch of every core; gives 0 when that is done."""
        stored = []
        for core in self._cores:
            activations, receipt = self._backend.lookup(core=core)
            stored.append(self._ahead[core].enqueue(
                [*receipt.packed, *[activations[feature.name]
                                    for feature in self.plan.features]]))
        with tf.control_dependencies(stored):
            return tf.constant(0)
