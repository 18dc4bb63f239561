"""The variable of a table in eager mode and in functions, whose value is the engine's memory.

As in `variables.py`, but there is no session, and the variable exists before its engine does: it
is a plain one until an engine is attached, and after that engine was closed. What is read is never
the memory that the engine writes: an eager read is an operation of the engine, and a read in a
function is made of TensorFlow's own, so that a SavedModel of it is executed without this package.
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


class _Owner(NamedTuple):
    engine: tf.Tensor | None
    part: int
    before_read: Callable[[], None]


class OwnedVariable(_ResourceVariable):
    """Rows or a slot of a table, float32 `[rows, width]`. Used as any other variable.

    It is made as `tf.Variable` is, but no creator of variables is asked: a strategy does not
    replicate it. Savers write it without a copy, for which updates wait.

    A read in a function that is executed gives what the variable is at that place of the program;
    it neither calls `before_read` nor knows of an assignment that an engine failed to take over.
    """

    _owner: _Owner | None = None

    def attach(self, engine: tf.Tensor | None, part: int, before_read: Callable[[], None]) -> None:
        """Makes the variable one of an engine, which may take its memory over from now on.

        Args:
          engine: the handle of the engine: an eager int64 scalar, until `detach`. `None` for one
            that has no memory of its own: the variable stays a plain one, but for `before_read`.
          part: the number of the part in the engine, of the shape of this variable.
          before_read: called before the value is read or written in eager mode, and, to trace what
            it does, in functions that save. It may let the engine apply what is pending, but must
            not use the methods of this variable.
        """
        self._owner = _Owner(engine, part, before_read)

    def detach(self) -> None:
        """Makes it a plain variable with the value it has; for when the engine is closed.

        What was assigned since the last step of the engine stays. The memory of the engine lives
        on as the value, until another is assigned.
        """
        self._owner = None

    def _settle(self) -> None:
        if self._owner is not None and tf.executing_eagerly():
            self._owner.before_read()

    def _read_variable_op(self, no_copy: bool = False) -> tf.Tensor:
        if not tf.executing_eagerly():
            value = super()._read_variable_op(no_copy)
            return value if no_copy else self._before_writes(_copy, value)
        self._settle()
        if self._owner is None or self._owner.engine is None:
            return super()._read_variable_op(no_copy)
        value = super()._read_variable_op(no_copy=True)
        return library.load().ete_read(
            handle=self.handle, engine=self._owner.engine, value=value, part=self._owner.part,
            copy=not no_copy)

    def numpy(self) -> Any:
        """The value as an array of its own: the only copy that is made."""
        if not tf.executing_eagerly():
            return super().numpy()
        return self._read_variable_op(no_copy=True).numpy()

    def _copy_trackable_to_cpu(self, object_map: Any) -> None:
        """For checkpoints in the background: in a function that is traced once, then executed."""
        if self._owner is not None:
            self._owner.before_read()
        super()._copy_trackable_to_cpu(object_map)

    def _restore_from_tensors(self, restored_tensors: Any) -> Any:
        """Gets the values of a checkpoint, which people restore when an update cannot be made."""
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            self._settle()
        return super()._restore_from_tensors(restored_tensors)

    def sparse_read(self, indices: Any, name: str | None = None) -> tf.Tensor:
        """Rows: float32 `[..., width]`, for integers of any shape. See `tf.gather`."""
        self._settle()
        if self._owner is None or self._owner.engine is None:
            # Once written by row it would be copied for each other read.
            return super().sparse_read(indices, name=name)
        if not tf.executing_eagerly():
            return self._before_writes(tf.gather, super()._read_variable_op(), indices, name=name)
        with tf.device(self.device):
            return library.load().ete_read_rows(
                engine=self._owner.engine, value=super()._read_variable_op(no_copy=True),
                rows=tf.cast(indices, tf.int64), part=self._owner.part)

    def gather_nd(self, indices: Any, name: str | None = None) -> tf.Tensor:
        """Elements or rows, see `tf.gather_nd`."""
        if tf.executing_eagerly():
            return tf.gather_nd(self.read_value(), indices, name=name)
        return self._before_writes(tf.gather_nd, super()._read_variable_op(), indices, name=name)

    def _before_writes(self, copy: Callable[..., tf.Tensor], *args: Any, **kwargs: Any
                       ) -> tf.Tensor:
        """What is copied from the value in a function, before later operations write that.

        The operations of TensorFlow that gather from a resource are of no use here: they give the
        variable a buffer of its own first. Those that copy from a value do not use the resource,
        so that without the last one, which does and stands behind them, nobody would wait.
        """
        with tf.device(self.device):
            copied = copy(*args, **kwargs)
            with tf.control_dependencies([copied]):
                tf.raw_ops.VariableShape(input=self.handle)
        return copied

    def _lazy_read(self, op: Any) -> Any:
        """What writes return: reads of it, too, give no memory of the engine."""
        if tf.executing_eagerly():
            return self
        unread = super()._lazy_read(op)
        plain_read = unread._read_variable_op
        unread._read_variable_op = lambda: self._before_writes(_copy, plain_read())
        return unread


def _settled(write: Callable[..., Any]) -> Callable[..., Any]:
    """What is pending in the engine comes before what is written now."""
    @functools.wraps(write)
    def settle_and_write(self: OwnedVariable, *args: Any, **kwargs: Any) -> Any:
        self._settle()
        return write(self, *args, **kwargs)
    return settle_and_write


for _name in _WRITES:
    setattr(OwnedVariable, _name, _settled(getattr(_ResourceVariable, _name)))


@tf.custom_gradient
def _copy(value: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    return tf.raw_ops.DeepCopy(x=value), lambda gradient: gradient
