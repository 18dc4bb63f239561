"""Hands the variables that tower 0 makes to the other towers; see `towers.py`."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..errors import ConfigError, Problem


class SharedVariables:
    """Hands the variables of tower 0 to the other towers."""

    def __init__(self, count: int):
        """Prepares for `count` towers."""
        self._made: collections.defaultdict[Any, list[tf.Variable]] = (
            collections.defaultdict(list))
        self._num_held: list[collections.Counter[Any]] = [
            collections.Counter() for _ in range(count)]

    def initializers(self) -> set[tf.Operation]:
        """Returns the operations that give the variables of tower 0 their first values."""
        return {each.initializer for variables in self._made.values() for each in variables}

    def creator(self, core: int) -> Callable[..., tf.Variable]:
        """Returns the variable creator of one tower."""

        def create(next_creator: Callable[..., tf.Variable], **kwargs: Any) -> tf.Variable:
            kwargs['use_resource'] = True  # As on the hardware, whatever the default is.
            key = (kwargs.get('name'), str(kwargs.get('shape')), str(kwargs.get('dtype')))
            if core == 0:
                variable = next_creator(**kwargs)
                self._made[key].append(variable)
                return variable
            return self._hand_out(core, key, kwargs.get('collections'))

        return create

    def _hand_out(self, core: int, key: Any, keys: Sequence[str] | None) -> tf.Variable:
        made, number = self._made.get(key, []), self._num_held[core][key]
        if number < len(made):
            self._num_held[core][key] += 1
            of_variable = set(keys or [tf.GraphKeys.GLOBAL_VARIABLES])
            if made[number].trainable:
                of_variable.add(tf.GraphKeys.TRAINABLE_VARIABLES)
            tf.add_to_collections(sorted(of_variable), made[number])
            return made[number]
        name, shape, dtype = key
        raise ConfigError(Problem(
            'E452', 'model_fn', 'it must create the same variables on every core',
            f'variable "{name}" of shape {shape} and dtype {dtype} on core {core}, which core 0 '
            'did not create', 'Do not make variables or their names depend on the core.'))
