"""Finds the rows of ids among the variables of the hosts, with TensorFlow's own operations."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf

from ..core.partition import Partition
from ..ops import rows


def route(partition: Partition, parts: int, ids: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Returns for each host the positions of its ids, and for each id its row on its host.

    Args:
      partition: of the table.
      parts: how many hosts hold rows.
      ids: int64 `[n]`.

    Returns:
      A vector int32 of positions in `ids` per host, and int64 `[n]`.
    """
    hosts, local = partition.locate(ids, tf.maximum)
    positions = tf.dynamic_partition(tf.range(tf.size(ids)), tf.cast(hosts, tf.int32), parts)
    return positions, local


def rows_at(partition: Partition, parts: Sequence[tf.Variable], ids: tf.Tensor) -> tf.Tensor:
    """Gathers the rows of ids from all hosts.

    Args:
      partition: of the table.
      parts: the variables of the table or of one of its slots, one per host that holds rows.
      ids: int64 `[n]`.

    Returns:
      float32 `[n, D]`.
    """
    if len(parts) == 1:
        return rows.read(parts[0], ids)
    positions, local = route(partition, len(parts), ids)
    return tf.dynamic_stitch(positions, [
        rows.read(part, tf.gather(local, where)) for part, where in zip(parts, positions)])
