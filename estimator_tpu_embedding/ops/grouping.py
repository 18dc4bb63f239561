"""Groups the ids of one core for one owner, by sample or by row: see `exchange.py`."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from ..core.exchange import Exchange

_ROWS = 2**32
"""More than any row number; features times this keep their rows apart."""


class Groups:
    """The ids of one core at one owner, in groups."""

    def __init__(self, exchange: Exchange, rows: tf.Tensor, places: tf.Tensor,
                 weights: tf.Tensor | None):
        """Groups ids, which are in the order of their positions.

        Args:
          exchange: of the plan.
          rows: int64 `[n]`, at the owner.
          places: int32 `[n]`, the position of each id's sample.
          weights: float32 `[n]`, or `None` without weighted features.
        """
        self._exchange, self._rows, self._places = exchange, rows, places
        self._weights = weights
        ids, _ = counts_of(exchange, places)
        self._feature = _repeated(ids)
        self._positions, self._sample = tf.unique(places)
        samples, self._samples_before = counts_of(exchange, self._positions)
        self._distinct, self._row = tf.unique(tf.cast(self._feature, tf.int64) * _ROWS + rows)
        self._of_distinct = tf.cast(self._distinct // _ROWS, tf.int32)
        self._rows_before = tf.searchsorted(self._of_distinct, tf.range(len(exchange.features) + 1))
        distinct = self._rows_before[1:] - self._rows_before[:-1]
        self._by_row = distinct < samples
        self._groups = tf.where(self._by_row, distinct, samples)
        self._ids = tf.where(self._by_row, distinct, ids)

    def message(self, host: int) -> tf.Tensor:
        """Returns the ids for an owner."""
        by_sample = tf.where(~tf.gather(self._by_row, self._feature))[:, 0]
        by_row = tf.where(tf.gather(self._by_row, self._of_distinct))[:, 0]
        feature = [tf.gather(self._feature, by_sample), tf.gather(self._of_distinct, by_row)]
        order = tf.argsort(tf.concat(feature, 0), stable=True)

        def ordered(*parts: tf.Tensor) -> tf.Tensor:
            return tf.gather(tf.concat([tf.cast(part, tf.int32) for part in parts], 0), order)

        numbers = tf.constant(self._exchange.numbers_at(host), tf.int32)
        parts = [tf.gather(self._ids, numbers), tf.gather(self._groups, numbers),
                 ordered(tf.gather(self._rows, by_sample),
                         tf.gather(self._distinct, by_row) % _ROWS),
                 ordered(tf.gather(self._sample, by_sample)
                         - tf.gather(self._samples_before, feature[0]),
                         tf.cast(by_row, tf.int32) - tf.gather(self._rows_before, feature[1]))]
        if self._weights is not None:
            bits = ordered(tf.bitcast(tf.gather(self._weights, by_sample), tf.int32),
                           tf.bitcast(tf.ones_like(by_row, tf.float32), tf.int32))
            is_weighted = tf.constant([bool(feature.weight_feature)
                                       for feature in self._exchange.features])
            parts.append(tf.boolean_mask(bits, tf.gather(is_weighted, ordered(*feature))))
        return tf.concat(parts, 0)

    def links(self) -> tf.Tensor:
        """Returns what the core keeps."""
        first = tf.cumsum(self._groups, exclusive=True)
        of_position = _repeated(self._samples_before[1:] - self._samples_before[:-1])
        by_sample = tf.where(~tf.gather(self._by_row, of_position))[:, 0]
        by_row = tf.where(tf.gather(self._by_row, self._feature))[:, 0]
        feature = [tf.gather(of_position, by_sample), tf.gather(self._feature, by_row)]
        order = tf.argsort(tf.concat(feature, 0), stable=True)
        group = tf.concat([
            tf.cast(by_sample, tf.int32) + tf.gather(first - self._samples_before[:-1],
                                                     feature[0]),
            tf.gather(self._row, by_row) + tf.gather(first - self._rows_before[:-1],
                                                     feature[1])], 0)
        position = tf.concat([tf.gather(self._positions, by_sample),
                              tf.gather(self._places, by_row)], 0)
        parts = [self._groups, tf.gather(group, order), tf.gather(position, order)]
        if self._weights is not None:
            weights = tf.concat([tf.ones_like(by_sample, tf.float32),
                                 tf.gather(self._weights, by_row)], 0)
            parts.append(tf.bitcast(tf.gather(weights, order), tf.int32))
        return tf.concat(parts, 0)


def counts_of(exchange: Exchange, places: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Counts some ascending positions by feature: int32 `[F]`, and `[F + 1]` those before."""
    before = tf.searchsorted(places, tf.constant(exchange.bounds, tf.int32))
    return before[1:] - before[:-1], before


def _repeated(counts: tf.Tensor) -> tf.Tensor:
    """Returns each number in `[0, F)` as often as `counts` says, int32."""
    return tf.repeat(tf.range(tf.size(counts)), counts)
