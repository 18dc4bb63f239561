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
        with tf.name_scope('restored_rows'):
            self._parts = [_Part(part, is_whole=source.is_whole) for part in parts]

    def restore(self, session: tf.Session, checkpoint: str) -> None:
        """Writes every row that a checkpoint stores to its place."""
        source = self._source
        for part in self._parts:
            session.run(part.begin)
        for first, rows in Bundle.open(checkpoint).chunks(source.tensor, _CHUNK_BYTES):
            ids = source.stored.ids_of_stored_rows(first, first + len(rows))
            hosts, places = source.here.locate(ids, np.maximum)
            for host in _distinct(hosts):
                chosen = hosts == host
                part = self._parts[host]
                session.run(part.write, {part.places: places[chosen], part.values: rows[chosen]})
        session.run([part.end for part in self._parts if part.end is not None])


class _Part:
    """The operations that fill a part of a variable, on the device of that part.

    Attributes:
      begin: gives it a buffer of its own.
      places: feeds the numbers of rows.
      values: feeds the rows.
      write: writes them.
      end: ends the mode in which TensorFlow copies all of a variable whenever it is read as a
        whole, after rows of it were written; `None` if it has no such mode.
    """

    def __init__(self, part: tf.Variable, *, is_whole: bool):
        """Makes them in the default graph; values from before matter unless `is_whole`."""
        kind, (rows, width) = part.dtype.base_dtype, part.shape.as_list()
        with tf.device(part.device):
            self.places = tf.placeholder(tf.int64, [None])
            self.values = tf.placeholder(kind, [None, width])
            self.begin, self.end = part.initializer, None
            if is_whole:
                empty = tf.raw_ops.Empty(shape=[rows, width], dtype=kind)
                self.begin = part.assign(empty, read_value=False)
            if hasattr(part, 'handle'):
                self.write = tf.raw_ops.ResourceScatterUpdate(
                    resource=part.handle, indices=self.places, updates=self.values)
                self.end = tf.raw_ops.DisableCopyOnRead(resource=part.handle)
            else:
                self.write = tf.scatter_update(part, self.places, self.values).op


def _distinct(hosts: np.ndarray) -> Iterable[int]:
    found: list[int] = np.unique(hosts).tolist()
    return found
