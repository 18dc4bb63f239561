"""Looks at operations of a graph: which functions they call, and on which device they are."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf

_PYTHON = frozenset({'PyFunc', 'PyFuncStateless', 'EagerPyFunc'})
"""The types of operations that call Python."""


def python_in(operation: tf.Operation) -> str | None:
    """Returns the type of the first operation that calls Python, or `None`.

    Args:
      operation: looked at with all functions that it calls.

    >>> with tf.Graph().as_default():
    ...     python_in(tf.numpy_function(lambda: 1.0, [], tf.float32).op)
    'PyFunc'
    """
    if operation.type in _PYTHON:
        return str(operation.type)
    waiting, seen = [operation.type, *functions_of(operation)], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        definition = _tf.function_of(operation.graph, name)
        for node in definition.node_def if definition is not None else ():
            if node.op in _PYTHON:
                return str(node.op)
            waiting += [node.op, *functions_of_node(node)]
    return None


def functions_of(operation: tf.Operation) -> list[str]:
    """Returns the names of the functions that an operation has as attributes."""
    found = []
    for attribute in operation.op_def.attr:
        if attribute.type in ('func', 'list(func)'):
            value = operation.get_attr(attribute.name)
            found += [each.name for each in (value if isinstance(value, list) else [value])]
    return found


def functions_of_node(node: tf.NodeDef) -> list[str]:
    """Returns the names of the functions that a node of a function has as attributes."""
    return [name for value in node.attr.values() for name in _functions_in(value)]


def _functions_in(value: Any) -> list[str]:
    """Returns the names of functions in an `AttrValue`."""
    kind = value.WhichOneof('value')
    if kind == 'func':
        return [value.func.name]
    return [each.name for each in value.list.func] if kind == 'list' else []


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
