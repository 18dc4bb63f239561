"""The backend of a job: an engine, the queues in which ids wait, and the global step.

The steps of a runner talk to it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .engine import Activations, CoreBatch, Engine, rates_at, require_rates
from .placement import on

QUEUE_CAPACITY = 2
"""Steps whose ids and features may wait per core: one is handed over while one is ready."""


class LookupReceipt(NamedTuple):
    """Links a lookup to the update that belongs to it.

    The hardware pairs the two by the order of a queue, and a missed pair hangs. As a value the
    pair is visible: the graph of a step says which gradients belong to which ids.

    Attributes:
      step: int64 scalar, the global step at the time of the lookup.
      packed: the ids that were looked up, as packed by the engine: tensors of the dtypes `kinds`
        and of any lengths. Only that engine looks inside.
      activations: the result of the lookup. An update waits for all of it.
    """

    step: tf.Tensor
    packed: tuple[tf.Tensor, ...]
    activations: Activations


class PlacedQueue:
    """One FIFO queue per device that elements have a tensor on; together they behave as one.

    A tensor crosses to its device when it is enqueued. So it is there when a step takes it.
    """

    def __init__(self, capacity: int, kinds: Any, places: Any, name: str,
                 shapes: Sequence[tf.TensorShape] | None = None):
        """Makes the queues, in the default graph or eagerly.

        Args:
          kinds: the dtypes of the tensors of an element, in the structure that elements have.
          places: the device of each tensor, in such a structure; `''` is the current one.
          shapes: of the tensors, flat; `None` if they vary, as those of ids do.
        """
        self._structure = kinds
        flat, places = tf.nest.flatten(kinds), tf.nest.flatten(places)
        self._numbers = {place: [number for number, each in enumerate(places) if each == place]
                         for place in dict.fromkeys(places)}
        self._queues = {}
        for place, numbers in self._numbers.items():
            with on(place):
                self._queues[place] = tf.queue.FIFOQueue(
                    capacity, [flat[number] for number in numbers],
                    None if shapes is None else [shapes[number] for number in numbers], name=name)

    def enqueue(self, element: Any) -> tf.Operation:
        """Appends an element; waits while the queue is full."""
        tf.nest.assert_same_structure(self._structure, element, check_types=False)
        tensors, done = tf.nest.flatten(element), []
        for place, queue in self._queues.items():
            with on(place):
                done.append(queue.enqueue([tensors[number] for number in self._numbers[place]]))
        return done[0] if len(done) == 1 else tf.group(*done)

    def dequeue(self) -> Any:
        """Takes the oldest element; waits for it."""
        tensors: dict[int, tf.Tensor] = {}
        for place, queue in self._queues.items():
            with on(place):
                found = tf.nest.flatten(queue.dequeue())
            tensors.update(zip(self._numbers[place], found))
        return tf.nest.pack_sequence_as(
            self._structure, [tensors[number] for number in range(len(tensors))])

    def size(self) -> tf.Tensor:
        """Returns how many elements wait, an int32 scalar."""
        return next(iter(self._queues.values())).size()

    def close(self) -> tf.Operation:
        """Ends every wait."""
        return tf.group(*[queue.close(cancel_pending_enqueues=True)
                          for queue in self._queues.values()])


class Backend:
    """Executes the steps of the plan of an engine: hands ids over, looks up, updates."""

    def __init__(self, engine: Engine, global_step: tf.Variable | tf.Tensor):
        """Makes a queue per core in the default graph, which must hold the engine too.

        `global_step` is the argument of dynamic learning rates.
        """
        self.engine, self.plan, self.tables = engine, engine.plan, engine.tables
        self._global_step = global_step
        self._queues = [PlacedQueue(QUEUE_CAPACITY, engine.kinds, engine.places(core),
                                    f'ids_of_core_{core}')
                        for core in range(self.plan.topology.num_cores)]

    def enqueue(self, batch: CoreBatch, *, core: int) -> tf.Operation:
        """Hands the ids of one step of `core` to the engine; blocks when full."""
        return self._queues[core].enqueue(self.engine.pack(batch))

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        """Takes the oldest pending ids of `core`, and returns their activations."""
        step = tf.identity(self._global_step)
        with tf.control_dependencies([step]):
            packed = self._queues[core].dequeue()
        with on(self.engine.placement.core(core)):
            activations = self.engine.lookup(packed)
        return activations, LookupReceipt(step, tuple(packed), activations)

    def rows_touched(self, receipts: Sequence[LookupReceipt]) -> dict[str, tf.Tensor]:
        """Returns for each table how many rows a step looked up; see `Engine.rows_touched`."""
        return self.engine.rows_touched([receipt.packed for receipt in receipts])

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        """Changes the rows that were looked up.

        The gradients of all tables are examined before any table is written.

        Args:
          receipts: one per core, of the same step; each may be used once.
          gradients: for each receipt the gradients of its activations. The gradients of a row are
            summed over all cores before its one update, so they come together. Without
            accumulation they are summed for each core, and the row is updated core by core.

        Returns:
          bool `[tables]`: whether the gradients of each table of the plan were refused because
          they are not finite. If one is true, no table was changed. An engine that fails instead
          gives false for all. Evaluating this tensor makes the update.
        """
        step = receipts[0].step
        return self.engine.update([receipt.packed for receipt in receipts],
                                  self._after_lookups(receipts, gradients),
                                  self._legal_rates(step), step)

    def retrieve(self) -> tf.Operation:
        """Writes the engine's values to the host variables; run before they are read."""
        return tf.no_op()

    def close(self) -> tf.Operation:
        """Ends every wait for ids, in `enqueue` and in `lookup`."""
        return tf.group(*[queue.close() for queue in self._queues])

    def _after_lookups(self, receipts: Sequence[LookupReceipt],
                       gradients: Sequence[Activations]) -> list[Activations]:
        """Returns gradients that exist when their core has looked up.

        An engine writes when it has the gradients of all cores. So no task of a cluster has to tell
        others that all look-ups are done, which would take two messages more, one after the other.
        """
        found = []
        for core, (receipt, of_core) in enumerate(zip(receipts, gradients)):
            with on(self.engine.placement.core(core)), tf.control_dependencies(
                    [tf.group(*receipt.activations.values())]):
                values = tf.identity_n(list(of_core.values())) if of_core else []
                found.append(dict(zip(of_core, values)))
        return found

    def _legal_rates(self, step: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the learning rates of a step, once it is known that they are legal."""
        rates = rates_at(self.plan, step)
        with tf.control_dependencies([require_rates(self.plan, rates, step)]):
            return {name: tf.identity(rate) for name, rate in rates.items()}
