"""Restores tables whose rows a checkpoint holds in the order of hosts into the order of ids.

A graph without the embedding engine reads row `i` of a variable for id `i`. The rows of a `mod`
table are stored host by host. Here they are read host by host, and put between those of the other
hosts: beside the table itself only the rows of one host are held, twice while TensorFlow reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.partition import Partition
from ..errors import IncompatibleCheckpointError, Problem
from .manifest import StoredTable


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
    """The rows of one variable, and the operation that restores them."""

    def __init__(self, name: str, variable: tf.Variable, stored: StoredTable):
        if variable.shape.as_list() != [stored.rows, stored.width]:
            raise IncompatibleCheckpointError(Problem(
                'E609', f'table "{name}"', 'it must be one whole variable of '
                f'{[stored.rows, stored.width]} to get mod rows of {stored.hosts} hosts in the '
                'order of ids', f'a variable of {variable.shape.as_list()}',
                'Use the sizes it was trained with, and no partitioner.'))
        self._stored = stored
        kind = variable.dtype.base_dtype
        with tf.name_scope('rows_in_order_of_ids'):
            self._prefix = tf.placeholder(tf.string, [])
            self._slices = tf.placeholder(tf.string, [None])
            self._ranges = tf.placeholder(tf.int32, [None, 3])

            def add_rows_of(host: tf.Tensor, table: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                rows, = tf.raw_ops.RestoreV2(
                    prefix=self._prefix, tensor_names=[name], dtypes=[kind],
                    shape_and_slices=self._slices[host:host + 1])
                begin, end, step = tf.split(self._ranges[host], 3)
                return host + 1, tf.raw_ops.TensorStridedSliceUpdate(
                    input=table, begin=begin, end=end, strides=step, value=rows)

            # In a tensor, not by writes to parts of the variable: after one of these, TensorFlow
            # copies it whenever it is read, as to save it.
            _, table = tf.while_loop(
                lambda host, _: host < tf.size(self._slices), add_rows_of,
                [0, tf.raw_ops.Empty(shape=[stored.rows, stored.width], dtype=kind)],
                shape_invariants=[tf.TensorShape([]), variable.shape], parallel_iterations=1,
                back_prop=False)
            self._clear, self._write = tf.no_op(), tf.no_op()
            if hasattr(variable, 'handle'):
                nothing = tf.placeholder_with_default(tf.zeros([0], kind), None)
                self._clear, self._write = (
                    tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)
                    for value in (nothing, table))
            else:
                self._write = tf.assign(variable, table).op

    def restore(self, session: tf.Session, checkpoint: str) -> None:
        """Overwrites every row, host by host."""
        stored = self._stored
        partition = Partition(strategy=stored.strategy, vocabulary_size=stored.rows,
                              num_hosts=stored.hosts)
        slices, ranges = [], []
        for host in range(min(stored.hosts, stored.rows)):
            ids = partition.ids_on(host)  # Evenly spaced.
            ranges.append([ids[0], ids[-1] + 1, ids[1] - ids[0] if len(ids) > 1 else 1])
            slices.append(f'{stored.rows} {stored.width} {partition.offset_of(host)},'
                          f'{len(ids)}:-')
        session.run(self._clear)
        session.run(self._write, {
            self._prefix: checkpoint, self._slices: slices, self._ranges: ranges})
