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
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from ..core.names import DUMMY, legal
from ..core.plan import Plan
from .tower_copies import TowerCopies
from .towers import current_core, too_late

_GRADIENT = 'EstimatorTpuEmbeddingActivation'
DUMMY_COLLECTION = 'tpu_embedding_dummy_table_variables'
# Weak on both sides, since a capture holds its graph. A collection of the graph cannot take its
# place, since a MetaGraph cannot hold captures.
_captures: weakref.WeakKeyDictionary[tf.Graph, weakref.WeakSet[GradientCapture]] = (
    weakref.WeakKeyDictionary())


class _Activation(NamedTuple):
    """The activation that an operation passes on, and the gradient of its dummy variable."""

    core: int
    feature: str
    zeros: tf.Tensor


class GradientCapture:
    """The gradients of all activations of one graph, by core and feature."""

    def __init__(self, plan: Plan, dummies: Mapping[str, tf.Variable] | None = None):
        """Catches in the default graph; `dummies` are variables of shape `[1]`, made by default."""
        self._plan = plan
        self._hooked: dict[str, _Activation] = {}
        # By activation, then by the core whose loss is differentiated: a sum over replicas in
        # a model makes the loss of one core depend on the activations of others.
        self._caught: dict[tuple[int, str], dict[int, tf.Tensor]] = {}
        self._dummies = dummies or {
            table.name: tf.Variable(
                [0.0], name=f'{DUMMY}{legal(table.name)}',
                trainable=True, use_resource=True, collections=[DUMMY_COLLECTION])
            for table in plan.tables}
        with tf.init_scope():  # Outside of a loop in which activations may be hooked.
            self._values = {name: tf.convert_to_tensor(dummy)
                            for name, dummy in self._dummies.items()}
        _captures.setdefault(tf.get_default_graph(), weakref.WeakSet()).add(self)

    @property
    def initializer(self) -> tf.Operation:
        """The operation that initialises the dummies, which no checkpoint holds."""
        return tf.group(*[dummy.initializer for dummy in self._dummies.values()],
                        name='tpu_embedding_dummy_table_variables_init')

    def hook(self, core: int, activations: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the activations of one core, made differentiable."""
        hooked = {}
        with tf.init_scope():
            zeros = tf.zeros([1])
        # This operation alone passes a tensor on and has other inputs, but no other outputs, of
        # which TensorFlow would make gradients. It prints its first 0 values.
        with tf.get_default_graph().gradient_override_map({'Print': _GRADIENT}):
            for feature in self._plan.features:
                value = tf.raw_ops.Print(input=activations[feature.name], first_n=0,
                                         data=[self._values[feature.table]], name='activation')
                self._hooked[value.op.name] = _Activation(core, feature.name, zeros)
                hooked[feature.name] = value
        return hooked

    def has_hooked(self, operation: tf.Operation) -> bool:
        """Returns whether `hook` made `operation`."""
        return operation.name in self._hooked

    def catch(self, operation: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
        """Keeps the gradient of one activation, and returns zeros for its dummy."""
        core, feature, zeros = self._hooked[operation.name]
        caught = self._caught.setdefault((core, feature), {})
        if current_core() in caught:
            table = next(f.table for f in self._plan.features if f.name == feature)
            raise RuntimeError(
                'Duplicate gradients (w.r.t. TPUEmbedding activations) generated for feature '
                f'"{feature}" of table "{table}" on core {core}: the gradients of the embedding '
                'tables were asked for more than once. Consider placing tf.stop_gradient around '
                'tensors where an update of the tables is not wanted, or pass a var_list '
                f'without the variables of the collection "{DUMMY_COLLECTION}".')
        caught[current_core()] = tf.convert_to_tensor(gradient)
        return zeros

    def gradients(self, core: int) -> dict[str, tf.Tensor]:
        """Returns the gradients caught for one core, by feature; zeros where none was caught."""
        gradients = {}
        for feature in self._plan.features:
            caught = self._caught.get((core, feature.name))
            gradients[feature.name] = (
                tf.add_n(list(caught.values())) if caught
                else tf.zeros(self._plan.output_shape(feature)))
        return gradients

    def add_copies(self, copies: TowerCopies) -> None:
        """Catches for the other cores the copies of what core 0 has caught."""
        own = {feature: caught[0] for (core, feature), caught in self._caught.items() if core == 0}
        for core, copied in enumerate(copies.of(own), 1):
            for feature, gradient in copied.items():
                self._caught[core, feature] = {core: gradient}

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
def _catch_gradient(operation: tf.Operation, gradient: Any) -> list[Any]:
    capture = next((capture for capture in _captures[operation.graph]
                    if capture.has_hooked(operation)), None)
    if capture is None:
        raise too_late('a gradient of another core')
    return [None, capture.catch(operation, gradient)]
