"""Carries the activations and gradients of small batches between devices in one tensor.

The replicas are on logical devices of their own, and the tables are on the first. Each tensor that
goes to another device is sent and received by itself. Where tensors are small, that takes longer
than to join them, send one, and split it.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

MOST_BYTES = 1 << 16
"""Tensors of a replica and step are joined up to so many bytes; above, copies take longer."""


class Carrier:
    """Joins and splits tensors of known shapes, if that saves time.

    >>> carrier = Carrier([(2, 1), (2, 3)])
    >>> joined = carrier.join([tf.ones([2, 1]), tf.zeros([2, 3])])
    >>> [one.shape for one in joined], [one.shape for one in carrier.split(joined)]
    ([TensorShape([2, 4])], [TensorShape([2, 1]), TensorShape([2, 3])])
    """

    def __init__(self, shapes: Sequence[tuple[int, ...]]):
        """Takes the shapes of the float32 tensors; matrices of as many rows can be joined."""
        self._widths = [shape[-1] for shape in shapes]
        self._joins = (len(shapes) > 1 and {len(shape) for shape in shapes} == {2}
                       and len({shape[0] for shape in shapes}) == 1
                       and 4 * shapes[0][0] * sum(self._widths) <= MOST_BYTES)

    def join(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Returns one tensor, or `tensors` as they are."""
        return [tf.concat(tensors, 1)] if self._joins else list(tensors)

    def split(self, joined: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the tensors of which `join` made `joined`."""
        return tf.split(joined[0], self._widths, 1) if self._joins else list(joined)
