"""Sums over emulated cores: `cross_replica_sum` and `CrossShardOptimizer` of `tf.compat.v1.tpu`."""

from __future__ import annotations

import collections
from typing import Any

import tensorflow.compat.v1 as tf

from ..runner import towers
from ..runner.gradients import DUMMY_COLLECTION

_SEPARATE = frozenset({
    tf.train.AdadeltaOptimizer, tf.train.AdagradDAOptimizer, tf.train.AdagradOptimizer,
    tf.train.AdamOptimizer, tf.train.FtrlOptimizer, tf.train.GradientDescentOptimizer,
    tf.train.MomentumOptimizer, tf.train.ProximalAdagradOptimizer,
    tf.train.ProximalGradientDescentOptimizer, tf.train.RMSPropOptimizer})
"""Optimizers that change each variable alike whichever others they get; others may count them."""


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
        """Sums the gradients over all cores by variable, then applies the wrapped optimizer."""
        pairs = list(grads_and_vars)
        counts: collections.Counter[str] = collections.Counter()
        keys = []
        for _, variable in pairs:
            number = counts[variable.name] = counts[variable.name] + 1
            keys.append(f'"{variable.name}"' if number == 1 else f'"{variable.name}" ({number})')
        sums = towers.cross_replica_sums(
            {key: gradient for key, (gradient, _) in zip(keys, pairs) if gradient is not None},
            self._group_assignment)
        summed = [(sums.get(key), variable) for key, (_, variable) in zip(keys, pairs)]
        if towers.current_core() and type(self._opt) in _SEPARATE:
            summed = _without_dummies(summed)
        return self._opt.apply_gradients(summed, global_step, name)


def _without_dummies(pairs: list[Any]) -> list[Any]:
    """Leaves out the dummy variables of tables, unless there is nothing else to train.

    Only the first tower changes variables, so the others need not have operations for it.
    """
    dummies = {id(each) for each in tf.get_collection(DUMMY_COLLECTION)}
    others = [(gradient, each) for gradient, each in pairs if id(each) not in dummies]
    return others if any(gradient is not None for gradient, _ in others) else pairs
