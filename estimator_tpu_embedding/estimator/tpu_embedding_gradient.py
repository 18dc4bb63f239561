"""Gets the gradients of activations: `tensorflow.python.tpu.tpu_embedding_gradient`.

There are two ways. The plain one differentiates the loss with respect to the activations. The
other is for optimizers that know trainable variables only: every activation depends on a dummy
variable of its table. While such an optimizer differentiates with respect to the dummies, the
gradients of the activations are caught; see `runner/gradient_capture.py`.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from ..core.names import DUMMY
from ..errors import ConfigError, Problem
from ..runner.gradient_capture import DUMMY_COLLECTION, GradientCapture
from ..runner.towers import current_core
from .tpu_embedding import TPUEmbedding
from .tpu_ops_embedding import TpuOpsEmbedding

Tensors = dict[str, tf.Tensor]


def get_gradients_through_compute_gradients(optimizer: Any, loss: tf.Tensor,
                                            activations: Mapping[str, tf.Tensor]) -> Tensors:
    """Returns the gradient of `loss` with respect to each activation.

    Args:
      optimizer: a `tf.train.Optimizer`, usually a `CrossShardOptimizer`.
      loss: scalar.
      activations: by feature, as `TPUEmbedding.get_activations` returns them.
    """
    gradients = optimizer.compute_gradients(loss, list(activations.values()))
    return collections.OrderedDict(
        (feature, gradient) for feature, (gradient, _) in zip(activations, gradients))


def create_dummy_table_variables(tpu_embedding: TPUEmbedding
                                 ) -> tuple[dict[str, tf.Variable], tf.Operation]:
    """Creates one trainable variable of shape `[1]` per table, whose gradient is always 0.

    They are in the collection `tpu_embedding_dummy_table_variables`, not among the global
    variables. So they are neither saved nor initialised with the global variables.

    Returns:
      The variables by table, and the operation that initialises them.

    Raises:
      ValueError: if they exist in this variable scope.
    """
    if isinstance(tpu_embedding, TpuOpsEmbedding):
        return _with_initializer(tpu_embedding.create_dummies())
    dummies = collections.OrderedDict(
        (table.name, tf.get_variable(
            f'{DUMMY}{table.name}', [1], tf.float32,
            use_resource=True, trainable=True, collections=[DUMMY_COLLECTION]))
        for table in tpu_embedding.plan.tables)
    engine = tpu_embedding.engine
    if engine.capture is None:  # Later replicas get the variables of the first.
        engine.capture = GradientCapture(tpu_embedding.plan, dummies)
    return _with_initializer(dummies)


def _with_initializer(dummies: dict[str, tf.Variable]) -> tuple[Tensors, tf.Operation]:
    return dummies, tf.variables_initializer(
        list(dummies.values()), name='tpu_embedding_dummy_table_variables_init')


def hook_dummy_table_variables_to_activations(
        tpu_embedding: TPUEmbedding, activations: Mapping[str, tf.Tensor],
        dummy_table_variables: Mapping[str, tf.Variable]) -> Tensors:
    """Returns the activations, made to depend on the dummy variables.

    Args:
      tpu_embedding: the embedding that looked up the activations.
      activations: the activation of every feature, on the core whose replica is being built.
      dummy_table_variables: the result of `create_dummy_table_variables`.

    Raises:
      ConfigError: if `create_dummy_table_variables` was not called.
    """
    if isinstance(tpu_embedding, TpuOpsEmbedding):
        return tpu_embedding.hook(activations, dummy_table_variables)
    return collections.OrderedDict(_capture(tpu_embedding).hook(current_core(), activations))


def get_gradients_through_dummy_table_variables(tpu_embedding: TPUEmbedding) -> Tensors:
    """Returns the gradients caught since then, for the core whose replica is being built.

    Returns:
      The gradient of the activation of each feature. It is zeros, with a warning, for a feature
      without a gradient: for optimizers with momentum that differs from no update.

    Raises:
      ConfigError: if `create_dummy_table_variables` was not called.
    """
    if isinstance(tpu_embedding, TpuOpsEmbedding):
        return tpu_embedding.gradients()
    capture = _capture(tpu_embedding)
    capture.finish()
    return collections.OrderedDict(capture.gradients(current_core()))


def _capture(tpu_embedding: TPUEmbedding) -> GradientCapture:
    capture = tpu_embedding.engine.capture
    if capture is None:
        raise ConfigError(Problem(
            'E467', 'tpu_embedding_gradient', 'the dummy variables must exist in this graph',
            'none', 'Call create_dummy_table_variables(tpu_embedding) before.'))
    return capture
