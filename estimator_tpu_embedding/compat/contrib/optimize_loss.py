"""Defines `tf.contrib.layers.optimize_loss`, which makes a train_op from a loss in one call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

OPTIMIZER_CLS_NAMES: dict[str, Callable[..., Any]] = {
    'Adagrad': tf.train.AdagradOptimizer, 'Adam': tf.train.AdamOptimizer,
    'Ftrl': tf.train.FtrlOptimizer,
    'Momentum': lambda learning_rate: tf.train.MomentumOptimizer(learning_rate, momentum=.9),
    'RMSProp': tf.train.RMSPropOptimizer, 'SGD': tf.train.GradientDescentOptimizer}
OPTIMIZER_SUMMARIES = [
    'learning_rate', 'loss', 'gradients', 'gradient_norm', 'global_gradient_norm']
Gradients = list[tuple[Any, Any]]


def optimize_loss(loss: Any, global_step: Any, learning_rate: Any, optimizer: Any,
                  gradient_noise_scale: float | None = None,
                  gradient_multipliers: Mapping[Any, Any] | None = None,
                  clip_gradients: Any = None,
                  learning_rate_decay_fn: Callable[[Any, Any], Any] | None = None,
                  update_ops: Collection[Any] | None = None,
                  variables: Sequence[Any] | None = None, name: str | None = None,
                  summaries: Collection[str] | None = None,
                  colocate_gradients_with_ops: bool = False,
                  increment_global_step: bool = True) -> tf.Tensor:
    """Makes the operation of a training step, and its summaries.

    Args:
      loss: a scalar.
      global_step: `None` takes the graph's own, if there is one.
      learning_rate: a number, a scalar tensor, or `None` if the optimizer has its own. A number
        becomes the variable `learning_rate`.
      optimizer: a key of `OPTIMIZER_CLS_NAMES`, a class, an instance, or a function that returns
        an instance. It takes the rate, or nothing if the rate is `None`.
      gradient_noise_scale: deviation of the normal noise that is added to the gradients.
      gradient_multipliers: factors by variables or their names, such as `'w:0'`.
      clip_gradients: the greatest global norm that gradients may have, or a function from pairs
        of gradients and variables to such pairs.
      learning_rate_decay_fn: of the rate and the global step, to the rate.
      update_ops: operations that run before the loss; `None` is `UPDATE_OPS` of the graph.
      variables: variables to train; `None` is all.
      name: name of the scope, `OptimizeLoss` if `None`.
      summaries: some of `OPTIMIZER_SUMMARIES`; `None` is the loss, rate and global norm.
      colocate_gradients_with_ops: as of `Optimizer.compute_gradients`.
      increment_global_step: whether the step counts.

    Returns:
      A tensor of the loss; its evaluation takes the step.

    Raises:
      ValueError: for any other argument.
    """
    loss = tf.convert_to_tensor(loss)
    if loss.shape.rank not in (None, 0):
        raise ValueError(f'Expected a scalar loss, got {loss}')
    if global_step is None:
        global_step = tf.train.get_global_step()
    else:
        tf.train.assert_global_step(global_step)
    wanted = _checked(summaries)
    with tf.variable_scope(name, 'OptimizeLoss', [loss, global_step]):
        before = tf.get_collection(tf.GraphKeys.UPDATE_OPS) if update_ops is None else update_ops
        if before:
            with tf.control_dependencies(list(before)):
                loss = tf.identity(loss)
        rate = _rate(learning_rate, learning_rate_decay_fn, global_step, wanted)
        made = _optimizer(optimizer, rate)
        gradients = made.compute_gradients(
            loss, variables or tf.trainable_variables(),
            colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gradient_noise_scale is not None:
            gradients = _with_noise(gradients, gradient_noise_scale)
        if gradient_multipliers is not None:
            gradients = _multiplied(gradients, gradient_multipliers)
        gradients = _clipped(gradients, clip_gradients, wanted)
        if 'loss' in wanted:
            tf.summary.scalar('loss', loss)
        _summarize(gradients, wanted)
        step = made.apply_gradients(
            gradients, global_step=global_step if increment_global_step else None, name='train')
        with tf.control_dependencies([step]):
            return tf.identity(loss)


def _checked(summaries: Collection[str] | None) -> Collection[str]:
    if summaries is None:
        return ('loss', 'learning_rate', 'global_gradient_norm')
    for one in summaries:
        if one not in OPTIMIZER_SUMMARIES:
            raise ValueError(f'Summaries should be one of [{", ".join(OPTIMIZER_SUMMARIES)}], '
                             f'you provided {one}.')
    return summaries


def _rate(given: Any, decay: Callable[[Any, Any], Any] | None, global_step: Any,
          wanted: Collection[str]) -> Any:
    """Returns the learning rate in force at a step, or `None`."""
    if given is None:
        return None
    if isinstance(given, float):
        if given < 0:
            raise ValueError(f'Invalid learning_rate {given}.')
        rate = tf.get_variable('learning_rate', [], trainable=False,
                               initializer=tf.constant_initializer(given))
    elif tf.is_tensor(given) and given.shape.rank == 0:
        rate = given
    else:
        raise ValueError('Learning rate should be 0d Tensor or float. '
                         f'Got {given} of type {type(given)}')
    if decay is not None:
        if global_step is None:
            raise ValueError('global_step is required for learning_rate_decay_fn.')
        rate = decay(rate, global_step)
    if 'learning_rate' in wanted:
        tf.summary.scalar('learning_rate', rate)
    return rate


def _optimizer(given: Any, rate: Any) -> Any:
    """Returns an instance of an optimizer."""
    needs_rate = isinstance(given, str) or inspect.isclass(given)
    if needs_rate and rate is None:
        raise ValueError(f'Learning rate is None, but should be specified for optimizer {given}.')
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(f'Optimizer name should be one of [{", ".join(OPTIMIZER_CLS_NAMES)}],'
                             f' you provided {given}.')
        given = OPTIMIZER_CLS_NAMES[given]
    if callable(given):
        given = given() if rate is None else given(rate)
    if not isinstance(given, tf.train.Optimizer):
        raise ValueError('Optimizer should be a name, a class or an instance of '
                         f'tf.train.Optimizer, or a function to one. Got {given}.')
    return given


def _mapped(gradient: Any, change: Callable[[tf.Tensor], tf.Tensor]) -> Any:
    """Returns a gradient with its values changed."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(change(gradient.values), gradient.indices, gradient.dense_shape)
    return None if gradient is None else change(gradient)


def _with_noise(gradients: Gradients, scale: float) -> Gradients:
    return [(_mapped(gradient, lambda values: values + scale * tf.truncated_normal(
        tf.shape(values), dtype=values.dtype)), variable) for gradient, variable in gradients]


def _multiplied(gradients: Gradients, multipliers: Mapping[Any, Any]) -> Gradients:
    by_name = {key if isinstance(key, str) else key.name: factor
               for key, factor in multipliers.items()}
    return [(_mapped(gradient, lambda values: values * tf.cast(
        by_name[variable.name], values.dtype)) if variable.name in by_name else gradient, variable)
        for gradient, variable in gradients]


def _clipped(gradients: Gradients, clip: Any, wanted: Collection[str]) -> Gradients:
    """Clips, and writes the global norm from before and after."""
    norms = 'global_gradient_norm' in wanted
    if norms:
        tf.summary.scalar('global_norm/gradient_norm', _global_norm(gradients))
    if clip is None:
        return gradients
    if isinstance(clip, float):
        values, variables = zip(*gradients)
        gradients = list(zip(tf.clip_by_global_norm(values, clip)[0], variables))
    elif callable(clip):
        gradients = list(clip(gradients))
    else:
        raise ValueError(f'Unknown type {type(clip)} for clip_gradients')
    if norms or 'gradient_norm' in wanted:
        tf.summary.scalar('global_norm/clipped_gradient_norm', _global_norm(gradients))
    return gradients


def _global_norm(gradients: Gradients) -> tf.Tensor:
    return tf.global_norm([gradient for gradient, _ in gradients])


def _summarize(gradients: Gradients, wanted: Collection[str]) -> None:
    """Writes gradients and norms by variable, if they are wanted."""
    for gradient, variable in gradients:
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        name = variable.name.replace(':', '_')
        if values is not None and 'gradients' in wanted:
            tf.summary.histogram(f'gradients/{name}', values)
        if values is not None and 'gradient_norm' in wanted:
            tf.summary.scalar(f'gradient_norm/{name}', tf.global_norm([values]))
