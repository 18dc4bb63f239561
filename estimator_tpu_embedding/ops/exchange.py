"""Splits ids by the owners of their rows, adds the sums of owners, and spreads gradients to them.

These are the messages between a core and an owner, with TensorFlow's own operations. `F` counts
the features of the owner, in exchange order (see `core/exchange.py`):

- *ids*, int32: `n[F]`, `m[F]`, then the row of each id, the compact sample of each id, and the bits
  of the weights of weighted features. `n` counts ids. `m` counts the samples with an id at this
  owner; these samples are renumbered from 0 on, and only they take part in what follows.
- *sums* and *gradients*, float32: for each feature `[m, D]`, one after another.

The core keeps the *positions* of the samples of each owner, int32 ascending. It also keeps the
*scales*: for each sample of each feature with combiner mean or sqrtn the factor of its sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from ..core.exchange import Exchange
from ..core.plan import Plan
from .ids import IdBatch


class Split(NamedTuple):
    """The ids of one core and step, split by owners.

    Attributes:
      messages: to each owner, see above.
      positions: of the samples of each owner.
      scales: float32, see above.
    """

    messages: list[tf.Tensor]
    positions: list[tf.Tensor]
    scales: tf.Tensor


def split(exchange: Exchange, batch: Mapping[str, IdBatch]) -> Split:
    """Splits the ids of one core; those of each feature by ascending samples."""
    own = [batch[feature.name] for feature in exchange.features]
    located = [exchange.plan.partition(feature.table).locate(one.ids, tf.maximum)
               for feature, one in zip(exchange.features, own)]
    hosts = tf.concat([hosts for hosts, _ in located], 0)
    rows = tf.concat([tf.cast(rows, tf.int32) for _, rows in located], 0)
    places = tf.concat([one.samples + begin for one, begin in zip(own, exchange.bounds)], 0)
    messages, positions = [], []
    for host in exchange.owners:
        here = tf.where(tf.equal(hosts, host))[:, 0]
        weights = [tf.boolean_mask(weights_of(own[number]), tf.equal(located[number][0], host))
                   for number in exchange.numbers_at(host)
                   if exchange.features[number].weight_feature]
        message, kept = _message(exchange, host, tf.gather(rows, here), tf.gather(places, here),
                                 weights)
        messages.append(message)
        positions.append(kept)
    return Split(messages, positions, _scales(exchange, own))


def _message(exchange: Exchange, host: int, rows: tf.Tensor, places: tf.Tensor,
             weights: Sequence[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the message to one owner, and the positions of its samples."""
    positions, compact = tf.unique(places)
    ids_before, samples_before = (_counts_before(exchange, each) for each in (places, positions))
    ids = ids_before[1:] - ids_before[:-1]
    compact -= tf.repeat(samples_before[:-1], ids)
    numbers = tf.constant(exchange.numbers_at(host), tf.int32)
    counts = [tf.gather(ids, numbers),
              tf.gather(samples_before[1:] - samples_before[:-1], numbers)]
    return tf.concat([*counts, rows, compact,
                      *[tf.bitcast(each, tf.int32) for each in weights]], 0), positions


def _counts_before(exchange: Exchange, places: tf.Tensor) -> tf.Tensor:
    """Returns how many of some ascending positions lie before each bound of a feature."""
    return tf.searchsorted(places, tf.constant(exchange.bounds, tf.int32))


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


def read_message(owner: Plan, message: tf.Tensor) -> tuple[dict[str, IdBatch], tf.Tensor]:
    """Returns the ids of a message by feature, and int32 `[F]`, the number of samples of each."""
    count = len(owner.features)
    ids, lengths = message[:count], message[count:2 * count]
    total = tf.reduce_sum(ids)
    weighted = [number for number, feature in enumerate(owner.features)
                if feature.weight_feature]
    rows, samples, weights = tf.split(message[2 * count:], tf.stack([
        total, total, tf.reduce_sum(tf.gather(ids, tf.constant(weighted, tf.int32)))]))
    of_rows = tf.split(tf.cast(rows, tf.int64), ids, num=count)
    of_samples = tf.split(samples, ids, num=count)
    of_weights = dict(zip(weighted, tf.split(
        tf.bitcast(weights, tf.float32), tf.gather(ids, weighted), num=len(weighted))
        if weighted else []))
    return {feature.name: IdBatch(
        tf.ensure_shape(of_samples[number], [None]), tf.ensure_shape(of_rows[number], [None]),
        owner.num_samples(feature), of_weights.get(number))
        for number, feature in enumerate(owner.features)}, lengths


def write_sums(owner: Plan, activations: Mapping[str, tf.Tensor], lengths: tf.Tensor
               ) -> tf.Tensor:
    """Returns the sums that an owner sends: the first activations of each feature, flat."""
    return tf.concat([tf.reshape(activations[feature.name][:lengths[number]], [-1])
                      for number, feature in enumerate(owner.features)], 0)


def read_gradients(owner: Plan, gradients: tf.Tensor, lengths: tf.Tensor
                   ) -> dict[str, tf.Tensor]:
    """Returns the gradients of a core by feature; samples without ids here have zeros."""
    widths = [owner.table(feature.table).dimension for feature in owner.features]
    parts = tf.split(gradients, lengths * tf.constant(widths), num=len(widths))
    padded = {}
    for number, (feature, part) in enumerate(zip(owner.features, parts)):
        samples = owner.num_samples(feature)
        whole = tf.pad(tf.reshape(part, [-1, widths[number]]),
                       [[0, samples - lengths[number]], [0, 0]])
        padded[feature.name] = tf.ensure_shape(whole, [samples, widths[number]])
    return padded


def merge(exchange: Exchange, sums: Sequence[tf.Tensor], positions: Sequence[tf.Tensor],
          scales: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the activations of a core: the sums of owners, added in their order, then scaled.

    Args:
      exchange: of the plan.
      sums: of each owner.
      positions: of the samples of each owner.
      scales: of the core.

    Returns:
      By feature float32 of `plan.output_shape(feature)`.
    """
    pieces = [_by_width(exchange, *each) for each in zip(sums, positions)]
    factors = dict(_scales_by_number(exchange, scales))
    activations = {}
    for level, width in enumerate(exchange.widths):
        whole = tf.zeros([width.end - width.begin, width.width])
        for of_owner in pieces:
            at, values = of_owner[level]
            whole = tf.tensor_scatter_nd_add(whole, at[:, tf.newaxis], values)
        parts = tf.split(whole, exchange.samples[width.first:width.stop])
        for number, part in enumerate(parts, width.first):
            feature = exchange.features[number]
            scaled = part if number not in factors else part * factors[number]
            activations[feature.name] = tf.reshape(
                scaled, exchange.plan.output_shape(feature))
    return activations


def spread(exchange: Exchange, gradients: Mapping[str, tf.Tensor],
           positions: Sequence[tf.Tensor], scales: tf.Tensor) -> list[tf.Tensor]:
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
        tf.reshape(tf.gather(whole, at), [-1])
        for whole, at in zip(wholes, _positions_by_width(exchange, own))], 0)
        for own in positions]


def _scales_by_number(exchange: Exchange, scales: tf.Tensor) -> list[tuple[int, tf.Tensor]]:
    """Returns the number of each feature that is scaled, and its factors, `[samples, 1]`."""
    scaled = [number for number in range(len(exchange.features)) if exchange.is_scaled(number)]
    parts = tf.split(scales, [exchange.samples[number] for number in scaled]) if scaled else []
    return [(number, part[:, tf.newaxis]) for number, part in zip(scaled, parts)]


def _positions_by_width(exchange: Exchange, positions: tf.Tensor) -> list[tf.Tensor]:
    """Splits the positions of the samples of an owner by width; each counts from 0."""
    if len(exchange.widths) == 1:
        return [positions]
    ends = tf.searchsorted(positions, tf.constant(
        [width.end for width in exchange.widths], tf.int32))
    parts = tf.split(positions, ends - tf.concat([[0], ends[:-1]], 0), num=len(exchange.widths))
    return [part - width.begin for part, width in zip(parts, exchange.widths)]


def _by_width(exchange: Exchange, sums: tf.Tensor, positions: tf.Tensor
              ) -> list[tuple[tf.Tensor, tf.Tensor]]:
    """Returns for each width the positions of an owner's samples, and their sums `[m, D]`."""
    places = _positions_by_width(exchange, positions)
    sizes = tf.stack([tf.size(at) * width.width
                      for at, width in zip(places, exchange.widths)])
    parts = tf.split(sums, sizes, num=len(exchange.widths))
    return [(at, tf.reshape(part, [-1, width.width]))
            for at, part, width in zip(places, parts, exchange.widths)]


def of_core(exchange: Exchange, owner: Plan, batches: Mapping[str, IdBatch],
            positions: tf.Tensor) -> dict[str, IdBatch]:
    """Returns the ids of an owner's message with the ids and samples that the core knows.

    Args:
      exchange: of the plan.
      owner: the plan of the owner.
      batches: rows and compact samples, by feature.
      positions: of the samples of the owner.
    """
    begins = _counts_before(exchange, positions)
    found = {}
    for number, feature in enumerate(exchange.features):
        if feature.name not in batches:
            continue
        batch = batches[feature.name]
        first, stride = owner.ids_of_rows(feature.table)
        found[feature.name] = batch._replace(
            samples=tf.gather(positions, batch.samples + begins[number])
            - exchange.bounds[number], ids=batch.ids * stride + first)
    return found


def joined(batches: Sequence[IdBatch]) -> IdBatch:
    """Returns the ids of one feature from all owners, by ascending samples."""
    samples = tf.concat([batch.samples for batch in batches], 0)
    order = tf.argsort(samples, stable=True)
    weights = [batch.weights for batch in batches if batch.weights is not None]
    return IdBatch(
        tf.gather(samples, order), tf.gather(tf.concat([batch.ids for batch in batches], 0), order),
        batches[0].num_samples, tf.gather(tf.concat(weights, 0), order) if weights else None)
