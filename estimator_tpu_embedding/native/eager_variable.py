"""The variable of a table in eager mode and in functions; its value is memory of the engine.

It is the counterpart of `graph_variable.py`, without a session. The variable exists before its
engine. It is a plain variable until an engine is attached, and again after that engine was closed.
No read returns the memory that the engine writes. An eager read is an operation of the engine. A
read in a function consists of TensorFlow's own operations, so a SavedModel of it runs without this
package.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from .. import _tf
from . import library

_ResourceVariable: Any = _tf.resource_variable()

_WRITES = (
    'assign', 'assign_add', 'assign_sub', 'scatter_add', 'scatter_sub', 'scatter_mul',
    'scatter_div', 'scatter_max', 'scatter_min', 'scatter_update', 'batch_scatter_update',
    'scatter_nd_add', 'scatter_nd_sub', 'scatter_nd_update', 'scatter_nd_max', 'scatter_nd_min',
    '_strided_slice_assign')


class _Attachment(NamedTuple):
    engine: tf.Tensor | None
    part: int
    before_read: Callable[[], None]


class EagerTableVariable(_ResourceVariable):
    """The rows or one slot of a table, float32 `[rows, width]`. Used as any other variable.

    It takes the arguments of `tf.Variable`, but it asks no variable creator, so no strategy
    replicates it. Savers write it without a copy, and updates wait for them.

    If a function reads the variable, it gets the value at that place of the program. Such a read
    does not call `before_read`, and ignores an assignment that an engine failed to take over.
    """

    _attachment: _Attachment | None = None

    def attach(self, engine: tf.Tensor | None, part: int, before_read: Callable[[], None]) -> None:
        """Attaches the variable to an engine, which may take its memory over from now on.

        Args:
          engine: the handle of the engine: an eager int64 scalar. `None` for the
            stock engine: the variable stays a plain one, apart from `before_read`.
          part: the number of the part in the engine; the part has the shape of this variable.
          before_read: called before the value is read or written in eager mode, and traced into
            functions that save. It may let the engine make pending updates, but must not use the
            methods of this variable.
        """
        self._attachment = _Attachment(engine, part, before_read)

    def _settle(self) -> None:
        if self._attachment is not None and tf.executing_eagerly():
            self._attachment.before_read()

    def _read_variable_op(self, no_copy: bool = False) -> tf.Tensor:
        if not tf.executing_eagerly():
            value = super()._read_variable_op(no_copy)
            return value if no_copy else self._before_writes(_copy, value)
        self._settle()
        if self._attachment is None or self._attachment.engine is None:
            return super()._read_variable_op(no_copy)
        value = super()._read_variable_op(no_copy=True)
        engine, part, _ = self._attachment
        return library.load().ete_read(
            handle=self.handle, engine=engine, value=value, part=part, copy=not no_copy)

    def numpy(self) -> Any:
        """Returns the value as an array of its own, with a single copy."""
        if not tf.executing_eagerly():
            return super().numpy()
        return self._read_variable_op(no_copy=True).numpy()

    def _copy_trackable_to_cpu(self, object_map: Any) -> None:
        """Copies the value for a background checkpoint, in a function that is traced once."""
        if self._attachment is not None:
            self._attachment.before_read()
        super()._copy_trackable_to_cpu(object_map)

    def _restore_from_tensors(self, restored_tensors: Any) -> Any:
        """Takes the values of a checkpoint, also if a pending update cannot be made."""
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            self._settle()
        return super()._restore_from_tensors(restored_tensors)

    def sparse_read(self, indices: Any, name: str | None = None) -> tf.Tensor:
        """Returns rows: float32 `[..., width]`, for integers of any shape. See `tf.gather`."""
        self._settle()
        if self._attachment is None or self._attachment.engine is None:
            # Not from its value: after a first write by row, TensorFlow copies that at every read.
            return super().sparse_read(indices, name=name)
        if not tf.executing_eagerly():
            return self._before_writes(tf.gather, super()._read_variable_op(), indices, name=name)
        with tf.device(self.device):
            return library.load().ete_read_rows(
                engine=self._attachment.engine, value=super()._read_variable_op(no_copy=True),
                rows=tf.cast(indices, tf.int64), part=self._attachment.part)

    def gather_nd(self, indices: Any, name: str | None = None) -> tf.Tensor:
        """Returns elements or rows, see `tf.gather_nd`."""
        if tf.executing_eagerly():
            return tf.gather_nd(self.read_value(), indices, name=name)
        return self._before_writes(tf.gather_nd, super()._read_variable_op(), indices, name=name)

    def _before_writes(self, copy: Callable[..., tf.Tensor], *args: Any, **kwargs: Any
                       ) -> tf.Tensor:
        """Copies from the value in a function, before later operations write the value.

        TensorFlow's operations that gather from a resource cannot be used: they first give the
        variable a buffer of its own. Operations that copy from a value do not use the resource, so
        a later write would not wait for them. The last operation here uses the resource and waits
        for the copy, so that later writes wait too.
        """
        with tf.device(self.device):
            copied = copy(*args, **kwargs)
            with tf.control_dependencies([copied]):
                tf.raw_ops.VariableShape(input=self.handle)
        return copied

    def _lazy_read(self, op: Any) -> Any:
        """Returns the result of a write; reads of that result are copies too."""
        if tf.executing_eagerly():
            return self
        unread = super()._lazy_read(op)
        plain_read = unread._read_variable_op
        unread._read_variable_op = lambda: self._before_writes(_copy, plain_read())
        return unread


def small_variable(value: Any, dtype: tf.DType) -> EagerTableVariable:
    """Creates a variable of numbers that functions note; no engine has it."""
    return EagerTableVariable(initial_value=value, trainable=False, dtype=dtype)


def read(variable: EagerTableVariable) -> tf.Tensor:
    """Returns the value of a `small_variable`, with a single operation."""
    return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)


def _settled(write: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a write, so that pending updates are made before it."""
    @functools.wraps(write)
    def settle_and_write(self: EagerTableVariable, *args: Any, **kwargs: Any) -> Any:
        self._settle()
        return write(self, *args, **kwargs)
    return settle_and_write


for _name in _WRITES:
    setattr(EagerTableVariable, _name, _settled(getattr(_ResourceVariable, _name)))


@tf.custom_gradient
def _copy(value: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    return tf.raw_ops.DeepCopy(x=value), lambda gradient: gradient
