"""Keeps the gradients of one step in a queue until the next step makes their update.

It serves everything that updates one step late: `delayed.py` in graphs, `midlevel/` in functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow.compat.v1 as tf

from .backend import Activations, Executor
from .components import CoreComponents
from .placed_queue import PlacedQueue

Update = Callable[[list[tf.Tensor], list[list[tf.Tensor]], list[Activations]], tf.Tensor]
"""Makes an update: (facts of its step, packed ids per core, gradients per core) -> its result."""


class PendingUpdate:
    """A queue for the packed ids and gradients of all cores of at most one step."""

    def __init__(self, executor: Executor, facts: Sequence[tf.DType], update: Update):
        """Makes the queue, in the default graph or eagerly.

        Args:
          executor: the engine or backend that packed the ids.
          facts: the dtypes of the other tensors of the step that `update` needs.
          update: makes an update.
        """
        self._components = CoreComponents(executor)
        self._num_facts = len(facts)
        self._update = update
        cores = range(executor.plan.topology.num_cores)
        self._queue = PlacedQueue(
            1, [*facts, *self._components.kinds * len(cores)],
            [executor.placement.client] * len(facts) + [
                place for core in cores for place in self._components.places(core)],
            'gradients_that_wait')

    def put(self, facts: Sequence[tf.Tensor], packed: Sequence[Sequence[tf.Tensor]],
            gradients: Sequence[Activations]) -> tf.Operation:
        """Stores an update; blocks while another one is stored.

        Args:
          facts: the other tensors of the step, in the order of their dtypes.
          packed: for each core the ids that were looked up.
          gradients: for each core the gradients of its activations.
        """
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
