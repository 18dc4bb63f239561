"""`CrossShardOptimizer` and `cross_replica_sum` of `tf.compat.v1.tpu`, over emulated cores."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from ..runner import towers


def cross_replica_sum(x: Any, group_assignment: Any = None, name: str | None = None) -> tf.Tensor:
    """Sums a tensor over the replicas of the model.

    Args:
      x: a tensor of the same shape and dtype on every core.
      group_assignment: lists of cores that sum among themselves; `None` is all together.
      name: ignored; kept for callers that pass it.

    Returns:
      The sum. Where there is one replica, as outside of a TPUEstimator, the value of `x`.
    """
    del name
    return towers.cross_replica_sum(x, group_assignment)


class CrossShardOptimizer(tf.tpu.CrossShardOptimizer):
    """TensorFlow's CrossShardOptimizer, which sums gradients over emulated cores.

    After `install()` TensorFlow's own class does the same.
    """

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None,
                        name: str | None = None) -> tf.Operation:
        """Sums the gradients over all cores, then applies the wrapped optimizer."""
        summed = [(None if gradient is None
                   else cross_replica_sum(gradient, self._group_assignment), variable)
                  for gradient, variable in grads_and_vars]
        return self._opt.apply_gradients(summed, global_step, name)
