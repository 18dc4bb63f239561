"""Sums over emulated cores: `cross_replica_sum` and `CrossShardOptimizer` of `tf.compat.v1.tpu`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from ..runner import towers


def cross_replica_sum(x: Any, group_assignment: Any = None, name: str | None = None) -> tf.Tensor:
    """Sums a tensor over the replicas of the model.

    Args:
      x: a tensor of the same shape and dtype on every core.
      group_assignment: lists of cores that sum among themselves; `None` sums over all cores.
      name: ignored; kept for callers that pass it.

    Returns:
      The sum, of the shape and dtype of `x`. With one replica, as outside of a TPUEstimator, it
      is the value of `x`.

    Two cores that hold 1 and 10 both get 11. `install()` makes this function of TensorFlow's
    `tf.tpu.replicate`:

    >>> from estimator_tpu_embedding.estimator.replicate import split_compile_and_replicate
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     _, sums = split_compile_and_replicate(cross_replica_sum, [[1.0], [10.0]])
    ...     print([float(total) for total, in session.run(sums)])
    [11.0, 11.0]
    """
    del name
    return towers.cross_replica_sum(x, group_assignment)


class CrossShardOptimizer(tf.tpu.CrossShardOptimizer):
    """TensorFlow's CrossShardOptimizer, which sums gradients over emulated cores.

    After `install()` TensorFlow's own class does the same. With one core it is the optimizer that
    it wraps: the gradient of `w * w` is 2, so `w` becomes `1 - 0.25 * 2`.

    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     w = tf.get_variable('w', initializer=1.0)
    ...     optimizer = CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.25))
    ...     train_op = optimizer.minimize(w * w)
    ...     session.run(tf.global_variables_initializer())
    ...     _ = session.run(train_op)
    ...     print(session.run(w))
    0.5
    """

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None,
                        name: str | None = None) -> tf.Operation:
        """Sums the gradients over all cores, then applies the wrapped optimizer."""
        pairs = list(grads_and_vars)
        sums = iter(towers.cross_replica_sums(
            [gradient for gradient, _ in pairs if gradient is not None], self._group_assignment))
        summed = [(None if gradient is None else next(sums), variable)
                  for gradient, variable in pairs]
        return self._opt.apply_gradients(summed, global_step, name)
