"""The variable of a table in a graph; its value is memory of the engine.

Between two steps the value of such a variable is a tensor over the memory of the engine, so no
second copy exists. But the engine writes there, and TensorFlow hands out the values of variables
by reference, even as NumPy arrays. So a read returns a copy. A Saver gets a view instead, and the
engine does not write until the view is freed. An assignment, or a write of some rows, gives the
variable a buffer of TensorFlow's. At the next run the engine takes that buffer's values over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from . import first_values, library

_ResourceVariable: Any = _tf.resource_variable()


class TableVariable(_ResourceVariable):
    """A part of a table, float32 `[rows, width]`. Used as any other variable.

    Attributes:
      number: the number of the part in the engine.
      begins_in_engine: whether its initializer writes into the memory of the engine, piece by
        piece, and makes the variable a view of that.
      in_pieces: whether others should write so, too.
    """

    _graph_element: tf.Tensor

    def __init__(self, *, engine: tf.Tensor, part: int, in_pieces: bool = False, **kwargs: Any):
        """Creates it in the default graph.

        Args:
          engine: the handle of the engine.
          part: its number in the engine.
          in_pieces: whether the engine may have it on a disk.
          **kwargs: the arguments that variable creators are given.
        """
        self._ete_engine = engine
        self.number, self.in_pieces, self.begins_in_engine = part, in_pieces, False
        if in_pieces and callable(kwargs.get('initial_value')):
            kwargs['initial_value'] = functools.partial(
                self._first_value, kwargs['initial_value'])
        super().__init__(**kwargs)
        plain_read = self._graph_element
        with tf.init_scope(), tf.name_scope(f'{self.op.name}/Read/'):
            self._graph_element = self._read_variable_op()
            # From a tensor in a proto, TensorFlow follows first inputs until it is at a plain read.
            _, self._in_proto = tf.identity_n([plain_read, self._graph_element])

    def _first_value(self, initial_value: Callable[[], tf.Tensor]) -> tf.Tensor:
        whole = tf.convert_to_tensor(initial_value())
        piece = first_values.piece_of(whole)
        if piece is None or not whole.shape.is_fully_defined() or whole.shape.rank != 2:
            return whole
        self.begins_in_engine = True
        rows, width = whole.shape.as_list()
        filled = first_values.written(self.write_rows, (rows, width), piece,
                                      self._ete_engine.device)
        with tf.control_dependencies([filled]):
            return tf.ensure_shape(self.memory(), whole.shape)

    def memory(self) -> tf.Tensor:
        """Returns a view of the engine's memory, to be the value of the variable."""
        return library.load().ete_memory(engine=self._ete_engine, part=self.number)

    def write_rows(self, rows: tf.Tensor, values: tf.Tensor) -> tf.Operation:
        """Writes into the memory of the engine: int64 `[n]` and float32 `[n, width]`."""
        return library.load().ete_write_rows(engine=self._ete_engine, rows=rows, values=values,
                                             part=self.number)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Describes it, for `.meta` files, as a variable with a cached value.

        An imported one is a plain variable, whose plain reads share the memory of the engine. Its
        cached value is a copy, and everybody who uses the variable as a tensor gets that.
        """
        self._cached_value = self._in_proto
        try:
            return super().to_proto(export_scope)
        finally:
            self._cached_value = None

    def _read_variable_op(self, no_copy: bool = False) -> tf.Tensor:
        return library.load().ete_read(
            handle=self.handle, engine=self._ete_engine,
            value=in_place(self.handle) if no_copy else super()._read_variable_op(),
            part=self.number, copy=not no_copy)

    def sparse_read(self, indices: Any, name: str | None = None) -> tf.Tensor:
        """Returns rows: float32 `[..., width]`, for integers of any shape. See `tf.gather`."""
        with tf.name_scope(name, 'Gather'):
            rows = tf.cast(indices, tf.int64)
            value = in_place(self.handle)
            found = library.load().ete_read_rows(
                engine=self._ete_engine, value=value, rows=rows, part=self.number)
            return tf.ensure_shape(found, rows.shape.concatenate(self.shape[1:]))

    def gather_nd(self, indices: Any, name: str | None = None) -> tf.Tensor:
        """Returns elements or rows, see `tf.gather_nd`."""
        return tf.gather_nd(self.read_value(), indices, name=name)


def is_of_engine(variable: Any) -> bool:
    """Returns whether a saveable object is such a variable, or the tensor of its read."""
    return isinstance(variable, TableVariable) or (
        isinstance(variable, tf.Tensor) and variable.op.type == 'EteRead')


def in_place(handle: tf.Tensor) -> tf.Tensor:
    """Returns the value of a variable without a copy; the caller must neither keep nor write it."""
    with tf.control_dependencies([tf.raw_ops.DisableCopyOnRead(resource=handle)]):
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
