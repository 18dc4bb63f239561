"""Creates the variables of tables and slots of a `TPUEmbedding`, tracked as in the original.

A table `t` with a slot `s` is saved as the children `t` and `t/s` of the object. Both are also
below its `_variables`. The values and their shapes are the same for any number of replicas.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from .. import _tf
from .._tf import distribute
from ..core.budget import Need, require_fit
from ..errors import ConfigError, Problem
from ..hosts import memory_limits
from ..native.eager_variable import EagerTableVariable
from .feature_configs import slot_names

HOST = '/device:CPU:0'
"""The device of tables and of all their operations; replicas may be on other logical devices."""

PARAMETERS = 'parameters'


@contextlib.contextmanager
def on_host() -> Iterator[None]:
    """Enters an eager context on the device of tables, outside of functions and replicas."""
    with tf.init_scope(), tf.device(HOST):
        yield


def create(trackable: Any, tables: tuple[Any, ...], *, trainable: bool,
           strategy: tf.distribute.Strategy | None) -> dict[str, dict[str, Any]]:
    """Makes the variables of all tables, or takes the values with which `trackable` was restored.

    Args:
      trackable: the variables become its children.
      trainable: whether tables are trainable variables; slots are not.
      strategy: whose variables they are for optimizers of Keras, which may make the slots.

    Returns:
      By the name of the table: `'parameters'`, then its slots in the order of the core. All are
      float32 `[vocabulary_size, dim]`. A slot that the trackable must not track is in TensorFlow's
      wrapper for that, which is gone once the dict is an attribute of it.
    """
    require_fit([Need(table.name, table.vocabulary_size, table.dim, tuple(
        slot_names(table.optimizer) if table.optimizer is not None else ()))
        for table in tables], memory_limits.limit())
    with on_host():
        return {table.name: _create_table(trackable, table, trainable, strategy)
                for table in tables}


def _create_table(trackable: Any, table: Any, trainable: bool,
                  strategy: tf.distribute.Strategy | None) -> dict[str, Any]:
    shape = (table.vocabulary_size, table.dim)

    def create_child(name: str, initializer: Any, trainable: bool = False) -> EagerTableVariable:
        def create_variable(name: str, initializer: Any, **_: Any) -> EagerTableVariable:
            return EagerTableVariable(initial_value=initializer, name=name, trainable=trainable,
                                      shape=shape, dtype=tf.float32, distribute_strategy=strategy)
        made: EagerTableVariable = _tf.add_variable(
            trackable, name, shape, functools.partial(_initial_value, initializer, shape),
            create_variable)
        return made

    rows = create_child(table.name, table.initializer, trainable)
    if table.optimizer is None:
        return {PARAMETERS: rows}
    # Functions of the user may make slots too; those must be of the same class.
    with tf.variable_creator_scope(functools.partial(create_owned, strategy)):
        slots = _tf.create_slots(table.optimizer, rows, lambda name, initializer: create_child(
            f'{table.name}/{name}', initializer))
    names = slot_names(table.optimizer)
    for name in names:
        slot = _tf.without_tracking_wrapper(slots.get(name))
        if not isinstance(slot, EagerTableVariable) or slot.shape != shape:
            raise ConfigError(Problem(
                'E447', f'table "{table.name}"', 'its slot_variable_creation_fn must make each '
                f'slot by tf.Variable, of the shape {shape}', f'for "{name}" '
                f'{type(slot).__name__} {getattr(slot, "shape", "")}'.strip()))
    return {PARAMETERS: rows, **{name: slots[name] for name in names}}


def _initial_value(initializer: Any, shape: tuple[int, int]) -> tf.Tensor:
    """Returns the value of an initializer, made in place if possible.

    An eager random initializer holds three tensors of this size at once. A function holds one, and
    gives the same numbers. After `tf.random.set_seed` it would give other numbers than TensorFlow's
    class, and equal numbers for all tables of one initializer. So an eager one is used then.
    """
    make = functools.partial(initializer, shape, dtype=tf.float32)
    with contextlib.suppress(TypeError, ValueError):  # It may have no signature.
        if 'shard_info' in inspect.signature(initializer).parameters:
            make = functools.partial(make, shard_info=distribute.whole_shard(shape))
    if isinstance(initializer, _tf.random_initializers()) and _tf.global_seed() is None:
        return tf.function(make, autograph=False)()
    return make()


def create_owned(strategy: tf.distribute.Strategy | None, _: Any, **kwargs: Any
                 ) -> EagerTableVariable:
    """Makes a variable as a creator of `tf.variable_creator_scope` does, but none is asked."""
    known = ('initial_value', 'trainable', 'name', 'dtype', 'shape')
    return EagerTableVariable(distribute_strategy=strategy, **{
        name: kwargs[name] for name in known if kwargs.get(name) is not None})
