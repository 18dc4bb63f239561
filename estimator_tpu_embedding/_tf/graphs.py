"""Graphs under construction: their edges, scopes, control flow and Keras' name counters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


def thread_local_stacks(graph: Any) -> None:
    """Gives every thread its own device, control-dependency and colocation scopes in `graph`.

    Otherwise a tower that waits inside `tf.control_dependencies` imposes them on other towers.
    `tf.Graph` has the method but does not document it. Checked: 2.16-2.21.
    """
    graph.switch_to_thread_local()


def global_step_read(graph: Any) -> Any:
    """Returns the tensor through which TensorFlow's own hooks read the global step of `graph`.

    It must exist before the graph is finalized, because hooks ask for it later.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.training import training_util
    return training_util._get_or_create_global_step_read(graph)


def wait_for(operation: Any, others: Any) -> None:
    """Adds control edges from `others` to `operation`. No session may have run the graph yet.

    Checked: 2.16-2.21.
    """
    operation._add_control_inputs(list(others))


def wait_instead(operation: Any, others: Any) -> None:
    """Moves the control edges that leave `operation` to `others`.

    No session may have run the graph since `operation` was made. Checked: 2.16-2.21.
    """
    for waiting in operation._control_outputs:
        kept = [each for each in waiting.control_inputs if each is not operation]
        waiting._remove_all_control_inputs()
        waiting._add_control_inputs([*kept, *others])


def function_of(graph: Any, name: str) -> Any:
    """Returns the `FunctionDef` of a function that operations of `graph` call, or `None`.

    `as_graph_def` would copy all constants of the graph for it. Checked: 2.16-2.21.
    """
    function = graph._get_function(name)
    return None if function is None else function.cached_definition


@contextlib.contextmanager
def graph_def_kept(graph: Any) -> Iterator[None]:
    """Lets `graph.as_graph_def` make the message of the graph once, while nothing is added to it.

    Hooks and savers ask for the same message several times in a row, and TensorFlow makes it anew
    each time. Each caller gets a message of its own. Nobody may change the graph in the context
    other than by adding operations. Checked: 2.16-2.21.
    """
    make, kept = graph.as_graph_def, {}

    def as_graph_def(from_version: Any = None, add_shapes: Any = False, **options: Any) -> Any:
        if from_version is not None:
            return make(from_version, add_shapes, **options)
        key = graph.version, bool(add_shapes)
        if key not in kept:
            made = make(add_shapes=add_shapes, **options)
            kept[key] = type(made), made.SerializeToString()
            return made
        of_message, content = kept[key]
        return of_message.FromString(content)

    graph.as_graph_def = as_graph_def
    try:
        yield
    finally:
        del graph.as_graph_def


def replace_input(operation: Any, index: int, tensor: Any) -> None:
    """Gives `operation` another tensor as its input number `index`, of the same type.

    No session may have run the graph since `operation` was made. Checked: 2.16-2.21.
    """
    operation._update_input(index, tensor)


def replace_control_inputs(operation: Any, others: Any) -> None:
    """Lets `operation` wait for `others` alone. No session may have run it. Checked: 2.16-2.21."""
    operation._remove_all_control_inputs()
    operation._add_control_inputs(list(others))


def move(operation: Any, device: str) -> None:
    """Puts `operation` on a device; it is no longer colocated with another operation.

    A colocation is of more weight than a device for TensorFlow. No session may have run the
    operation. Checked: 2.16-2.21.
    """
    if '_class' in operation.node_def.attr:
        operation._clear_attr('_class')
    put_on(operation, device)


def put_on(operation: Any, device: str) -> None:
    """Gives `operation` a device; `''` takes it away. No session may have run the operation.

    Checked: 2.16-2.21.
    """
    operation._set_device(device)


def is_in_control_flow(operation: Any) -> bool:
    """Whether an operation is part of a `tf.cond` or `tf.while_loop` of control flow v1.

    Checked: 2.16-2.21.
    """
    return operation._get_control_flow_context() is not None


def is_compiled_by_xla(graph: Any) -> bool:
    """Whether `graph` is of a function with `jit_compile=True`, or within one.

    The public function does not say what it is being traced for. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import control_flow_util
    return bool(control_flow_util.GraphOrParentsInXlaContext(graph))


def is_inside_control_flow(graph: Any) -> bool:
    """Whether a `tf.cond` or `tf.while_loop` of control flow v1 is being built in `graph`.

    Checked: 2.16-2.21.
    """
    return graph._get_control_flow_context() is not None


def collections_of(graph: Any) -> dict[Any, list[Any]]:
    """Returns the collections of `graph`, not a copy. Checked: 2.16-2.21."""
    return graph._collections


def put_collections(graph: Any, collections: dict[Any, list[Any]]) -> None:
    """Gives `graph` other collections. The public way would copy each. Checked: 2.16-2.21."""
    graph._collections = collections


def copied_variable_store(graph: Any) -> dict[Any, list[Any]]:
    """Returns a copy of the collection in which `tf.get_variable` finds variables of `graph`.

    It is empty before the first variable. Checked: 2.16-2.21.
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
    """Returns this thread's variable scope in the default graph, and the use counts of names.

    `tf.get_variable_scope` returns the scope alone. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import variable_scope
    store = variable_scope.get_variable_scope_store()
    return store.current_scope, dict(store.variable_scopes_count)


def put_variable_scope_state(state: tuple[Any, dict[str, int]]) -> None:
    """Gives this thread a state that `variable_scope_state` returned."""
    from tensorflow.python.ops import variable_scope
    store = variable_scope.get_variable_scope_store()
    store.current_scope = state[0]
    store.variable_scopes_count = dict(state[1])


def keras_name_counters(graph: Any) -> dict[Any, Any]:
    """Returns how often Keras has used each layer name in `graph`: the next layer's number.

    Checked: tf_keras 2.16-2.21.
    """
    from tf_keras.src import backend
    return dict(backend.PER_GRAPH_OBJECT_NAME_UIDS.get(graph, {}))


def put_keras_name_counters(graph: Any, counters: dict[Any, Any]) -> None:
    """Gives `graph` counters that `keras_name_counters` returned.

    Checked: tf_keras 2.16-2.21.
    """
    import collections

    from tf_keras.src import backend
    backend.PER_GRAPH_OBJECT_NAME_UIDS[graph] = collections.defaultdict(int, counters)


@contextlib.contextmanager
def discarded_graph() -> Iterator[None]:
    """Enters a graph of TF2 that nobody executes.

    Variables that are made there are eager ones, unlike those of a `tf.Graph`. The creator of an
    enclosing `tf.function`, whose priority is 50, would make them at a place of that function.
    The class is public only below `tf.__internal__`. Checked: 2.16-2.21.
    """
    from tensorflow.python.framework import func_graph
    graph = func_graph.FuncGraph('discarded')
    with graph.as_default():
        graph._variable_creator_stack = [
            creator for creator in graph._variable_creator_stack if creator[0] != 50]
        yield
