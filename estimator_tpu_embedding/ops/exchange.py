"""Splits ids by the owners of their rows, adds the sums of owners, and spreads gradients to them.

These are the messages between a core and an owner, with TensorFlow's own operations. `F` counts
the features of the owner, in exchange order (see `core/exchange.py`):

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
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from ..core.exchange import Exchange
from ..core.plan import Plan
from .grouping import Groups, counts_of
from .ids import IdBatch


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


class _Links(NamedTuple):
    """The links of one owner for the features of one width.

    Attributes:
      groups: int32 `[e]`, from 0 on.
      positions: int32 `[e]`, from 0 on.
      weights: float32 `[e, 1]`, or `None` if all are 1.
      count: the number of groups, an int32 scalar.
    """

    groups: tf.Tensor
    positions: tf.Tensor
    weights: tf.Tensor | None
    count: tf.Tensor


def split(exchange: Exchange, batch: Mapping[str, IdBatch]) -> Split:
    """Splits the ids of one core; those of each feature by ascending samples."""
    own = [batch[feature.name] for feature in exchange.features]
    located = [exchange.plan.partition(feature.table).locate(one.ids, tf.maximum)
               for feature, one in zip(exchange.features, own)]
    hosts = tf.concat([hosts for hosts, _ in located], 0)
    rows = tf.concat([rows for _, rows in located], 0)
    places = tf.concat([one.samples + begin for one, begin in zip(own, exchange.bounds)], 0)
    weights = tf.concat([weights_of(one) for one in own], 0) if exchange.is_weighted else None
    messages, links = [], []
    for host in exchange.owners:
        here = tf.where(tf.equal(hosts, host))[:, 0]
        groups = Groups(exchange, tf.gather(rows, here), tf.gather(places, here),
                        None if weights is None else tf.gather(weights, here))
        messages.append(groups.message(host))
        links.append(groups.links())
    return Split(messages, links, _scales(exchange, own))


def weights_of(batch: IdBatch) -> tf.Tensor:
    """Returns the weight of each id: 1 in a batch without weights."""
    return tf.ones_like(batch.ids, tf.float32) if batch.weights is None else batch.weights


def _scales(exchange: Exchange, own: Sequence[IdBatch]) -> tf.Tensor:
    scales = [tf.zeros([0])]
    for number, (feature, batch) in enumerate(zip(exchange.features, own)):
        if not exchange.is_scaled(number):
            continue
        weights = weights_of(batch)
        is_mean = exchange.plan.table(feature.table).combiner == 'mean'
        sums = tf.math.unsorted_segment_sum(
            weights if is_mean else tf.square(weights), batch.samples, exchange.samples[number])
        scales.append(tf.math.divide_no_nan(1.0, sums if is_mean else tf.sqrt(sums)))
    return tf.concat(scales, 0)


def merge(exchange: Exchange, sums: Sequence[tf.Tensor], links: Sequence[tf.Tensor],
          scales: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the activations of a core: the sums of owners, added in their order, then scaled.

    Args:
      exchange: of the plan.
      sums: of each owner.
      links: of each owner.
      scales: of the core.

    Returns:
      By feature float32 of `plan.output_shape(feature)`.
    """
    pieces = [_by_width(exchange, one) for one in links]
    values = [tf.split(one, [of_width.count * width.width for of_width, width in zip(
        piece, exchange.widths)], num=len(piece)) for one, piece in zip(sums, pieces)]
    factors = dict(_scales_by_number(exchange, scales))
    activations = {}
    for level, width in enumerate(exchange.widths):
        whole = tf.zeros([width.end - width.begin, width.width])
        for of_owner, piece in zip(values, pieces):
            linked = tf.gather(tf.reshape(of_owner[level], [-1, width.width]), piece[level].groups)
            whole = tf.tensor_scatter_nd_add(
                whole, piece[level].positions[:, tf.newaxis], _weighted(linked, piece[level]))
        parts = tf.split(whole, exchange.samples[width.first:width.stop])
        for number, part in enumerate(parts, width.first):
            feature = exchange.features[number]
            scaled = part if number not in factors else part * factors[number]
            activations[feature.name] = tf.reshape(
                scaled, exchange.plan.output_shape(feature))
    return activations


def spread(exchange: Exchange, gradients: Mapping[str, tf.Tensor],
           links: Sequence[tf.Tensor], scales: tf.Tensor) -> list[tf.Tensor]:
    """Returns for each owner the gradients of the activations of a core, scaled and flat."""
    factors = dict(_scales_by_number(exchange, scales))
    wholes = []
    for width in exchange.widths:
        parts = [tf.reshape(gradients[exchange.features[number].name], [-1, width.width])
                 for number in range(width.first, width.stop)]
        wholes.append(tf.concat([
            part if number not in factors else part * factors[number]
            for number, part in enumerate(parts, width.first)], 0))
    return [tf.concat([
        tf.reshape(tf.math.unsorted_segment_sum(
            _weighted(tf.gather(whole, one.positions), one), one.groups, one.count), [-1])
        for whole, one in zip(wholes, _by_width(exchange, own))], 0) for own in links]


def _weighted(rows: tf.Tensor, links: _Links) -> tf.Tensor:
    return rows if links.weights is None else rows * links.weights


def _scales_by_number(exchange: Exchange, scales: tf.Tensor) -> list[tuple[int, tf.Tensor]]:
    """Returns the number of each feature that is scaled, and its factors, `[samples, 1]`."""
    scaled = [number for number in range(len(exchange.features)) if exchange.is_scaled(number)]
    parts = tf.split(scales, [exchange.samples[number] for number in scaled]) if scaled else []
    return [(number, part[:, tf.newaxis]) for number, part in zip(scaled, parts)]


def _parts_of(exchange: Exchange, links: tf.Tensor) -> list[tf.Tensor]:
    """Returns the counts of groups, then groups, positions and the bits of weights, if any."""
    count = len(exchange.features)
    return [links[:count],
            *tf.split(links[count:], 3 if exchange.is_weighted else 2)]


def _by_width(exchange: Exchange, links: tf.Tensor) -> list[_Links]:
    """Returns the links of an owner for each width."""
    counts, groups, positions, *bits = _parts_of(exchange, links)
    ends = tf.searchsorted(positions, tf.constant(
        [width.end for width in exchange.widths], tf.int32))
    sizes = ends - tf.concat([[0], ends[:-1]], 0)
    parts = [tf.split(one, sizes, num=len(exchange.widths))
             for one in (groups, positions, *[tf.bitcast(one, tf.float32) for one in bits])]
    found = []
    before: tf.Tensor | int = 0
    for width, (own, places, *weights) in zip(exchange.widths, zip(*parts)):
        count = tf.reduce_sum(counts[width.first:width.stop])
        found.append(_Links(own - before, places - width.begin,
                            weights[0][:, tf.newaxis] if weights else None, count))
        before += count
    return found


def of_core(exchange: Exchange, owner: Plan, batches: Mapping[str, IdBatch],
            links: tf.Tensor) -> dict[str, IdBatch]:
    """Returns the ids of an owner's message with the ids and samples that the core knows.

    Args:
      exchange: of the plan.
      owner: the plan of the owner.
      batches: rows and groups, by feature.
      links: of the owner.
    """
    counts, groups, positions, *bits = _parts_of(exchange, links)
    sizes, _ = counts_of(exchange, positions)
    first = tf.cumsum(counts, exclusive=True)
    parts = [tf.split(one, sizes, num=len(exchange.features))
             for one in (groups, positions, *[tf.bitcast(one, tf.float32) for one in bits])]
    found = {}
    for number, feature in enumerate(exchange.features):
        if feature.name not in batches:
            continue
        batch = batches[feature.name]
        own, places, *weights = [one[number] for one in parts]
        # Grouped by row, id `i` is of group `i`; grouped by sample, link `i` is.
        by_row = tf.equal(tf.size(batch.ids), counts[number])
        ids, links_at = tf.cond(
            by_row, lambda own=own, number=number: (own - first[number], tf.range(tf.size(own))),
            lambda batch=batch: (tf.range(tf.size(batch.ids)), batch.samples))
        start, stride = owner.ids_of_rows(feature.table)
        found[feature.name] = batch._replace(
            samples=tf.gather(places, links_at) - exchange.bounds[number],
            ids=tf.gather(batch.ids, ids) * stride + start,
            weights=None if batch.weights is None else (
                tf.gather(batch.weights, ids) * tf.gather(weights[0], links_at)))
    return found


def joined(batches: Sequence[IdBatch]) -> IdBatch:
    """Returns the ids of one feature from all owners, by ascending samples."""
    samples = tf.concat([batch.samples for batch in batches], 0)
    order = tf.argsort(samples, stable=True)
    weights = [batch.weights for batch in batches if batch.weights is not None]
    return IdBatch(
        tf.gather(samples, order), tf.gather(tf.concat([batch.ids for batch in batches], 0), order),
        batches[0].num_samples, tf.gather(tf.concat(weights, 0), order) if weights else None)
