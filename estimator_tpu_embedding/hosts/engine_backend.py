"""The backend of an engine: adds the queues of ids, the global step and the learning rates."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from ..ops.ids import IdBatch
from .backend import Activations, CoreBatch, Engine, LookupReceipt
from .id_queues import IdQueues
from .placement import on
from .rates import rates_at, require_rates
from .wrapper import ExecutorWrapper


class EngineBackend(ExecutorWrapper):
    """Executes the steps of a plan by an engine. See `backend.Backend` for the verbs.

    Attributes:
      plan, kernels, kinds, tables: as in the engine.
    """

    def __init__(self, engine: Engine, global_step: tf.Variable | tf.Tensor):
        """Makes the queues in the default graph, which must hold the engine too.

        Args:
          engine: computes.
          global_step: the argument of dynamic learning rates.
        """
        super().__init__(engine)
        self._engine = engine
        self._queues = IdQueues(engine.kinds, [
            engine.places(core) for core in range(self.plan.topology.num_cores)])
        self._global_step = global_step

    def enqueue(self, batch: CoreBatch, *, host: int, core: int) -> tf.Operation:
        del host  # Its thread draws the batch; where the ids go, only the engine knows.
        return self._queues.enqueue(self._engine.pack(batch), core=core)

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        step = tf.identity(self._global_step)
        with tf.control_dependencies([step]):
            packed = self._queues.dequeue(core=core)
        with on(self.placement.core(core)):
            activations = self._engine.lookup(packed)
        return activations, LookupReceipt(step, tuple(packed), activations)

    def batches(self, receipt: LookupReceipt) -> dict[str, IdBatch]:
        return self._engine.unpack(receipt.packed)

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        step, packed = receipts[0].step, [receipt.packed for receipt in receipts]
        if self.placement.is_remote:
            return self._engine.update(packed, self._after_lookups(receipts, gradients),
                                       self._legal_rates(step), step)
        looked_up = [activation for receipt in receipts
                     for activation in receipt.activations.values()]
        # As one operation: otherwise every operation below would wait for each of them by itself.
        with tf.control_dependencies([tf.group(*looked_up)]):
            rates = rates_at(self.plan, step)
            legal = require_rates(self.plan, rates, step)
        with tf.control_dependencies([tf.group(legal, *looked_up)]):
            return self._engine.update(packed, gradients, rates, step)

    def _after_lookups(self, receipts: Sequence[LookupReceipt],
                       gradients: Sequence[Activations]) -> list[Activations]:
        """Returns gradients that exist when their core has looked up.

        An owner writes when it has the gradients of all cores. So no task has to tell others that
        all look-ups are done, which would take two messages more, one after the other.
        """
        found = []
        for core, (receipt, of_core) in enumerate(zip(receipts, gradients)):
            with on(self.placement.core(core)), tf.control_dependencies(
                    [tf.group(*receipt.activations.values())]):
                found.append({name: tf.identity(one) for name, one in of_core.items()})
        return found

    def _legal_rates(self, step: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the learning rates of a step, once it is known that they are legal."""
        rates = rates_at(self.plan, step)
        with tf.control_dependencies([require_rates(self.plan, rates, step)]):
            return {name: tf.identity(rate) for name, rate in rates.items()}

    def retrieve(self) -> tf.Operation:
        return tf.no_op()

    def close(self) -> tf.Operation:
        return self._queues.close()
