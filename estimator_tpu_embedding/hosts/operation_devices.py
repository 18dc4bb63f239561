"""Finds on which device operations of a graph are, and puts them where they can work in a cluster.

A host has the engine of its own rows, and no Python of the job. Devices that a user names in
model_fn mean nothing here, as on the hardware.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import ConfigError, Problem
from .placement import Placement


def keep_on_host(operations: Sequence[tf.Operation], device: str, placement: Placement) -> None:
    """Puts operations whose device is none of the job's on `device`.

    Operations that are colocated with another one, or use its resource, stay with it.
    """
    allowed = {placement.client, *map(placement.host, range(placement.topology.num_hosts))}
    for operation in operations:
        if operation.device not in allowed:
            _tf.put_on(operation, device if _leader_of(operation) is None else '')


def put_python_on_client(graph: tf.Graph, placement: Placement) -> None:
    """Moves operations that call Python to the client.

    Raises:
      ConfigError: E732 for operations that use a resource of a host.
    """
    devices, problems = Devices(placement.client), []
    for operation in graph.get_operations():
        kind = python_in(operation)
        if kind is None or (
                devices[operation] == placement.client and _leader_of(operation) is None):
            continue
        if 'Dataset' in operation.type or any(
                each.dtype == tf.resource for each in [*operation.inputs, *operation.outputs]):
            within = '' if kind == operation.type else f', in a function of {operation.type}'
            problems.append(Problem(
                'E732', 'model_fn', 'what calls Python is executed by the client of a cluster, '
                'so it must not use a variable, a table or a dataset of a host',
                f'{kind}{within} "{operation.name}"', 'Read the variable outside of the function, '
                'or do that part in host_call, eval_metrics or input_fn.'))
        else:
            _tf.move(operation, placement.client)
    if problems:
        raise ConfigError(*problems)


PYTHON = frozenset({'PyFunc', 'PyFuncStateless', 'EagerPyFunc'})
"""The types of operations that call Python."""


def python_in(operation: tf.Operation) -> str | None:
    """Returns the type of the first operation, here or in called functions, that calls Python.

    >>> with tf.Graph().as_default():
    ...     python_in(tf.numpy_function(lambda: 1.0, [], tf.float32).op)
    'PyFunc'
    """
    if operation.type in PYTHON:
        return str(operation.type)
    return next((str(node.op) for node in nodes_called_by(operation, set())
                 if node.op in PYTHON), None)


def nodes_called_by(operation: tf.Operation, seen: set[str]) -> Iterator[tf.NodeDef]:
    """Yields the nodes of all functions that an operation calls, but of those in `seen`."""
    waiting = [operation.type, *functions_of(operation)]
    while waiting:
        name = waiting.pop()
        definition = None if name in seen else _tf.function_of(operation.graph, name)
        seen.add(name)
        for node in definition.node_def if definition is not None else ():
            yield node
            waiting.append(node.op)
            for value in node.attr.values():
                waiting += [each.name for each in (
                    [value.func] if value.HasField('func') else value.list.func)]


def functions_of(operation: tf.Operation) -> list[str]:
    """Returns the names of the functions that an operation has as attributes."""
    found = []
    for attribute in operation.op_def.attr:
        if attribute.type in ('func', 'list(func)'):
            value = operation.get_attr(attribute.name)
            found += [each.name for each in (value if isinstance(value, list) else [value])]
    return found


class Devices:
    """The devices of the operations of one graph; an operation without one is on `default`."""

    def __init__(self, default: str):
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
