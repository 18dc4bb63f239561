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
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..ops.ids import IdBatch
from .backend import Backend, LookupReceipt, PlacedQueue
from .engine import Activations, Engine
from .placement import on
from .transfers import pack_transfers

Update = Callable[[list[tf.Tensor], list[list[tf.Tensor]], list[Activations]], tf.Tensor]
"""Makes an update: (facts of its step, packed ids per core, gradients per core) -> its result."""


def _waiting(engine: Engine, core: int) -> tuple[list[Any], list[Any]]:
    """Returns the dtypes and the devices of what waits of one core.

    That is its packed ids, and a value per feature: its activation, or the gradient of that.
    """
    names = [feature.name for feature in engine.plan.features]
    return ([engine.kinds, dict.fromkeys(names, tf.float32)],
            [engine.places(core), dict.fromkeys(names, engine.placement.core(core))])


def _shaped(plan: Plan, values: Activations) -> Activations:
    """Gives values that have waited the shapes of activations back."""
    return {feature.name: tf.ensure_shape(values[feature.name], plan.output_shape(feature))
            for feature in plan.features}


class PipelinedBackend(Backend):
    """A backend for training that looks up one step ahead.

    Attributes:
      has_next: a placeholder; feed `True` with every step that another step follows.
    """

    def __init__(self, engine: Engine, global_step: tf.Variable):
        """Makes queues for ids and for activations in the default graph; see `Backend`."""
        super().__init__(engine, global_step)
        self.has_next = tf.placeholder_with_default(False, [], 'has_next')
        self._ahead = [PlacedQueue(1, *_waiting(engine, core), f'looked_up_for_core_{core}')
                       for core in range(self.plan.topology.num_cores)]
        self._next = tf.cond(self.has_next, self._look_ahead_packed, lambda: tf.constant(0))

    def begin(self) -> tf.Operation:
        """Looks up the first batch; run once per session before its first step."""
        return self._look_ahead().op

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        step = tf.identity(self._global_step)
        with tf.control_dependencies([step]):
            packed, values = self._ahead[core].dequeue()
            with on(self.engine.placement.core(core)):
                activations = _shaped(self.plan, values)
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
            stored.append(queue.enqueue([receipt.packed, activations]))
        with tf.control_dependencies(stored):
            return tf.constant(0)


class PendingUpdate:
    """A queue for the packed ids and gradients of all cores of at most one step."""

    def __init__(self, engine: Engine, facts: Sequence[tf.DType], update: Update):
        """Makes the queue, in the default graph or eagerly.

        `facts` are the dtypes of the other tensors of the step that `update` needs.
        """
        self._plan, self._update = engine.plan, update
        cores = [_waiting(engine, core) for core in range(self._plan.topology.num_cores)]
        self._queue = PlacedQueue(
            1, [list(facts), [kinds for kinds, _ in cores]],
            [[engine.placement.client] * len(facts), [places for _, places in cores]],
            'gradients_that_wait')

    def put(self, facts: Sequence[tf.Tensor], packed: Sequence[Sequence[tf.Tensor]],
            gradients: Sequence[Activations]) -> tf.Operation:
        """Stores the facts, ids and gradients of a step; blocks while others are stored."""
        return self._queue.enqueue([facts, list(zip(packed, gradients))])

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
        facts, cores = self._queue.dequeue()
        packed, values = zip(*cores)
        with tf.control_dependencies([self._update(
                facts, list(packed), [_shaped(self._plan, own) for own in values])]):
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
