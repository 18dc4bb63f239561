"""Flattens packed ids and one value per feature into the components of a queue, and back."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from .backend import Activations, Executor


class CoreComponents:
    """Defines the order of the tensors by which the lookup of one core waits in a queue.

    First come the packed ids, then one float32 value per feature of the plan: its activation, or
    the gradient of its activation.

    Attributes:
      kinds: the dtypes of all components.
    """

    def __init__(self, executor: Executor):
        """Describes the lookups of an engine or a backend."""
        self._plan = executor.plan
        self._packed = len(executor.kinds)
        self.kinds = [*executor.kinds, *[tf.float32] * len(self._plan.features)]
        self._executor = executor

    def places(self, core: int) -> list[str]:
        """Returns the device of each component of a core."""
        own = self._executor.placement.core(core)
        return [*self._executor.places(core), *[own] * len(self._plan.features)]

    def flatten(self, packed: Sequence[tf.Tensor], values: Activations) -> list[tf.Tensor]:
        """Returns the components of packed ids and of one value per feature."""
        return [*packed, *[values[feature.name] for feature in self._plan.features]]

    def unflatten(self, components: Sequence[tf.Tensor]) -> tuple[list[tf.Tensor], Activations]:
        """Returns the packed ids and the values, which get the shapes of activations back."""
        return list(components[:self._packed]), {
            feature.name: tf.ensure_shape(value, self._plan.output_shape(feature))
            for feature, value in zip(self._plan.features, components[self._packed:])}
