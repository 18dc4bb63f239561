"""Makes the first values of a large part of a table piece by piece.

An initializer makes all values of a part at once, in a buffer beside the memory of the engine. A
part that is larger than memory has no room for that. So the operations that an initializer made
are made again for a few rows at a time. The values are the same, bit for bit: a random operation
of TensorFlow draws each group of four numbers from a place of its own in the stream of its seed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

PIECE_BYTES = 2**24

Piece = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""(the first number, int64; how many numbers, int64) -> float32 [count]."""

_GROUP = 4
"""How many numbers TensorFlow draws together."""

_RANDOM: dict[str, tuple[Any, Any, int]] = {
    'RandomUniform': (tf.raw_ops.RandomUniform, tf.raw_ops.StatelessRandomUniformV2, 1),
    'RandomStandardNormal': (
        tf.raw_ops.RandomStandardNormal, tf.raw_ops.StatelessRandomNormalV2, 1),
    'TruncatedNormal': (tf.raw_ops.TruncatedNormal, tf.raw_ops.StatelessTruncatedNormalV2, 256)}
"""By random operation: itself, the one that begins anywhere in a stream, and how far a group is
from the next one in the stream."""

_ELEMENTWISE = {'Mul': tf.raw_ops.Mul, 'Add': tf.raw_ops.Add, 'AddV2': tf.raw_ops.AddV2,
                'Sub': tf.raw_ops.Sub}

_PHILOX = 1


def piece_of(values: tf.Tensor) -> Piece | None:
    """Returns a function that makes some of the numbers of `values`, which are not evaluated.

    It returns `None` if the operations are others than a fill, random numbers, and their products
    and sums with scalars.
    """
    operation = values.op
    if operation.type == 'Fill':
        number = operation.inputs[1]
        return lambda first, count: tf.fill([count], number)
    if operation.type in _RANDOM and values.dtype == tf.float32:
        return _random_piece(operation)
    if operation.type in _ELEMENTWISE:
        make = _ELEMENTWISE[operation.type]
        x, y = (_same(one) if one.shape.rank == 0 else piece_of(one) for one in operation.inputs)
        if x is not None and y is not None:
            return functools.partial(_made, make, x, y)
    return None


def _same(scalar: tf.Tensor) -> Piece:
    """Returns a function that gives a scalar for any piece."""
    return lambda first, count: scalar


def _made(make: Any, x: Piece, y: Piece, first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    return make(x=x(first, count), y=y(first, count))


def _random_piece(operation: tf.Operation) -> Piece:
    anew, at_place, stride = _RANDOM[operation.type]
    seeds = [operation.get_attr(name) % 2**64 for name in ('seed', 'seed2')]

    def piece(first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        if not any(seeds):  # TensorFlow draws a seed then, so no two runs have the same numbers.
            return anew(shape=[count], dtype=tf.float32)
        place = tf.cast(first // _GROUP * stride, tf.uint64)
        return at_place(shape=[count], key=tf.constant(seeds[:1], tf.uint64),
                        counter=tf.stack([place, tf.constant(seeds[1], tf.uint64)]),
                        alg=_PHILOX)

    return piece


def written(write: Callable[[tf.Tensor, tf.Tensor], tf.Operation], shape: tuple[int, int],
            piece: Piece, device: str = '') -> tf.Operation:
    """Returns an operation that makes all rows, and writes one piece of them after another.

    Args:
      write: gets row numbers, int64 `[count]`, and their values, float32 `[count, width]`.
      shape: rows and width.
      piece: see `piece_of`.
      device: where all this is done.
    """
    rows, width = shape
    step = max(_GROUP, PIECE_BYTES // (4 * width) // _GROUP * _GROUP)

    def body(first: tf.Tensor) -> tf.Tensor:
        with tf.device(device):  # The body of a loop has no device of its surroundings.
            count = tf.minimum(tf.constant(step, tf.int64), rows - first)
            values = tf.reshape(piece(first * width, count * width), [count, width])
            with tf.control_dependencies([write(tf.range(first, first + count), values)]):
                return tf.identity(first + count)

    def goes_on(first: tf.Tensor) -> tf.Tensor:
        with tf.device(device):
            return first < rows

    with tf.device(device):
        last = tf.while_loop(goes_on, body, [tf.constant(0, tf.int64)], parallel_iterations=1)
    return tf.convert_to_tensor(last).op
