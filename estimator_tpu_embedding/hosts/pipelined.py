"""The backends of `pipeline_execution_with_tensor_core=True`: each step lacks the update before it.

The hardware looks up batch N + 1 before it updates for batch N, so a step sees rows that lack
exactly the update of the step before it. There are two ways to the same numbers:

- `PipelinedBackend` looks up one step early: the next batch's rows, while the model of a step runs.
  The run of step N also looks up batch N + 1. That needs no result of the model, so TensorFlow
  executes both at once. The update of step N waits for it, and the activations wait in a queue for
  step N + 1. It must know whether there is a next batch.
- `DelayedBackend` updates one step late, for loops that do not say whether another step follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow.compat.v1 as tf

from ..ops.ids import IdBatch
from .backend import Activations, Backend, Engine, LookupReceipt, PlacedQueue
from .placement import on
from .transfers import pack_transfers

Update = Callable[[list[tf.Tensor], list[list[tf.Tensor]], list[Activations]], tf.Tensor]
"""Makes an update: (facts of its step, packed ids per core, gradients per core) -> its result."""


class _Components:
    """Defines the order of the tensors by which the lookup of one core waits in a queue.

    First come the packed ids, then one float32 value per feature of the plan: its activation, or
    the gradient of its activation.
    """

    def __init__(self, engine: Engine):
        self.kinds = [*engine.kinds, *[tf.float32] * len(engine.plan.features)]
        self._engine = engine

    def places(self, core: int) -> list[str]:
        """Returns the device of each component of a core."""
        own = self._engine.placement.core(core)
        return [*self._engine.places(core), *[own] * len(self._engine.plan.features)]

    def flatten(self, packed: Sequence[tf.Tensor], values: Activations) -> list[tf.Tensor]:
        """Returns the components of packed ids and of one value per feature."""
        return [*packed, *[values[feature.name] for feature in self._engine.plan.features]]

    def unflatten(self, components: Sequence[tf.Tensor]) -> tuple[list[tf.Tensor], Activations]:
        """Returns the packed ids and the values, which get the shapes of activations back."""
        plan, count = self._engine.plan, len(self._engine.kinds)
        return list(components[:count]), {
            feature.name: tf.ensure_shape(value, plan.output_shape(feature))
            for feature, value in zip(plan.features, components[count:])}


class PipelinedBackend(Backend):
    """A backend for training that looks up one step ahead.

    Attributes:
      has_next: a placeholder; feed `True` with every step that another step follows.
    """

    def __init__(self, engine: Engine, global_step: tf.Variable):
        """Makes queues for ids and for activations in the default graph; see `Backend`."""
        super().__init__(engine, global_step)
        self.has_next = tf.placeholder_with_default(False, [], 'has_next')
        self._components = _Components(engine)
        self._ahead = [PlacedQueue(1, self._components.kinds, self._components.places(core),
                                   f'looked_up_for_core_{core}')
                       for core in range(self.plan.topology.num_cores)]
        self._next = tf.cond(self.has_next, self._look_ahead_packed, lambda: tf.constant(0))

    def begin(self) -> tf.Operation:
        """Looks up the first batch; run once per session before its first step."""
        return self._look_ahead().op

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        step = tf.identity(self._global_step)
        with tf.control_dependencies([step]):
            components = self._ahead[core].dequeue()
            with on(self.engine.placement.core(core)):
                packed, activations = self._components.unflatten(components)
        return activations, LookupReceipt(step, tuple(packed), activations)

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        with tf.control_dependencies([self._next]):
            return super().update(receipts, gradients)

    def close(self) -> tf.Operation:
        return tf.group(super().close(), *[queue.close() for queue in self._ahead])

    def end(self, *, core: int) -> tf.Operation:
        """Hands over an empty batch, for the last step to look up if the data ended early.

        Nobody uses its activations, because the batch itself is missing.
        """
        return self.enqueue({feature.name: IdBatch(
            tf.zeros([0], tf.int32), tf.zeros([0], tf.int64), 0,
            tf.zeros([0]) if feature.weight_feature else None)
            for feature in self.plan.features}, core=core)

    def _look_ahead_packed(self) -> tf.Tensor:
        """Looks ahead within a function, which nobody else can rewrite once it is made."""
        done = self._look_ahead()
        if self.engine.placement.is_remote:
            pack_transfers(tf.get_default_graph(), [[done]], self.engine.placement.client)
        return done

    def _look_ahead(self) -> tf.Tensor:
        """Looks up the next batch of every core; returns 0 when that is done."""
        stored = []
        for core, queue in enumerate(self._ahead):
            activations, receipt = super().lookup(core=core)
            stored.append(queue.enqueue(self._components.flatten(receipt.packed, activations)))
        with tf.control_dependencies(stored):
            return tf.constant(0)


class PendingUpdate:
    """A queue for the packed ids and gradients of all cores of at most one step."""

    def __init__(self, engine: Engine, facts: Sequence[tf.DType], update: Update):
        """Makes the queue, in the default graph or eagerly.

        `facts` are the dtypes of the other tensors of the step that `update` needs.
        """
        self._components = _Components(engine)
        self._num_facts = len(facts)
        self._update = update
        cores = range(engine.plan.topology.num_cores)
        self._queue = PlacedQueue(
            1, [*facts, *self._components.kinds * len(cores)],
            [engine.placement.client] * len(facts) + [
                place for core in cores for place in self._components.places(core)],
            'gradients_that_wait')

    def put(self, facts: Sequence[tf.Tensor], packed: Sequence[Sequence[tf.Tensor]],
            gradients: Sequence[Activations]) -> tf.Operation:
        """Stores the facts, ids and gradients of a step; blocks while others are stored."""
        return self._queue.enqueue([*facts, *[
            component for one in zip(packed, gradients)
            for component in self._components.flatten(*one)]])

    def make(self) -> tf.Tensor:
        """Makes the stored update, if there is one; returns 0."""
        return tf.cond(self.waits(), self._make, lambda: tf.constant(0))

    def waits(self) -> tf.Tensor:
        """Returns whether an update is stored, a bool scalar."""
        return self._queue.size() > 0

    def close(self) -> tf.Operation:
        """Ends every wait."""
        return self._queue.close()

    def _make(self) -> tf.Tensor:
        tensors = self._queue.dequeue()
        per_core = len(self._components.kinds)
        packed, gradients = zip(*[
            self._components.unflatten(tensors[first:first + per_core])
            for first in range(self._num_facts, len(tensors), per_core)])
        with tf.control_dependencies([self._update(
                tensors[:self._num_facts], list(packed), list(gradients))]):
            return tf.constant(0)


class DelayedBackend(Backend):
    """A backend whose updates wait for the next step, which makes them after its lookup.

    `retrieve` makes the last one.
    """

    def __init__(self, engine: Engine, global_step: tf.Variable | tf.Tensor):
        """Makes queues for ids and for gradients in the default graph; see `Backend`."""
        super().__init__(engine, global_step)
        self._pending = PendingUpdate(engine, [tf.int64], self._update_late)

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
            return super().retrieve()

    def close(self) -> tf.Operation:
        return tf.group(super().close(), self._pending.close())

    def _update_late(self, facts: list[tf.Tensor], packed: list[list[tf.Tensor]],
                     gradients: list[Activations]) -> tf.Tensor:
        step, = facts
        return super().update(
            [LookupReceipt(step, tuple(of_core), {}) for of_core in packed], gradients)
