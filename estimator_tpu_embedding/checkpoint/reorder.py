"""Restores tables whose rows a checkpoint holds in the order of hosts into the order of ids.

A graph without the embedding engine reads row `i` of a variable for id `i`. The rows of a `mod`
table are stored host by host; here they are read and written a slice at a time, so that no
second copy of a table is ever held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.partition import Partition
from ..errors import IncompatibleCheckpointError, Problem
from .manifest import StoredTable

SLICE_BYTES = 64 * 2**20


def saver_of_all() -> tf.train.Saver:
    """The saver that an Estimator makes for a graph whose scaffold has none."""
    return tf.train.Saver(sharded=True, allow_empty=True, defer_build=True)


class ReorderingSaver:
    """Another saver, which restores some tables in the order of ids.

    Its other methods are those of the saver.
    """

    def __init__(self, saver: tf.train.Saver, tables: Mapping[str, StoredTable]):
        """Wraps `saver`.

        Args:
          saver: of the variables of a graph without the engine.
          tables: those that the checkpoint to restore does not hold in the order of ids, by
            variable name.
        """
        self._saver = saver
        self._stored = {name: table for table_name, table in tables.items() for name in (
            table_name, *[f'{table_name}/{slot}' for slot in table.slots])}
        self._rows: list[_Rows] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def build(self) -> None:
        """Makes all operations in the default graph, unless they are there."""
        self._saver.build()
        if self._rows is None:
            self._rows = [
                _Rows(name, variable, self._stored[name]) for name, variable in (
                    (_tf.full_name_and_shape(variable)[0], variable)
                    for variable in tf.global_variables()) if name in self._stored]

    def restore(self, session: tf.Session, save_path: str) -> None:
        """Restores all variables from the checkpoint `save_path`.

        Raises:
          IncompatibleCheckpointError: if a table is another one here than there.
        """
        with session.graph.as_default():
            self.build()
        self._saver.restore(session, save_path)
        for rows in self._rows or []:
            rows.restore(session, save_path)


class _Rows:
    """The rows of one variable, and the operation that restores some of them."""

    def __init__(self, name: str, variable: tf.Variable, stored: StoredTable):
        if variable.shape.as_list() != [stored.rows, stored.width]:
            raise IncompatibleCheckpointError(Problem(
                'E609', f'table "{name}"', 'it must be one whole variable of '
                f'{[stored.rows, stored.width]} to get mod rows of {stored.hosts} hosts in the '
                'order of ids', f'a variable of {variable.shape.as_list()}',
                'Use the sizes it was trained with, and no partitioner.'))
        self._stored = stored
        kind = variable.dtype.base_dtype
        self._step = max(1, SLICE_BYTES // (stored.width * kind.size))
        with tf.name_scope('rows_in_order_of_ids'):
            self._prefix = tf.placeholder(tf.string, [])
            self._slice = tf.placeholder(tf.string, [1])
            self._ids = tf.placeholder(tf.int64, [None])
            rows, = tf.raw_ops.RestoreV2(prefix=self._prefix, tensor_names=[name],
                                         shape_and_slices=self._slice, dtypes=[kind])
            self._write = tf.scatter_update(
                variable, self._ids, tf.ensure_shape(rows, [None, stored.width])).op

    def restore(self, session: tf.Session, checkpoint: str) -> None:
        """Overwrites every row, a slice at a time."""
        stored = self._stored
        for first, ids in self._slices():
            session.run(self._write, {
                self._prefix: checkpoint, self._ids: ids,
                self._slice: [f'{stored.rows} {stored.width} {first},{len(ids)}:-']})

    def _slices(self) -> Iterator[tuple[int, np.ndarray]]:
        """The stored row at which each slice begins, and the ids of its rows."""
        stored = self._stored
        partition = Partition(strategy=stored.strategy, vocabulary_size=stored.rows,
                              num_hosts=stored.hosts)
        for host in range(stored.hosts):
            ids = partition.ids_on(host)
            for start in range(0, len(ids), self._step):
                yield partition.offset_of(host) + start, ids[start:start + self._step]
