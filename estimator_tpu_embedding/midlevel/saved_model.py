"""Looks up in functions that a SavedModel holds, with TensorFlow's own operations.

Keras traces the calls of all layers when it saves a model. Where the SavedModel is loaded there is
no TPU, and perhaps not this package. So a look-up becomes what `serving_embedding_lookup` does.
"""

from __future__ import annotations

import collections
import weakref
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ..errors import CallError, Problem
from ..ops import checks
from . import shapes
from .feature_configs import Declared
from .traced_calls import traced_function

_config = tf.tpu.experimental.embedding.FeatureConfig


class SavedLookups:
    """The ids that functions have enqueued while they were traced for a SavedModel."""

    def __init__(self, declared: Declared):
        self._declared = declared
        self._waiting: weakref.WeakKeyDictionary[
            tf.Graph, collections.defaultdict[str | None, list[Any]]] = weakref.WeakKeyDictionary()

    def enqueue(self, features: Any, weights: Any, name: str | None) -> None:
        """Keeps the ids for the `dequeue` of this name; see `TPUEmbedding.enqueue`.

        Any batch size will do, also an unknown one.

        Raises:
          InputShapeError: a ValueError, for an unexpected structure, type or rank.
        """
        flat, flat_weights = self._declared.flatten_inputs(features, weights)
        shapes.of_inputs(self._declared, flat)
        self._waiting_here()[name].append(list(zip(flat, flat_weights)))

    def dequeue(self, name: str | None, tables: Mapping[Any, tf.Variable]) -> Any:
        """Returns the activations of the ids that were enqueued first with this name.

        Raises:
          CallError: if this function enqueued none.
        """
        waiting = self._waiting_here()[name]
        if not waiting:
            raise CallError(Problem(
                'E541', 'dequeue', 'a function of a SavedModel must enqueue the ids itself that it '
                'looks up', 'a dequeue only', 'Call enqueue of this name before it in the same '
                'function, or save an object that does not have this function.'))
        return self._declared.pack(
            _lookup(feature, path, ids, weights, tables[feature.table])
            for feature, path, (ids, weights) in zip(
                self._declared.features, self._declared.paths, waiting.pop(0)))

    def _waiting_here(self) -> collections.defaultdict[str | None, list[Any]]:
        """Returns the ids by name, of the function that is being traced."""
        return self._waiting.setdefault(traced_function(), collections.defaultdict(list))


def refuse_training() -> None:
    """Adds an operation that fails, because a loaded function would have to train tables.

    It is no error to save it: TensorFlow also saves the gradients of functions that only look up.
    """
    problem = Problem(
        'E541', 'apply_gradients', 'a SavedModel trains no tables', 'a function that trains',
        'Make the model anew to train it, and restore a checkpoint.')
    checks.require(tf.constant(False), problem, got=tf.constant(problem.got))


def _lookup(feature: Any, path: str, ids: Any, weights: Any, table: tf.Variable) -> tf.Tensor:
    """Returns the activations of a feature, of the shape they have in training but the batch."""
    cells = shapes.of_input(path, feature, ids).rank
    own = feature.output_shape
    if isinstance(ids, tf.Tensor):
        found = tf.nn.embedding_lookup(table, ids[..., 0] if ids.shape.rank > cells else ids)
    else:
        # An output shape has the batch size of training, and rows may become several dimensions.
        is_plain = own.rank is None or isinstance(ids, tf.RaggedTensor) and own.rank > 1
        config = feature if is_plain else _config(
            feature.table, validate_weights_and_indices=feature.validate_weights_and_indices)
        found, = tf.tpu.experimental.embedding.serving_embedding_lookup(
            [ids], [weights], {feature.table: table}, [config])
    if own.rank is None or own.rank <= found.shape.rank - 1:
        return found
    return tf.reshape(found, [-1, *own[1:], feature.table.dim])
