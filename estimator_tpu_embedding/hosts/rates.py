"""Computes the learning rates of a step, and checks rates and gradients before any row changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..core.rates import DynamicRate
from ..errors import ConfigError, Problem
from ..ops import checks


def rates_at(plan: Plan, step: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the learning rate of each table at `step`, float32 scalars by name.

    A function that several tables share is called once.

    Raises:
      ConfigError: if a function of the step returns anything but a scalar; the original refuses
        that too.
    """
    values: dict[object, tf.Tensor] = {}
    for table in plan.tables:
        rate = plan.rate(table.name)
        if rate not in values:
            values[rate] = (_rate_at(step, rate, table.name) if isinstance(rate, DynamicRate)
                            else tf.constant(rate.value, tf.float32))
    return {table.name: values[plan.rate(table.name)] for table in plan.tables}


def require_rates(plan: Plan, rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Operation:
    """Fails if a dynamic rate is not a finite number >= 0."""
    dynamic = [name for name in rates if isinstance(plan.rate(name), DynamicRate)]
    if not dynamic:
        return tf.no_op()
    values = tf.stack([rates[name] for name in dynamic])
    return checks.require_of_tables(
        dynamic, ~(tf.math.is_finite(values) & (values >= 0)), Problem(
            'E421', '', 'the learning rate must be a finite number >= 0',
            remedy='Look at the learning_rate_fn of its columns.'),
        got=lambda first: at_step(step, tf.strings.as_string(values[first])))


def require_finite(tables: Sequence[str], bad: tf.Tensor, step: tf.Tensor) -> tf.Operation:
    """Fails if gradients are not finite: no later step could repair the rows they would give.

    Args:
      bad: int32 `[tables]`, how many elements of each table's gradients are not finite.
      step: the global step of the lookup.
    """
    return checks.require_of_tables(
        tables, bad > 0, Problem(
            'E801', '', 'the gradients of its rows must be finite',
            remedy='Look for a division or a logarithm in the loss that can meet 0. '
            'A TPUEstimator goes on without such steps by RunConfig(nonfinite_gradients="skip").'),
        got=lambda first: at_step(step, tf.strings.join(
            [tf.strings.as_string(bad[first]), ' elements that are not'])), step=step)


def at_step(step: tf.Tensor, got: tf.Tensor) -> tf.Tensor:
    """Appends the global step, an integer, to the scalar string `got`."""
    return tf.strings.join([got, ', at global step ', tf.strings.as_string(step)])


def _rate_at(step: tf.Tensor, rate: DynamicRate, table: str) -> tf.Tensor:
    """Calls a function of the step; every error names the table."""
    # If an operation of the function fails in a step, TensorFlow tells only the operation's name.
    with tf.name_scope('learning_rate_of/' + re.sub(r'[^\w./-]', '_', table, flags=re.ASCII)):
        try:
            value = tf.convert_to_tensor(rate.function(step))
        except Exception as error:
            error.add_note(f'raised by the learning_rate_fn of table "{table}"')
            raise
        if not value.shape.is_compatible_with([]):
            raise ConfigError(Problem(
                'E421', f'table "{table}"', 'the learning rate must be a finite number >= 0',
                f'a tensor of shape {value.shape}', 'Let learning_rate_fn return a scalar.'))
        return tf.ensure_shape(tf.cast(value, tf.float32), [])
