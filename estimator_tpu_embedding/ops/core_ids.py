"""Reads and checks the ids of all features of a core, with one condition for all their checks.

Only where the condition does not hold, the ids are read once more, for the message. A function does
so, and is traced once for all cores. So a core costs few operations, however many checks it has.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from . import checks
from .checks import not_inlined
from .ids import IdReader, ReadIds

_ANY_CORE = '\x01core\x01'


class CoreIds:
    """Reads the features of one core after another, in one graph of TF1."""

    def __init__(self, features: Sequence[IdReader]):
        self._features = features
        self._explain = not_inlined(self._message)

    def read(self, given: Mapping[str, tuple[Any, Any]], core: int) -> dict[str, ReadIds]:
        """Returns the ids of all features of a core; the values fail to evaluate if a check fails.

        Args:
          given: the values and the weights, or `None`, of each feature, as for `IdReader.read`.
          core: the core, for messages.

        Raises:
          InputShapeError: as `IdReader.read`.
        """
        given = {feature.name: given[feature.name] for feature in self._features}
        with checks.gathered() as conditions:
            found = self._read(given, str(core))
        required = checks.require_gathered(
            conditions, lambda: self._explain(given, tf.constant(str(core))))
        return found if required is None else _after(required, found)

    def _read(self, given: Mapping[str, tuple[Any, Any]], core: str) -> dict[str, ReadIds]:
        range_of = functools.cache(tf.range)
        return {feature.name: dataclasses.replace(feature, core=core, range_of=range_of).read(
            *given[feature.name]) for feature in self._features}

    def _message(self, given: Mapping[str, tuple[Any, Any]], core: tf.Tensor) -> tf.Tensor:
        """Returns what the first check says that fails."""
        said = checks.first_message(lambda: self._read(given, _ANY_CORE))
        return tf.strings.regex_replace(said, _ANY_CORE, core)


def _after(required: tf.Operation, found: dict[str, ReadIds]) -> dict[str, ReadIds]:
    """Returns the same, but nothing of a batch is known before `required` has passed.

    Otherwise an operation that takes samples or weights alone might fail first, without a message.
    """
    own = {id(tensor): tensor for one in found.values() for tensor in (
        one.batch.samples, one.batch.ids, one.batch.weights, one.lengths) if tensor is not None}
    with tf.control_dependencies([required]):
        checked = dict(zip(own, tf.identity_n(list(own.values()))))
    return {name: one._replace(
        batch=one.batch._replace(
            samples=checked[id(one.batch.samples)], ids=checked[id(one.batch.ids)],
            weights=checked.get(id(one.batch.weights))),
        lengths=checked.get(id(one.lengths)))
        for name, one in found.items()}
