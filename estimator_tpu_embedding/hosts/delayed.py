"""Updates one step behind: for loops that do not say whether another step follows.

With `pipeline_execution_with_tensor_core=True` what a step looks up lacks exactly the update of
the step before it. `PipelinedBackend` looks up ahead, which needs to know that there is a next
batch. Here instead the gradients of a step wait, and are applied by the next step after its own
look-up, beside its model; `retrieve` applies those of the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from .backend import Activations, Backend, LookupReceipt
from .wrapper import BackendWrapper


class DelayedBackend(BackendWrapper):
    """Another backend, whose updates wait for the next step. See `backend.Backend`."""

    def __init__(self, backend: Backend):
        """Makes the updates of `backend` wait."""
        super().__init__(backend)
        of_core = self.kinds + [tf.float32] * len(self.plan.features)
        self._waiting = tf.queue.FIFOQueue(
            1, [tf.int64] + of_core * self.plan.topology.num_cores, name='gradients_that_wait')

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        return self._backend.lookup(core=core)

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        with tf.control_dependencies([activation for receipt in receipts
                                      for activation in receipt.activations.values()]):
            done = self._apply_what_waits()
        with tf.control_dependencies([done]):
            waits = self._waiting.enqueue([tf.cast(receipts[0].step, tf.int64)] + [
                tensor for receipt, gradient in zip(receipts, gradients)
                for tensor in [*receipt.packed,
                               *[gradient[feature.name] for feature in self.plan.features]]])
        with tf.control_dependencies([waits]):
            return tf.zeros([len(self.plan.tables)], tf.bool)  # Of these nothing is known yet.

    def retrieve(self) -> tf.Operation:
        with tf.control_dependencies([self._apply_what_waits()]):
            return self._backend.retrieve()

    def close(self) -> tf.Operation:
        return tf.group(self._backend.close(), self._waiting.close(cancel_pending_enqueues=True))

    def _apply_what_waits(self) -> tf.Tensor:
        """Applies the gradients of the step before, if there was one; gives 0."""
        return tf.cond(self._waiting.size() > 0, self._apply, lambda: tf.constant(0))

    def _apply(self) -> tf.Tensor:
        step, *tensors = self._waiting.dequeue()
        features = self.plan.features
        at = len(self.kinds)
        per_core = at + len(features)
        receipts, gradients = [], []
        for first in range(0, len(tensors), per_core):
            of_core = tensors[first:first + per_core]
            receipts.append(LookupReceipt(step, tuple(of_core[:at]), {}))
            gradients.append({
                feature.name: tf.ensure_shape(values, self.plan.output_shape(feature))
                for feature, values in zip(features, of_core[at:])})
        with tf.control_dependencies([self._backend.update(receipts, gradients)]):
            return tf.constant(0)
