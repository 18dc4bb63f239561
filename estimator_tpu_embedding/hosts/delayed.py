"""A backend that updates one step late, for loops that do not say whether another step follows.

With `pipeline_execution_with_tensor_core=True` the lookup of a step must lack exactly the update
of the step before it. `PipelinedBackend` looks up early for that, and must know whether there is a
next batch. This backend knows nothing of the next step: it looks up on time, and keeps gradients in
a queue. The next step applies them after its own lookup; `retrieve` applies the last ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from .backend import Activations, Backend, LookupReceipt
from .pending import PendingUpdate
from .wrapper import BackendWrapper


class DelayedBackend(BackendWrapper):
    """Wraps a backend so that its updates wait for the next step. See `backend.Backend`."""

    def __init__(self, backend: Backend):
        """Wraps `backend`, in the default graph."""
        super().__init__(backend)
        self._pending = PendingUpdate(self, [tf.int64], self._update_late)

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        return self._backend.lookup(core=core)

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        with tf.control_dependencies([activation for receipt in receipts
                                      for activation in receipt.activations.values()]):
            done = self._pending.make()
        with tf.control_dependencies([done]):
            waits = self._pending.put([tf.cast(receipts[0].step, tf.int64)],
                                      [receipt.packed for receipt in receipts], gradients)
        with tf.control_dependencies([waits]):
            # Nothing is known yet of the gradients that wait.
            return tf.zeros([len(self.plan.tables)], tf.bool)

    def retrieve(self) -> tf.Operation:
        with tf.control_dependencies([self._pending.make()]):
            return self._backend.retrieve()

    def close(self) -> tf.Operation:
        return tf.group(self._backend.close(), self._pending.close())

    def _update_late(self, facts: list[tf.Tensor], packed: list[list[tf.Tensor]],
                     gradients: list[Activations]) -> tf.Tensor:
        step, = facts
        return self._backend.update(
            [LookupReceipt(step, tuple(of_core), {}) for of_core in packed], gradients)
