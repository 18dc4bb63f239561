"""Makes the saver of a model, which stores each table in small pieces.

A table is stored in small pieces, so that a restore needs little memory: to restore a slice of a
stored tensor, TensorFlow copies every stored piece that the slice touches, and it never releases
that memory. So each part of a table is stored as many pieces of one tensor. Any number of hosts can
restore them. For example part 1 of a table `t` of 70 rows of width 2 on 2 hosts is stored so, with
16 rows in a piece:

    t   70 2 35,16:0,2      rows 35 to 50
    t   70 2 51,16:0,2      rows 51 to 66
    t   70 2 67,3:0,2       rows 67 to 69
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..native.graph_variable import is_of_engine

PIECE_BYTES = 2**22
"""The approximate size of a piece, unless a part would have more than `MOST_PIECES`."""

MOST_PIECES = 128

SHARD_BYTES = 2**26
"""Tables that are smaller together are saved into one file."""

MOST_SHARDS = 4

_ALIGNED = 16
"""A piece has a multiple of so many rows: TensorFlow copies slices that begin elsewhere."""

_TensorFlowsBuilder: Any = _tf.saver_builder()


def default_saver(max_to_keep: int, keep_every_n_hours: float, client: str = ''
                  ) -> tf.train.Saver:
    """Returns a saver of all variables, with the names and layout of the original."""
    return tf.train.Saver(sharded=True, max_to_keep=max_to_keep,
                          keep_checkpoint_every_n_hours=keep_every_n_hours,
                          builder=SaverBuilder(client), defer_build=True,
                          save_relative_paths=True)


class SaverBuilder(_TensorFlowsBuilder):
    """A builder for `tf.train.Saver(builder=...)` with the same format as TensorFlow's own.

    Once rows of a variable were read or written, the variable is in copy-on-read mode: TensorFlow
    copies it at each read of its whole value. TensorFlow's own savers run `DisableCopyOnRead`, but
    in a graph their reads do not wait for it. So they hold a copy of every table at once. Here a
    read waits. The next look-up enters the mode again. That copies nothing, because the run that
    saved has ended by then, and nobody else holds the tensor.

    Each task of a cluster writes files of its own variables, so no table leaves its task. The
    client merges their indices into one.
    """

    def __init__(self, client: str = ''):
        """Takes the device of the client of a cluster; `''` without one."""
        super().__init__()
        self.merging_device = client

    def shards(self, saveables: Sequence[Any]) -> list[list[Any]]:
        """Returns the saveables of each file; parts of large tables are spread over several files.

        TensorFlow writes a file and computes its checksums in one thread. The hash of a file can
        only be computed from its beginning to its end. So one file keeps one core busy.
        """
        sizes = [_bytes_of_part(saveable) for saveable in saveables]
        count = min(MOST_SHARDS, sum(size > 0 for size in sizes))
        if sum(sizes) < SHARD_BYTES or count < 2:
            return [list(saveables)]
        shards: list[list[Any]] = [[] for _ in range(count)]
        filled = [0] * count
        for size, number in sorted(zip(sizes, range(len(sizes))), key=lambda one: -one[0]):
            smallest = filled.index(min(filled))
            shards[smallest].append(saveables[number])
            filled[smallest] += size
        return shards

    def save_op(self, filename_tensor: tf.Tensor, saveables: Sequence[Any]) -> tf.Operation:
        """Saves all `saveables` under a prefix."""
        names, slices, tensors = zip(*[
            piece for saveable in saveables for spec in saveable.specs
            for piece in _pieces(spec.name, spec.slice_spec, self._value(saveable, spec))])
        return tf.raw_ops.SaveV2(prefix=filename_tensor, tensor_names=names,
                                 shape_and_slices=slices, tensors=tensors)

    def _value(self, saveable: Any, spec: Any) -> tf.Tensor:
        """Returns the tensor to save; a variable is read in place."""
        if not isinstance(saveable, self.ResourceVariableSaveable):
            return spec.tensor
        if is_of_engine(saveable.op):
            return spec.tensor  # It can be read while a step runs, and copies nothing.
        with tf.control_dependencies([
                tf.raw_ops.DisableCopyOnRead(resource=saveable.handle_op)]):
            return tf.raw_ops.ReadVariableOp(resource=saveable.handle_op, dtype=spec.dtype)


def _bytes_of_part(saveable: Any) -> int:
    """Returns the bytes of a part of a float32 table; 0 for anything else.

    The end of its slice says it, as in `'70 2 35,35:0,2'`.
    """
    slice_spec = saveable.specs[0].slice_spec
    extents = slice_spec.split()[-1].split(':') if slice_spec else []
    return 4 * math.prod(int(extent.split(',')[1]) for extent in extents) if extents else 0


def _pieces(name: str, slice_spec: str, part: tf.Tensor
            ) -> Iterator[tuple[str, str, tf.Tensor]]:
    """Yields (name, slice, value) of the pieces of a part, which share its memory.

    The slice of a part is such as `'70 2 35,35:0,2'`, and empty for all of a tensor.
    """
    if not slice_spec or part.shape.rank != 2:
        yield name, slice_spec, part
        return
    *full_shape, extents = slice_spec.split()
    own_rows, own_columns = extents.split(':')
    first = int(own_rows.split(',')[0])
    rows, width = part.shape.as_list()
    step = max(PIECE_BYTES // (4 * width), -(-rows // MOST_PIECES))
    step += -step % _ALIGNED
    numbers = tf.reshape(part, [-1])
    for start in range(0, rows, step):
        count = min(step, rows - start)
        piece = tf.slice(numbers, tf.constant([start * width], tf.int64),
                         tf.constant([count * width], tf.int64))
        yield (name, f'{" ".join(full_shape)} {first + start},{count}:{own_columns}',
               tf.reshape(piece, [count, width]))
