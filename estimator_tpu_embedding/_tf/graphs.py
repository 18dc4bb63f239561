"""Graphs under construction: edges, scopes, control flow, gradients, and operations that repeat."""

from __future__ import annotations

import collections
import contextlib
import functools
import re
import threading
import types
from collections.abc import Callable, Hashable, Iterator
from typing import Any


def thread_local_stacks(graph: Any) -> None:
    """Gives every thread its own device, control-dependency and colocation scopes in `graph`.

    Otherwise a tower that waits inside `tf.control_dependencies` imposes them on other towers.
    """
    graph.switch_to_thread_local()


def global_step_read(graph: Any) -> Any:
    """Returns the tensor through which TensorFlow's own hooks read the global step of `graph`.

    It must exist before the graph is finalized, because hooks ask for it later.
    """
    from tensorflow.python.training import training_util
    return training_util._get_or_create_global_step_read(graph)


def wait_for(operation: Any, others: Any) -> None:
    """Adds control edges from `others` to `operation`. No session may have run the graph yet."""
    operation._add_control_inputs(list(others))


def wait_instead(operation: Any, others: Any) -> None:
    """Moves the control edges that leave `operation` to `others`.

    No session may have run the graph since `operation` was made.
    """
    for waiting in operation._control_outputs:
        kept = [each for each in waiting.control_inputs if each is not operation]
        replace_control_inputs(waiting, [*kept, *others])


def function_of(graph: Any, name: str) -> Any:
    """Returns the `FunctionDef` of a function that operations of `graph` call, or `None`.

    `as_graph_def` would copy all constants of the graph for it.
    """
    function = graph._get_function(name)
    return None if function is None else function.cached_definition


def replace_input(operation: Any, index: int, tensor: Any) -> None:
    """Gives `operation` another tensor as its input number `index`, of the same type.

    No session may have run the graph since `operation` was made.
    """
    operation._update_input(index, tensor)


def replace_control_inputs(operation: Any, others: Any) -> None:
    """Lets `operation` wait for `others` alone. No session may have run it."""
    operation._remove_all_control_inputs()
    operation._add_control_inputs(list(others))


def move(operation: Any, device: str) -> None:
    """Puts `operation` on a device, and ends its colocation, which would outweigh the device.

    No session may have run the operation.
    """
    if '_class' in operation.node_def.attr:
        operation._clear_attr('_class')
    put_on(operation, device)


def put_on(operation: Any, device: str) -> None:
    """Gives `operation` a device; `''` takes it away. No session may have run the operation."""
    operation._set_device(device)


def is_in_control_flow(place: Any) -> bool:
    """Whether an operation, or what a graph builds now, is in a `tf.cond` or `while_loop` of v1."""
    return place._get_control_flow_context() is not None


def is_compiled_by_xla(graph: Any) -> bool:
    """Whether `graph` is of a function with `jit_compile=True`, or within one."""
    from tensorflow.python.ops import control_flow_util
    return bool(control_flow_util.GraphOrParentsInXlaContext(graph))


def collections_and_names(graph: Any) -> tuple[dict[Any, list[Any]], dict[Any, int]]:
    """Returns the collections of `graph`, and how often Keras has used each layer name in it.

    The collections are no copy, as those of the public way are. The counts number the next layers.
    """
    from tf_keras.src import backend
    return graph._collections, dict(backend.PER_GRAPH_OBJECT_NAME_UIDS.get(graph, {}))


def put_collections_and_names(graph: Any, of_graph: dict[Any, list[Any]],
                              names: dict[Any, int]) -> None:
    """Gives `graph` what `collections_and_names` returned."""
    from tf_keras.src import backend
    graph._collections = of_graph
    backend.PER_GRAPH_OBJECT_NAME_UIDS[graph] = collections.defaultdict(int, names)


def copied_variable_store(graph: Any) -> dict[Any, list[Any]]:
    """Returns a copy of the collection in which `tf.get_variable` finds variables of `graph`.

    It is empty before the first variable.
    """
    from tensorflow.python.ops import variable_scope
    key = variable_scope._VARSTORE_KEY
    copies = []
    for store in graph.get_collection(key):
        copied = variable_scope._VariableStore()
        copied._vars.update(store._vars)
        copied._partitioned_vars.update(store._partitioned_vars)
        copies.append(copied)
    return {key: copies} if copies else {}


def variable_scope_state() -> tuple[Any, dict[str, int]]:
    """Returns this thread's variable scope in the default graph, and the use counts of names."""
    from tensorflow.python.ops import variable_scope
    store = variable_scope.get_variable_scope_store()
    return store.current_scope, dict(store.variable_scopes_count)


def put_variable_scope_state(state: tuple[Any, dict[str, int]]) -> None:
    """Gives this thread a state that `variable_scope_state` returned."""
    from tensorflow.python.ops import variable_scope
    store = variable_scope.get_variable_scope_store()
    store.current_scope = state[0]
    store.variable_scopes_count = dict(state[1])


@contextlib.contextmanager
def discarded_graph() -> Iterator[None]:
    """Enters a graph of TF2 that nobody executes.

    Variables that are made there are eager ones, unlike those of a `tf.Graph`. The creator of an
    enclosing `tf.function`, whose priority is 50, would make them at a place of that function.
    """
    from tensorflow.python.framework import func_graph
    graph = func_graph.FuncGraph('discarded')
    with graph.as_default():
        graph._variable_creator_stack = [
            creator for creator in graph._variable_creator_stack if creator[0] != 50]
        yield


_lock = threading.Lock()
_stock: list[Callable[..., Any]] = []


@contextlib.contextmanager
def bounded_gradients() -> Iterator[None]:
    """Lets `tf.gradients` visit only operations that its loss depends on, while this lasts.

    TensorFlow visits all operations that the variables reach, but uses only what the loss
    depends on. Replicas of a model share variables, so each would visit all replicas before it.
    Gradients stay the same, so it does not matter that other threads are bounded too.
    """
    from tensorflow.python.ops import gradients_util
    with _lock:
        stock = _stock[0] if _stock else gradients_util._PendingCount
        gradients_util._PendingCount = _bounded(stock)
        _stock.append(stock)
    try:
        yield
    finally:
        with _lock:
            _stock.pop()
            if not _stock:
                gradients_util._PendingCount = stock


def _bounded(stock: Any) -> Callable[..., Any]:
    """Returns `_PendingCount` with another `_MarkReachedOps`, which knows where the walk ends."""

    def count(to_ops: Any, from_ops: Any, colocate: Any, func_graphs: Any, xs_set: Any) -> Any:
        if func_graphs:  # Tensors of one graph may be used in another.
            return stock(to_ops, from_ops, colocate, func_graphs, xs_set)
        bounded = types.FunctionType(stock.__code__, {
            **stock.__globals__, '_MarkReachedOps': lambda starts, reached, _: reached.update(
                _reached(starts, to_ops))})
        return bounded(to_ops, from_ops, colocate, func_graphs, xs_set)

    return count


def _reached(starts: Any, ends: Any) -> set[Any]:
    """Returns `starts`, and what they reach by differentiable tensors on the way to `ends`."""
    from tensorflow.python.eager import backprop_util
    users: dict[Any, list[tuple[Any, Any]]] = {}
    seen, pending = set(ends), list(ends)
    while pending:
        operation = pending.pop()
        for tensor in operation.inputs:
            users.setdefault(tensor.op, []).append((tensor, operation))
            if tensor.op not in seen:
                seen.add(tensor.op)
                pending.append(tensor.op)
    reached, pending = set(starts), list(starts)
    while pending:
        for tensor, user in users.get(pending.pop(), ()):
            if user not in reached and backprop_util.IsTrainable(tensor):
                reached.add(user)
                pending.append(user)
    return reached


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
    once per feature and replica. No public symbol sees an operation before it is made. `current`
    returns what the replica that is built now has; `None` lets it make each operation.
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

    Nothing public tells which variables a model uses.
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


def rewritten(dataset: Any, rewrite: str) -> Any:
    """Returns a dataset after one of TensorFlow's rewrites, as for a dataset that it tunes.

    TensorFlow has no option for it without its tuner. The raw operation is public, but not the
    dataset of its result, which must keep Python functions of the first alive.
    """
    import tensorflow as tf
    from tensorflow.python.data.ops import dataset_ops
    variant = tf.raw_ops.OptimizeDatasetV2(
        input_dataset=dataset._variant_tensor, optimizations_enabled=[rewrite],
        optimizations_disabled=[], optimizations_default=[],
        optimization_configs=[f'{rewrite}:autotune:true'], **dataset._flat_structure)
    return dataset_ops.UnaryUnchangedStructureDataset(dataset, variant)


def start_with(iterator: Any, dataset: Any) -> Any:
    """Returns the operation that starts an initializable iterator with another dataset.

    `make_initializer` refuses an iterator that was made for a dataset.
    """
    import tensorflow as tf
    return tf.raw_ops.MakeIterator(
        dataset=dataset._variant_tensor, iterator=iterator._iterator_resource)
