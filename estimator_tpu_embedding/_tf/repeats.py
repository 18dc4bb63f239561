"""What happens when a graph makes an operation: those on shapes are made once per replica."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Hashable, Iterator
from typing import Any

_NAMES = {
    'Const': re.compile(r'(.*/)?(Shape(_\d+)?|strided_slice(_\d+)?/stack|shape/\d+)'),
    'Pack': re.compile(r'(.*/)?shape'),
    'StridedSlice': re.compile(r'(.*/)?strided_slice(_\d+)?')}
"""By kind: how TensorFlow names such an operation if a caller has asked for another one. What users
ask for themselves is never shared: its name, and its identity, may matter to them."""

_MAX_BYTES = 256
"""Of a constant that is shared. Shapes and positions are shorter."""


class Repeats:
    """The small integer constants of one replica, and operations that pack or slice only them."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}
        self._operations: set[Any] = set()

    def key(self, graph: Any, kind: str, inputs: Any, name: Any, attrs: Any) -> Hashable | None:
        """Returns what equal operations have in common; `None` if it must not be shared."""
        if kind not in _NAMES or not name:
            return None
        whole = name[:-1] if name.endswith('/') else f'{graph._name_stack}/{name}'
        if not _NAMES[kind].fullmatch(whole):
            return None
        if kind == 'Const':
            from tensorflow.core.framework import types_pb2
            if (attrs['dtype'].type not in (types_pb2.DT_INT32, types_pb2.DT_INT64)
                    or attrs['value'].ByteSize() > _MAX_BYTES):
                return None
        elif any(one.op not in self._operations for one in inputs):
            return None
        if (graph._get_control_flow_context() is not None or graph._attr_scope_map
                or tuple(graph._colocation_stack.peek_objs())
                or graph._control_dependencies_for_inputs(set())):
            return None
        return (kind, tuple((one.op, one.value_index) for one in inputs),
                tuple(sorted((name, attrs[name].SerializeToString()) for name in attrs)),
                tuple(graph._device_function_stack.peek_objs()))

    def find_or_make(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Returns the operation of a key."""
        if key not in self._made:
            self._made[key] = make()
            self._operations.add(self._made[key])
        return self._made[key]


@contextlib.contextmanager
def repeats_shared(graph: Any, current: Callable[[], Repeats | None]) -> Iterator[None]:
    """Lets a graph make equal operations on shapes once, while this lasts.

    A layer that flattens each of its features makes seven operations for the same two numbers,
    once per feature and replica. No public symbol sees an operation before it is made.
    Checked: 2.16-2.21.

    Args:
      graph: that is built.
      current: returns what the replica that is built now has; `None` lets it make each operation.
    """

    def create(stock: Any, op_type: str, inputs: Any, dtypes: Any = None, input_types: Any = None,
               name: Any = None, attrs: Any = None, *others: Any, **named: Any) -> Any:
        def make() -> Any:
            return stock(op_type, inputs, dtypes, input_types, name, attrs, *others, **named)

        repeats = current()
        key = None if repeats is None else repeats.key(
            graph, op_type, inputs, name, attrs)
        return make() if repeats is None or key is None else repeats.find_or_make(key, make)

    with _created_by(graph, create):
        yield


@contextlib.contextmanager
def inputs_seen(graph: Any, see: Callable[[Any], None]) -> Iterator[None]:
    """Calls `see` with the inputs of each operation before it is made, while this lasts.

    Nothing public tells which variables a model uses. Checked: 2.16-2.21.
    """
    def create(stock: Any, op_type: str, inputs: Any, *others: Any, **named: Any) -> Any:
        see(inputs)
        return stock(op_type, inputs, *others, **named)

    with _created_by(graph, create):
        yield


@contextlib.contextmanager
def _created_by(graph: Any, create: Callable[..., Any]) -> Iterator[None]:
    """Lets `create`, which gets the function that did so before, make the operations of `graph`."""
    stock = graph._create_op_internal
    graph._create_op_internal = functools.partial(create, stock)
    try:
        yield
    finally:
        if getattr(stock, '__func__', None) is type(graph)._create_op_internal:
            del graph._create_op_internal
        else:  # This was within another such context.
            graph._create_op_internal = stock
