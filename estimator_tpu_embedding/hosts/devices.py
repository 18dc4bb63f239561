"""Says on which device TensorFlow executes an operation of a graph that it has not placed yet."""

from __future__ import annotations

import tensorflow.compat.v1 as tf


class Devices:
    """The devices of the operations of one graph, as strings."""

    def __init__(self, default: str = ''):
        """Knows that an operation without a device is on `default`."""
        self._default = default
        self._known: dict[tf.Operation, str] = {}

    def __getitem__(self, operation: tf.Operation) -> str:
        """Returns the device of an operation.

        It is that of a variable, a queue or a table that the operation uses, whatever else it
        says. Next come operations that it is colocated with.
        """
        chain = []
        while operation not in self._known:
            chain.append(operation)
            leader = _leader_of(operation)
            if leader is None or leader in chain:
                self._known[operation] = operation.device or self._default
            else:
                operation = leader
        for each in chain:
            self._known[each] = self._known[operation]
        return self._known[operation]

    @staticmethod
    def follows(operation: tf.Operation) -> bool:
        """Returns whether an operation is where another one is, whatever it says."""
        return _leader_of(operation) is not None


def _leader_of(operation: tf.Operation) -> tf.Operation | None:
    """Returns the operation whose device another one shares, or `None`."""
    for tensor in operation.inputs:
        # A placeholder stands for a resource outside of the function that is being built.
        if tensor.dtype == tf.resource and tensor.op.type != 'Placeholder':
            return tensor.op
    name = operation.name
    for group in operation.colocation_groups():
        other = group.decode().removeprefix('loc:@')
        if other != name:
            return operation.graph.get_operation_by_name(other)
    return None
