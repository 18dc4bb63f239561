"""Splits ids by the owners of their rows, adds the sums of owners, and spreads gradients to them.

A host owns its rows. A core sends each owner the ids that it holds, gets the sums of their rows
back, and sends gradients. All features of one row width travel side by side, so the features are
in *exchange order*: sorted by width, otherwise in the order of the plan. Each sample of each
feature has a *position* there: the number of samples of all features before it, plus its own.
For features `a` and `b` of 2 samples each, sample 1 of `b` has position 3.

These are the messages between a core and an owner. `F` counts the features of the owner, in
exchange order:

- *ids*, int32: `n[F]`, `m[F]`, then the row of each id, the group of each id, and the bits of the
  weights of weighted features. `n` counts ids, and `m` counts groups, numbered from 0 on.
- *sums* and *gradients*, float32: for each feature `[m, D]`, one after another.

A group is what the owner sums. There are two ways, and each feature takes the one with fewer
groups, for each owner and step by itself:

- *By sample*: a group is a sample with an id at this owner.
- *By row*: a group is a distinct row, which travels once, with weight 1. The core adds the row to
  each sample that has it, and sums the gradients of the row over its samples.

The core keeps the *links* of each owner, int32: `m` of all features of the plan, then the group and
the position of each link. Groups count on from feature to feature; positions ascend. If the plan
has weighted features, the bits of the weight of each link follow. The core also keeps the
*scales*: for each sample of each feature with combiner mean or sqrtn the factor of its sum.

For example, 2 samples with the ids 5, 7 and 5 of one owner have 2 groups either way. So they are
grouped by sample: rows 5 7 5, groups 0 0 1, links 0-0 and 1-1. With the ids 5 and 5 they have the
one group of row 5, and the links 0-0 and 0-1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from ..core.partition import STRATEGIES
from ..core.plan import Plan
from ..native import library
from ..native.plan_attributes import COMBINERS
from ..ops.ids import IdBatch


class Split(NamedTuple):
    """The ids of one core and step, split by owners.

    Attributes:
      messages: to each owner, see above.
      links: of each owner.
      scales: float32, see above.
    """

    messages: list[tf.Tensor]
    links: list[tf.Tensor]
    scales: tf.Tensor


def split(plan: Plan, batch: Mapping[str, IdBatch], num_owners: int) -> Split:
    """Splits the ids of one core; refuses ids beyond a table."""
    features = plan.features_by_width()
    own = [batch[feature.name] for feature in features]
    messages, links, scales = library.load().ete_split(
        samples=[one.samples for one in own], ids=[one.ids for one in own],
        weights=[tf.ones_like(one.ids, tf.float32) if one.weights is None else one.weights
                 for feature, one in zip(features, own) if feature.weight_feature],
        H=num_owners, **_attributes(plan))
    return Split([_vector(each) for each in messages], [_vector(each) for each in links],
                 _vector(scales))


def merge(plan: Plan, sums: Sequence[tf.Tensor], links: Sequence[tf.Tensor], scales: tf.Tensor
          ) -> dict[str, tf.Tensor]:
    """Returns the activations of a core: the sums of owners, added in their order, then scaled."""
    merged = library.load().ete_merge(
        sums=sums, links=links, scales=scales, F=len(plan.features), **_attributes(plan))
    return {feature.name: tf.reshape(one, plan.output_shape(feature))
            for feature, one in zip(plan.features_by_width(), merged)}


def spread(plan: Plan, gradients: Mapping[str, tf.Tensor], links: Sequence[tf.Tensor],
           scales: tf.Tensor) -> list[tf.Tensor]:
    """Returns for each owner the gradients of the activations of a core, scaled and flat."""
    return [_vector(each) for each in library.load().ete_spread(
        gradients=[gradients[feature.name] for feature in plan.features_by_width()],
        links=links, scales=scales, **_attributes(plan))]


def _vector(tensor: tf.Tensor) -> tf.Tensor:
    """Tells TensorFlow that a tensor is a vector, so that it can be packed with others."""
    tensor.set_shape([None])
    return tensor


def _attributes(plan: Plan) -> dict[str, Any]:
    """Returns the attributes of the operations; those count their lists themselves.

    `feature_...` are in exchange order, `table_...` in the order of the plan.
    """
    features = plan.features_by_width()
    return {
        'table_names': [table.name for table in plan.tables],
        'table_rows': [table.vocabulary_size for table in plan.tables],
        'table_widths': [table.dimension for table in plan.tables],
        'table_combiners': [COMBINERS[table.combiner] for table in plan.tables],
        'feature_names': [feature.name for feature in features],
        'feature_tables': [plan.table_index(feature.table) for feature in features],
        'feature_samples': [plan.num_samples(feature) for feature in features],
        'feature_weighted': [int(bool(feature.weight_feature)) for feature in features],
        'num_hosts': plan.topology.num_hosts,
        'strategy': STRATEGIES.index(plan.strategy)}
