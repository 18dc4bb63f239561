"""Packs the ids of one core and step as flat vectors, which is the stock engine's form of them."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..ops.ids import IdBatch
from .backend import CoreBatch


def kinds_of(plan: Plan) -> list[tf.DType]:
    """Returns the dtypes of the tensors that `pack` gives."""
    return [kind for feature in plan.features for kind in (
        tf.int32, tf.int64, *([tf.float32] if feature.weight_feature else ()))]


def pack(plan: Plan, batch: CoreBatch) -> list[tf.Tensor]:
    """Packs a batch.

    Returns:
      For each feature its samples, its ids, and, if the plan weights it, its weights: 1 for each
      id if the batch has none.

    Raises:
      ValueError: for weights of a feature that the plan does not weight.
    """
    tensors = []
    for feature in plan.features:
        samples, ids, _, weights = batch[feature.name]
        tensors += [samples, ids]
        if feature.weight_feature:
            tensors.append(tf.ones_like(ids, tf.float32) if weights is None else weights)
        elif weights is not None:
            raise ValueError(f'The plan has no weights for feature "{feature.name}".')
    return tensors


def unpack(plan: Plan, tensors: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
    """Returns the batch that was packed; a tensor of unknown rank is checked to be a vector."""
    vectors = iter([tensor if tensor.shape.rank == 1 else tf.ensure_shape(tensor, [None])
                    for tensor in tensors])
    return {feature.name: IdBatch(
        next(vectors), next(vectors),
        plan.num_samples(feature),
        next(vectors) if feature.weight_feature else None) for feature in plan.features}
