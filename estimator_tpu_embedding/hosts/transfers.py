"""Lets what crosses between two devices of a cluster travel in few messages.

Each tensor that crosses is a message, and a message costs more time than a thousand numbers in it.
So a graph is rewritten once all of it is there, before a session sees it. Tensors that have the
same way are packed into one, and taken apart where they are used. Two tensors may share a message
only if neither depends on the other, so they must be of one *level*. Tensors of level 0 need
nothing that crosses, and tensors of level `n + 1` need something of level `n`.

Only what certain results need is packed, and only with tensors that the same results need. So
nothing is computed that was not needed before. Variables whose reads wait for nothing are read
once for each device, and what may change them waits for that. A read that waits for something
stays as it is: it must see what came before, and what it waits for must run.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import tensorflow.compat.v1 as tf

from .. import _tf
from ..ops import packing
from .operation_devices import Devices, functions_of
from .placement import on

_WRITES = ('Assign', 'ResourceApply', 'ResourceSparseApply', 'ResourceScatter',
           'ResourceStridedSliceAssign')

_Key = TypeVar('_Key')

_MOST_BYTES = 2**26
"""Of a message with several tensors; a copy of more would take longer than the messages do."""

Results = Sequence[tf.Tensor | tf.Operation]


class _Use(NamedTuple):
    """A tensor that an operation of another device takes: its input number `place`."""

    tensor: tf.Tensor
    operation: tf.Operation
    place: int


class _Way(NamedTuple):
    """What tensors must share to be packed together.

    Shapes of messages between cores and owners are not static, and the model need not wait for
    them.
    """

    results: int
    sender: str
    receiver: str
    level: int = 0
    is_static: bool = True


def pack_transfers(graph: tf.Graph, results: Sequence[Results], client: str) -> None:
    """Rewrites a graph so that few messages cross between devices.

    Args:
      graph: complete as far as the results are concerned. No session has run it.
      results: lists of tensors and operations, each evaluated by a run of its own.
      client: the device of operations that have none.
    """
    with graph.as_default(), tf.control_dependencies(None), tf.name_scope('packed'):
        packing_of_graph = _Packing(results, client)
        packing_of_graph.share_reads()
        packing_of_graph.pack_the_rest()


class _Packing:
    """Rewrites the default graph."""

    def __init__(self, results: Sequence[Results], client: str):
        """Finds all operations that the results need."""
        self._devices = Devices(client)
        self._needed: dict[tf.Operation, int] = {}
        self._sources: dict[tf.Operation, list[tf.Operation]] = {}
        for number, each in enumerate(results):
            self._add(number, each)

    def share_reads(self) -> None:
        """Reads each variable once for every other device that uses its value from before."""
        ways: dict[_Way, dict[tf.Operation, list[_Use]]] = {}
        for use in self._uses():
            read = use.tensor.op
            if read.type == 'ReadVariableOp' and not read.control_inputs:
                variables = ways.setdefault(self._way(read, use.operation), {})
                variables.setdefault(read.inputs[0].op, []).append(use)
        for way, variables in ways.items():
            for handles in _batches(variables, lambda handle: variables[handle][0].tensor):
                uses = [variables[handle] for handle in handles]
                with on(way.sender):
                    values = [_read(handle, own[0].tensor)
                              for handle, own in zip(handles, uses)]
                message = _send(way, values, uses)
                for write in self._writes(variables):
                    _tf.wait_for(write, [message.op])

    def pack_the_rest(self) -> None:
        """Packs the other tensors that cross, and the waiting for operations elsewhere."""
        uses, waits = list(self._uses()), list(self._waits())
        levels = _levels(self._sources, {
            *waits, *[(use.tensor.op, use.operation) for use in uses]})
        ways: dict[_Way, dict[str, list[_Use]]] = {}
        for use in uses:
            way = self._way(use.tensor.op, use.operation)._replace(
                level=levels[use.tensor.op], is_static=use.tensor.shape.is_fully_defined())
            ways.setdefault(way, {}).setdefault(use.tensor.name, []).append(use)
        for way, tensors in ways.items():
            for names in _batches(tensors, lambda name: tensors[name][0].tensor):
                if len(names) > 1:
                    own = [tensors[name] for name in names]
                    _send(way, [each[0].tensor for each in own], own)
        awaited: dict[_Way, dict[tf.Operation, list[tf.Operation]]] = {}
        for source, operation in waits:
            way = self._way(source, operation)._replace(level=levels[source])
            awaited.setdefault(way, {}).setdefault(source, []).append(operation)
        for way, sources in awaited.items():
            if len(sources) > 1:
                _wait_together(way, sources)

    def _writes(self, handles: Collection[tf.Operation]) -> Iterator[tf.Operation]:
        """Yields what changes a variable of some handles, or calls functions that may do so."""
        for operation in self._needed:
            if (operation.type.startswith(_WRITES) or functions_of(operation)) and any(
                    each.dtype == tf.resource and each.op in handles for each in operation.inputs):
                yield operation

    def _add(self, number: int, results: Results) -> None:
        """Adds what results need; the device that an operation is on is asked for later."""
        pending = [each.op if isinstance(each, tf.Tensor) else each for each in results]
        while pending:
            operation = pending.pop()
            if operation not in self._needed:
                self._needed[operation] = number
                self._sources[operation] = [*[each.op for each in operation.inputs],
                                            *operation.control_inputs]
                pending += self._sources[operation]

    def _uses(self) -> Iterator[_Use]:
        """Yields every use of a tensor on another device that may be redirected."""
        for operation in self._needed:
            device = self._devices[operation]
            for place, tensor in enumerate(operation.inputs):
                if (self._devices[tensor.op] != device and tensor.op in self._needed
                        and packing.is_packable(tensor)
                        and not _tf.is_in_control_flow(operation)
                        and not _tf.is_in_control_flow(tensor.op)):
                    yield _Use(tensor, operation, place)

    def _waits(self) -> Iterator[tuple[tf.Operation, tf.Operation]]:
        """Yields every pair of an operation and one of another device that waits for it."""
        for operation in self._needed:
            if not _tf.is_in_control_flow(operation):
                for source in operation.control_inputs:
                    if (self._devices[source] != self._devices[operation]
                            and source in self._needed and not _tf.is_in_control_flow(source)):
                        yield source, operation

    def _way(self, source: tf.Operation, user: tf.Operation) -> _Way:
        return _Way(self._needed[user], self._devices[source], self._devices[user])


def _read(handle: tf.Operation, like: tf.Tensor) -> tf.Tensor:
    value = tf.raw_ops.ReadVariableOp(resource=handle.outputs[0], dtype=like.dtype)
    value.set_shape(like.shape)
    return value


def _send(way: _Way, tensors: Sequence[tf.Tensor], uses: Iterable[Iterable[_Use]]) -> tf.Tensor:
    """Sends tensors as one, and gives the parts to their uses; returns the message."""
    with on(way.sender):
        message = packing.pack(tensors)
    with on(way.receiver):
        parts = packing.unpack(message, tensors)
    for part, own in zip(parts, uses):
        for use in own:
            _tf.replace_input(use.operation, use.place, part)
    return message


def _wait_together(way: _Way, sources: Mapping[tf.Operation, Sequence[tf.Operation]]) -> None:
    """Lets all that wait for some of the sources wait for one operation, which waits for all."""
    with on(way.sender), tf.control_dependencies(list(sources)):
        together = tf.no_op('all')
    for operation in {user: None for users in sources.values() for user in users}:
        _tf.replace_control_inputs(operation, [together, *[
            each for each in operation.control_inputs if each not in sources]])


def _batches(keys: Iterable[_Key], tensor_of: Callable[[_Key], tf.Tensor]
             ) -> Iterator[list[_Key]]:
    """Splits the keys of tensors so that what belongs together is not too large."""
    batch: list[_Key] = []
    total = 0
    for key in keys:
        tensor = tensor_of(key)
        size = (tensor.shape.num_elements() or 0) * tensor.dtype.size
        if batch and total + size > _MOST_BYTES:
            yield batch
            batch, total = [], 0
        batch.append(key)
        total += size
    if batch:
        yield batch


def _levels(sources: Mapping[tf.Operation, Iterable[tf.Operation]],
            crossing: Collection[tuple[tf.Operation, tf.Operation]]) -> dict[tf.Operation, int]:
    """Returns the level of each operation; `crossing` are the edges that cross, none in a loop."""
    levels = dict.fromkeys(sources, 0)
    users: dict[tf.Operation, list[tf.Operation]] = {}
    for operation, own in sources.items():
        for source in own:
            users.setdefault(source, []).append(operation)
    pending = collections.deque(sources)
    while pending:
        operation = pending.popleft()
        for user in users.get(operation, []):
            level = levels[operation] + ((operation, user) in crossing)
            if level > levels[user]:
                levels[user] = level
                pending.append(user)
    return levels
