"""Catches the gradients of activations inside the back-propagation of the user's optimizer.

Each table has a trainable dummy variable, and every activation passes through an op that has
the dummy as another input. The optimizer differentiates its loss with respect to the trainable
variables. In doing so it calls the gradient function of that op, which keeps the gradient of the
activation and passes nothing on: the dummy's own gradient is zero. So tables get the gradient of
the very loss that is minimised. The scaling of `CrossShardOptimizer` is in it. Changes that the
user makes to gradients afterwards are not. The original works the same way.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.names import DUMMY, legal
from ..core.plan import Plan
from .towers import current_core

_GRADIENT = 'EstimatorTpuEmbeddingActivation'
DUMMY_COLLECTION = 'tpu_embedding_dummy_table_variables'
# Weak on both sides, since a capture holds its graph. A collection of the graph cannot take its
# place, since a MetaGraph cannot hold captures.
_captures: weakref.WeakKeyDictionary[tf.Graph, weakref.WeakSet[GradientCapture]] = (
    weakref.WeakKeyDictionary())


class GradientCapture:
    """The gradients of all activations of one graph, by core and feature."""

    def __init__(self, plan: Plan, dummies: Mapping[str, tf.Variable] | None = None):
        """Catches in the default graph.

        Args:
          plan: says which features have activations.
          dummies: a trainable variable of shape `[1]` per table; made here if it is `None`.
        """
        self._plan = plan
        self._hooked: dict[str, tuple[int, str]] = {}
        # By activation, then by the core whose loss is differentiated: a sum over replicas in
        # a model makes the loss of one core depend on the activations of others.
        self._caught: dict[tuple[int, str], dict[int, tf.Tensor]] = {}
        self._dummies = dummies or {
            table.name: tf.Variable(
                [0.0], name=f'{DUMMY}{legal(table.name)}',
                trainable=True, use_resource=True, collections=[DUMMY_COLLECTION])
            for table in plan.tables}
        _captures.setdefault(tf.get_default_graph(), weakref.WeakSet()).add(self)

    @property
    def initializer(self) -> tf.Operation:
        """The operation that initialises the dummies, which no checkpoint holds."""
        return tf.group(*[dummy.initializer for dummy in self._dummies.values()],
                        name='tpu_embedding_dummy_table_variables_init')

    def hook(self, core: int, activations: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the activations of one core, made differentiable."""
        graph = tf.get_default_graph()
        hooked = {}
        for feature in self._plan.features:
            dummy = self._dummies[feature.table]
            with graph.gradient_override_map({'IdentityN': _GRADIENT}):
                _, value = tf.identity_n([dummy, activations[feature.name]])
            self._hooked[value.op.name] = (core, feature.name)
            hooked[feature.name] = value
        return hooked

    def has_hooked(self, operation: tf.Operation) -> bool:
        """Returns whether `hook` made `operation`."""
        return operation.name in self._hooked

    def catch(self, operation: tf.Operation, gradient: tf.Tensor) -> None:
        """Keeps the gradient of one activation."""
        place = self._hooked[operation.name]
        caught = self._caught.setdefault(place, {})
        if current_core() in caught:
            core, feature = place
            table = next(f.table for f in self._plan.features if f.name == feature)
            raise RuntimeError(
                'Duplicate gradients (w.r.t. TPUEmbedding activations) generated for feature '
                f'"{feature}" of table "{table}" on core {core}: the gradients of the embedding '
                'tables were asked for more than once. Consider placing tf.stop_gradient around '
                'tensors where an update of the tables is not wanted, or pass a var_list '
                f'without the variables of the collection "{DUMMY_COLLECTION}".')
        caught[current_core()] = tf.convert_to_tensor(gradient)

    def gradients(self, core: int) -> dict[str, tf.Tensor]:
        """Returns the gradients caught for one core, by feature; zeros where none was caught."""
        gradients = {}
        for feature in self._plan.features:
            caught = self._caught.get((core, feature.name))
            gradients[feature.name] = (
                tf.add_n(list(caught.values())) if caught
                else tf.zeros(self._plan.output_shape(feature)))
        return gradients

    def finish(self) -> None:
        """Warns of tables that no gradient reached; called once all models are built."""
        for table in self._plan.tables:
            features = [feature.name for feature in self._plan.features_of(table.name)]
            if not any((0, feature) in self._caught for feature in features):
                tf.logging.warning(
                    'Table "%s" does not train: no gradient reaches the activations of its '
                    'features %s. Check that the loss depends on them, and that a var_list '
                    'given to the optimizer includes tf.get_collection("%s").',
                    table.name, features, DUMMY_COLLECTION)


@tf.RegisterGradient(_GRADIENT)
def _catch_gradient(operation: tf.Operation, dummy_gradient: Any, gradient: Any) -> list[Any]:
    """Keeps the gradient of a hooked activation; returns zeros for the dummy."""
    del dummy_gradient
    capture = next(capture for capture in _captures[operation.graph]
                   if capture.has_hooked(operation))
    capture.catch(operation, gradient)
    return [tf.zeros([1]), None]
