"""Lists shapes of inputs that are tried on the original and on this package alike.

A case is a FeatureConfig (`max_sequence_length`, `output_shape`) and a source of the shape. The
source is `build` with the shape of an input or a batch size, or an enqueued input of a kind and a
static shape.
"""

import itertools

import tensorflow.compat.v1 as tf

CONFIGS = [(0, None), (4, None), (0, [8]), (4, [8]), (0, [8, 3]), (4, [8, 3]), (0, [4, 2]),
           (0, [9]), (0, [None, 4]), (0, [2, 4]), (0, [])]
SHAPES = [[8], [None], [8, 1], [8, 5], [8, None], [None, 5], [None, None], [8, 3, 5], [8, 3, 1],
          [8, 4, 5], [2, None, None], [8, 3, 2, 5], [], None]
DENSE = [[8], [None], [24], [8, 1], [8, 5], [None, 1], [8, 3, 1], [8, None, 1], []]
SPARSE = [[8, 1], [8, 5], [8, None], [None, None], [8, 3, 5], [8, 3, 1], [8, 4, None],
          [2, None, None], [8, 3, 2, 5]]
RAGGED = [[8, None], [None, None], [8, None, None]]
STORED = [((0, None), [8], [8]), ((0, None), [8], [9]), ((0, None), [8], [None]),
          ((0, None), [8], [8, 3]), ((0, None), [8, 3], [8]), ((0, None), [8, 3], [8, 4]),
          ((0, None), [8, 3], [8, None]), ((0, None), [8, 3, 2], [8, 3]),
          ((0, None), [8, 3, 2], [8, 3, 1, 1]), ((0, None), [8, 3, 2], [9, 3, 2])]


def cases():
    """Yields (name, max_sequence_length, output_shape, kind, shape) of every case but STORED."""
    for (length, output_shape), (kind, shape) in itertools.product(CONFIGS, [
            ('size', 8), *itertools.product(['build'], SHAPES),
            *itertools.product(['dense'], DENSE), *itertools.product(['sparse'], SPARSE),
            *itertools.product(['ragged'], RAGGED)]):
        yield f'{kind} {shape}, {length} {output_shape}', length, output_shape, kind, shape


def tensor(kind, shape):
    """An input of this kind whose static shape this is, in the default graph."""
    if kind == 'dense':
        return tf.placeholder(tf.int64, shape)
    if kind == 'sparse':
        return tf.sparse_placeholder(tf.int64, shape)
    rows = [None if shape[0] is None else shape[0] + 1]
    value = tf.placeholder(tf.int64, [None])
    for length in reversed([rows, *[[None]] * (len(shape) - 2)]):
        value = tf.RaggedTensor.from_row_splits(
            value, tf.placeholder(tf.int64, length), validate=False)
    return value
