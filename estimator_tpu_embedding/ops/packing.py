"""Packs tensors of any types and shapes into one, and takes them apart again, bit for bit.

Between tasks of a cluster a message costs as much as 100 KB in it, so many small tensors travel as
one. Tensors of one type and of static shapes are one behind the other. Otherwise bits are kept as
int32, or as uint8 if something is smaller. Shapes that are known only when it runs come first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow.compat.v1 as tf

_KINDS = frozenset([
    tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16,
    tf.int32, tf.uint32, tf.int64, tf.uint64, tf.complex64, tf.complex128, tf.bool])


def is_packable(tensor: tf.Tensor) -> bool:
    """Returns whether `pack` takes a tensor: numbers or bools of known rank."""
    return tensor.dtype in _KINDS and tensor.shape.rank is not None


def pack(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns one vector that holds one or more tensors for which `is_packable` is true.

    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     tensors = [tf.constant([1, 2]), tf.constant([[0.5]])]
    ...     whole, half = session.run(unpack(pack(tensors), tensors))
    ...     print(whole.tolist(), half.tolist())
    [1, 2] [[0.5]]
    """
    unit = _unit_of(tensors)
    shapes = [tf.shape(each) for each in tensors if not each.shape.is_fully_defined()]
    return tf.concat([_as_units(each, unit) for each in [*shapes, *tensors]], 0)


def unpack(message: tf.Tensor, like: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the tensors that `pack` was given, of the dtypes and static shapes of `like`."""
    unit = _unit_of(like)
    ranks = [each.shape.rank for each in like if not each.shape.is_fully_defined()]
    begin = sum(ranks) * _units(tf.int32, unit)
    header = iter(tf.split(_from_units(message[:begin], unit, tf.int32), ranks) if ranks else [])
    shapes = [each.shape.as_list() if each.shape.is_fully_defined() else next(header)
              for each in like]
    sizes = [_units(each.dtype, unit) * (
        math.prod(shape) if isinstance(shape, list) else tf.reduce_prod(shape))
        for each, shape in zip(like, shapes)]
    parts = tf.split(message[begin:] if ranks else message,
                     tf.stack(sizes) if ranks else sizes, num=len(sizes))
    tensors = []
    for part, each, shape in zip(parts, like, shapes):
        tensors.append(tf.reshape(_from_units(part, unit, each.dtype), shape))
        tensors[-1].set_shape(each.shape)
    return tensors


def _unit_of(tensors: Sequence[tf.Tensor]) -> tf.DType:
    """Returns the type of a message, of which every tensor is a multiple."""
    kinds = {each.dtype for each in tensors}
    if len(kinds) == 1 and all(each.shape.is_fully_defined() for each in tensors):
        return kinds.pop()
    return tf.int32 if all(kind.size % 4 == 0 for kind in kinds) else tf.uint8


def _units(kind: tf.DType, unit: tf.DType) -> int:
    return int(kind.size) // int(unit.size)


def _as_units(tensor: tf.Tensor, unit: tf.DType) -> tf.Tensor:
    flat = tf.reshape(tensor, [-1])
    if flat.dtype == unit:
        return flat
    if flat.dtype == tf.bool:
        return tf.cast(flat, unit)
    return tf.reshape(tf.bitcast(flat, unit), [-1])


def _from_units(flat: tf.Tensor, unit: tf.DType, kind: tf.DType) -> tf.Tensor:
    if kind == unit:
        return flat
    if kind == tf.bool:
        return tf.cast(flat, kind)
    count = _units(kind, unit)
    return tf.bitcast(tf.reshape(flat, [-1, count]) if count > 1 else flat, kind)
