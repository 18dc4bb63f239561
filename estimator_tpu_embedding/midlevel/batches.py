"""Reads and checks the ids and the gradients of one replica, and counts the ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from ..errors import InputShapeError, Problem
from ..hosts.backend import Activations, CoreBatch
from ..native.owned import OwnedVariable
from ..ops import checks
from ..ops.functions import not_inlined
from ..ops.ids import IdCounts
from . import declaration, inputs
from .declaration import Declared
from .tables import HOST, on_host

_COUNTED = ('truncated', 'out_of_range')


class Batches:
    """The features of one object, once their shapes are known.

    Attributes:
      output_shapes: the shape of each feature on one replica, without the width.
    """

    def __init__(self, declared: Declared, output_shapes: Sequence[tuple[int, ...]], policy: str):
        """Makes the variable with the counts of ids.

        Args:
          declared: the features.
          output_shapes: see above.
          policy: for ids out of range, see `core.specs.FeatureSpec`.
        """
        self.output_shapes = list(output_shapes)
        self._declared = declared
        self._names = declaration.feature_names(declared)
        self._policy = policy
        with on_host():
            self._counts = OwnedVariable(
                initial_value=tf.zeros([len(declared.features), len(_COUNTED)], tf.int64),
                trainable=False, name='id_counts', dtype=tf.int64)

    def pack(self, features: Sequence[Any], weights: Sequence[Any],
             pack: Callable[[CoreBatch], list[tf.Tensor]], kinds: Sequence[tf.DType]
             ) -> list[tf.Tensor]:
        """Packs the ids of one replica, and counts them, if all checks of them have passed.

        Args:
          features: the ids of each feature.
          weights: their weights, or `None` for each feature without.
          pack: packs the ids of all features, by their names.
          kinds: the dtypes of the results of `pack`, which are vectors.

        Returns:
          What the first check that fails says, or `''`, see `ops.checks`; then the packed ids.
        """
        def count_and_pack() -> list[tf.Tensor]:
            self._count(counts)
            return [tf.constant(''), *pack(batch)]

        def explain() -> list[tf.Tensor]:
            return [not_inlined(lambda *given: checks.first_message(lambda: self._read(*given)))(
                features, weights), *[tf.zeros([0], kind) for kind in kinds]]

        with tf.device(HOST):
            with checks.gathered() as conditions:
                batch, counts = self._read(features, weights)
            holds = conditions.holds()
            if holds is None:
                return count_and_pack()
            found: list[tf.Tensor] = tf.cond(holds, count_and_pack, explain)
            return found

    def none(self, problem: Problem) -> Activations:
        """Returns activations by the names of features, which fail with `problem` if executed."""
        failed = checks.require(tf.constant(False), problem, got=problem.got)
        with tf.control_dependencies([failed]):
            return {name: tf.zeros([*shape, feature.table.dim]) for name, shape, feature in zip(
                self._names, self.output_shapes, self._declared.features)}

    def gradients(self, flat: Sequence[Any]) -> list[tf.Tensor]:
        """Returns the gradients of activations in the order of features, zeros for `None`."""
        checked = []
        for path, feature, shape, gradient in zip(
                self._declared.paths, self._declared.features, self.output_shapes, flat):
            expected = [*shape, feature.table.dim]
            if gradient is None:
                logging.warning(
                    'No gradient passed for feature %s, sending zero gradient. This may not be '
                    'correct behavior for certain optimizers like Adam.', path)
                gradient = tf.zeros(expected)
            elif not isinstance(gradient, tf.Tensor):
                raise InputShapeError(Problem(
                    'E546', 'apply_gradients', f'found non-tensor type: {type(gradient)} at path '
                    f'{path}', remedy='Pass float32 tensors, or None.'))
            if not gradient.shape.is_compatible_with(expected):
                raise InputShapeError(Problem(
                    'E547', 'apply_gradients', f'Found gradient of shape {gradient.shape} at path '
                    f'{path}. Expected shape {tf.TensorShape(expected)}'))
            checked.append(tf.ensure_shape(tf.cast(gradient, tf.float32), expected))
        return checked

    def counts(self) -> dict[str, dict[str, int]]:
        """Returns the counts by feature, see `TPUEmbedding.id_counts`."""
        return {path: dict(zip(_COUNTED, map(int, row)))
                for path, row in zip(self._declared.paths, self._counts.numpy())}

    def _read(self, features: Sequence[Any], weights: Sequence[Any]
              ) -> tuple[CoreBatch, list[IdCounts]]:
        """Reads the ids of one replica, by the names of features, and their counts."""
        batches, counts = zip(*[inputs.read(
            *facts, policy=self._policy) for facts in zip(
                self._declared.paths, features, weights, self._declared.features,
                self.output_shapes)])
        return dict(zip(self._names, batches)), list(counts)

    def _count(self, counts: Sequence[IdCounts]) -> None:
        """Adds the counts of all features, unless all are known to be 0."""
        rows = [[getattr(one, name) for name in _COUNTED] for one in counts]
        if any(tf.get_static_value(count) != 0 for row in rows for count in row):
            self._counts.assign_add(tf.convert_to_tensor(rows, tf.int64), read_value=False)
