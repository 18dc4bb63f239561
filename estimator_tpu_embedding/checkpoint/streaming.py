"""Writes the rows of a stored table into the parts of a variable, whatever order they are in.

Rows are read in the order in which they are stored, a few MB at a time. Each goes to the part that
it belongs to. So only a few such chunks are in memory beside the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import IncompatibleCheckpointError, Problem
from .bundle import Bundle
from .layout import Source

_CHUNK_BYTES = 2**22
"""Bytes that are read at a time; about five copies exist until they are in their places."""


def variables_by_name() -> dict[str, tuple[list[int | None] | None, list[tf.Variable]]]:
    """Returns full shape and parts of each variable of the default graph, by checkpoint name."""
    found: dict[str, tuple[list[int | None] | None, list[tf.Variable]]] = {}
    for variable in tf.global_variables():
        name, shape = _tf.full_name_and_shape(variable)
        found.setdefault(name, (shape, []))[1].append(variable)
    return found


class StreamedRows:
    """The parts of one variable, and the operations that fill them."""

    def __init__(self, name: str, parts: Sequence[tf.Variable], source: Source):
        """Makes the operations in the default graph.

        Args:
          name: of the variable.
          parts: of it, by host.
          source: of its rows.

        Raises:
          IncompatibleCheckpointError: E609 if the parts do not have the rows of the hosts.
        """
        here, width = source.here, parts[0].shape.as_list()[-1]
        wanted = [[here.rows_on(host), width] for host in range(len(parts))]
        if [part.shape.as_list() for part in parts] != wanted:
            raise IncompatibleCheckpointError(Problem(
                'E609', f'table "{name}"', 'its parts must be those of tf.fixed_size_partitioner '
                'for rows to be put into them',
                f'parts of {[part.shape.as_list() for part in parts]}', 'Use that one, or none.'))
        self._source = source
        kind = parts[0].dtype.base_dtype
        with tf.name_scope('restored_rows'):
            self._places = tf.placeholder(tf.int64, [None])
            self._values = tf.placeholder(kind, [None, width])
            self._begin = [self._beginning_of(part) for part in parts]
            self._write = [self._writing_to(part) for part in parts]
            # After rows of a variable were written, TensorFlow copies all of it whenever it is
            # read as a whole, until that is switched off.
            self._end = [tf.raw_ops.DisableCopyOnRead(resource=part.handle) for part in parts
                         if hasattr(part, 'handle')]

    def _beginning_of(self, part: tf.Variable) -> tf.Operation:
        """Gives a part a buffer of its own; its values matter only for rows that are not stored."""
        if not self._source.is_whole:
            return part.initializer
        empty = tf.raw_ops.Empty(shape=part.shape.as_list(), dtype=part.dtype.base_dtype)
        return part.assign(empty, read_value=False)

    def _writing_to(self, part: tf.Variable) -> tf.Operation:
        if not hasattr(part, 'handle'):
            return tf.scatter_update(part, self._places, self._values).op
        return tf.raw_ops.ResourceScatterUpdate(
            resource=part.handle, indices=self._places, updates=self._values)

    def restore(self, session: tf.Session, checkpoint: str) -> None:
        """Writes every row that a checkpoint stores to its place."""
        source = self._source
        for operation in self._begin:
            session.run(operation)
        for first, rows in Bundle.open(checkpoint).chunks(source.tensor, _CHUNK_BYTES):
            ids = source.stored.ids_of_stored_rows(first, first + len(rows))
            hosts, places = source.here.locate(ids, np.maximum)
            for host in _distinct(hosts):
                chosen = hosts == host
                session.run(self._write[host], {
                    self._places: places[chosen], self._values: rows[chosen]})
        session.run(self._end)


def _distinct(hosts: np.ndarray) -> Iterable[int]:
    found: list[int] = np.unique(hosts).tolist()
    return found
