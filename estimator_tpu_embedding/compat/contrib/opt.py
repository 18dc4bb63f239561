"""`tf.contrib.opt`: the optimizers LazyAdam and LARS, and decoupled weight decay."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tensorflow.compat.v1 as tf


class LazyAdamOptimizer(tf.train.AdamOptimizer):
    """Adam that changes only the rows of a sparse gradient.

    Stock Adam also decays the moments of all other rows, and moves these rows.
    """

    def _apply_sparse(self, grad: tf.IndexedSlices, var: Any) -> tf.Operation:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: tf.Tensor, handle: Any, indices: tf.Tensor
                               ) -> tf.Operation:
        """Takes the sums of each row's gradients, each index once."""
        def cast(value: Any) -> tf.Tensor:
            return tf.cast(value, handle.dtype.base_dtype)
        beta1, beta2 = cast(self._beta1_t), cast(self._beta2_t)
        power1, power2 = map(cast, self._get_beta_accumulators())
        m, v = self.get_slot(handle, 'm'), self.get_slot(handle, 'v')
        rows_m = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        rows_v = beta2 * tf.gather(v, indices) + (1 - beta2) * tf.square(grad)
        rate = cast(self._lr_t) * tf.sqrt(1 - power2) / (1 - power1)
        change = rate * rows_m / (tf.sqrt(rows_v) + cast(self._epsilon_t))
        return tf.group(tf.scatter_update(m, indices, rows_m),
                        tf.scatter_update(v, indices, rows_v),
                        tf.scatter_sub(handle, indices, change))


class DecoupledWeightDecayExtension:
    """Base class that shrinks updated variables; inherit it before an optimizer.

    Each step begins with `w -= weight_decay * w`; for a sparse gradient only its rows decay. The
    decay is not a gradient: moments do not see it, and learning rates do not scale it.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any):
        """Takes the factor of the decay, a number or tensor, and the optimizer's arguments."""
        self._weight_decay = weight_decay
        self._decayed: frozenset[Any] | None = None
        super().__init__(*args, **kwargs)

    def minimize(self, loss: Any, *args: Any,
                 decay_var_list: Collection[Any] | None = None, **kwargs: Any) -> Any:
        """Acts as the optimizer's; `decay_var_list` has the variables that decay, if not all."""
        self._decayed = _references(decay_var_list)
        return super().minimize(loss, *args, **kwargs)  # type: ignore[misc]

    def apply_gradients(self, grads_and_vars: Any, *args: Any,
                        decay_var_list: Collection[Any] | None = None, **kwargs: Any) -> Any:
        """Acts as the optimizer's; `decay_var_list` has the variables that decay, if not all."""
        if decay_var_list is not None:
            self._decayed = _references(decay_var_list)
        return super().apply_gradients(grads_and_vars, *args, **kwargs)  # type: ignore[misc]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies(self._decay(grad, var)):
            return super()._apply_dense(grad, var)  # type: ignore[misc]

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies(self._decay(grad, var)):
            return super()._resource_apply_dense(grad, var)  # type: ignore[misc]

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies(self._decay(grad.values, var, grad.indices)):
            return super()._apply_sparse_duplicate_indices(grad, var)  # type: ignore[misc]

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any
                                                 ) -> Any:
        with tf.control_dependencies(self._decay(grad, handle, indices)):
            return super()._resource_apply_sparse_duplicate_indices(  # type: ignore[misc]
                grad, handle, indices)

    def _decay(self, grad: tf.Tensor, variable: Any, indices: Any = None) -> list[tf.Operation]:
        """Returns an operation that shrinks a variable, or rows of it, after its gradient."""
        if self._decayed is not None and variable.ref() not in self._decayed:
            return []
        decay = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        decay = tf.cast(decay, variable.dtype.base_dtype)
        with tf.control_dependencies([grad]):
            if indices is None:
                return [variable.assign_sub(decay * variable).op]
            rows = tf.unique(indices)[0]
            return [tf.group(tf.scatter_sub(variable, rows, decay * tf.gather(variable, rows)))]


def _references(variables: Collection[Any] | None) -> frozenset[Any] | None:
    return frozenset(one.ref() for one in variables) if variables else None


def extend_with_decoupled_weight_decay(base_optimizer: type) -> type:
    """Returns a class like `base_optimizer` whose first argument is `weight_decay`."""
    return type('OptimizerWithDecoupledWeightDecay',
                (DecoupledWeightDecayExtension, base_optimizer), {})


class AdamWOptimizer(DecoupledWeightDecayExtension, tf.train.AdamOptimizer):
    """Adam with decoupled weight decay."""

    def __init__(self, weight_decay: Any, learning_rate: Any = .001, beta1: Any = .9,
                 beta2: Any = .999, epsilon: Any = 1e-8, use_locking: bool = False,
                 name: str = 'AdamW'):
        """Takes the decay, then the arguments of AdamOptimizer."""
        super().__init__(weight_decay, learning_rate=learning_rate, beta1=beta1, beta2=beta2,
                         epsilon=epsilon, use_locking=use_locking, name=name)


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf.train.MomentumOptimizer):
    """Momentum with decoupled weight decay."""

    def __init__(self, weight_decay: Any, learning_rate: Any, momentum: Any,
                 use_locking: bool = False, name: str = 'MomentumW', use_nesterov: bool = False):
        """Takes the decay, then the arguments of MomentumOptimizer."""
        super().__init__(weight_decay, learning_rate=learning_rate, momentum=momentum,
                         use_locking=use_locking, name=name, use_nesterov=use_nesterov)


class LARSOptimizer(tf.train.MomentumOptimizer):
    """Momentum whose rate for a variable is in proportion to its norm (arXiv:1708.03888).

    Let g be the gradient of w. The rate is multiplied by
    eeta |w| / (|g| + weight_decay |w| + epsilon), and g is replaced by g + weight_decay w. If
    either norm is 0, the rate stays.
    """

    def __init__(self, learning_rate: Any, momentum: Any = .9, weight_decay: Any = .0001,
                 eeta: Any = .001, epsilon: Any = 0., name: str = 'LARSOptimizer',
                 skip_list: Collection[str] | None = None, use_nesterov: bool = False):
        """Takes the constants.

        Variables whose names contain an entry of `skip_list` learn by plain momentum, without
        decay."""
        super().__init__(learning_rate, momentum, name=name, use_nesterov=use_nesterov)
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skipped = tuple(skip_list or ())

    def compute_lr(self, grad: tf.Tensor, var: Any) -> tuple[Any, tf.Tensor]:
        """Returns the rate for a variable, and its gradient with the decay."""
        rate = self._learning_rate_tensor
        if any(part in var.name for part in self._skipped):
            return rate, grad
        norm, norm_of_gradient = tf.norm(var), tf.norm(grad)
        trust = self._eeta * norm / (
            norm_of_gradient + self._weight_decay * norm + self._epsilon)
        usable = tf.logical_and(norm > 0, norm_of_gradient > 0)
        return rate * tf.where(usable, trust, tf.ones_like(trust)), (
            grad + self._weight_decay * var)

    def _apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        return self._step(tf.raw_ops.ApplyMomentum, grad, var, lambda variable: variable)

    def _resource_apply_dense(self, grad: tf.Tensor, var: Any) -> tf.Operation:
        return self._step(tf.raw_ops.ResourceApplyMomentum, grad, var,
                          lambda variable: variable.handle)

    def _step(self, kernel: Any, grad: tf.Tensor, var: Any, handle: Any) -> tf.Operation:
        rate, gradient = self.compute_lr(grad, var)
        return kernel(
            var=handle(var), accum=handle(self.get_slot(var, 'momentum')),
            lr=tf.cast(rate, grad.dtype), grad=gradient,
            momentum=tf.cast(self._momentum_tensor, grad.dtype), use_locking=self._use_locking,
            use_nesterov=self._use_nesterov)


NAMES: dict[str, Any] = {one.__name__: one for one in (
    AdamWOptimizer, DecoupledWeightDecayExtension, LARSOptimizer, LazyAdamOptimizer,
    MomentumWOptimizer, extend_with_decoupled_weight_decay)}
