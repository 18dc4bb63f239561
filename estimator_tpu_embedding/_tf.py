"""The only importer of `tensorflow.python.*`: one function per borrowed symbol.

Each docstring says why a public name does not do and on which versions the symbol was checked
(`tools/check_versions.py` does that). Imports are inside the functions, so that this module
costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def tpu_shard_context(number_of_shards: int) -> Any:
    """The context in which TensorFlow's TPU columns and `CrossShardOptimizer` see replicas.

    It is thread-local, so every tower enters its own. No public name. Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import tpu_function
    return tpu_function.tpu_shard_context(number_of_shards)


def number_of_shards() -> int | None:
    """The number of replicas of the enclosing `tpu_shard_context`. Checked: 2.16-2.21."""
    from tensorflow.python.tpu import tpu_function
    return tpu_function.get_tpu_context().number_of_shards


def tpu_embedding_columns() -> tuple[type, ...]:
    """The classes that `tf.tpu.experimental.embedding_column` and its shared twin return.

    Users test for them with `isinstance`, so they are used, not copied. Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import feature_column_v2
    return (feature_column_v2._TPUEmbeddingColumnV2,
            feature_column_v2._TPUSharedEmbeddingColumnV2)


def old_tpu_embedding_columns() -> tuple[type, ...]:
    """The classes that `tensorflow.python.tpu.feature_column` makes, which jobs of TensorFlow
    1.x use with `tf.feature_column.input_layer`. Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import feature_column
    return (feature_column._TPUEmbeddingColumn, feature_column._TPUSharedEmbeddingColumn)


def other_columns_of_a_spec() -> tuple[type, ...]:
    """The classes of columns that an `EmbeddingConfigSpec` takes and no TPU looks up.

    Checked: 2.16-2.21.
    """
    from tensorflow.python.feature_column import feature_column, feature_column_v2
    return (feature_column._NumericColumn, feature_column_v2.NumericColumn,
            feature_column._EmbeddingColumn, feature_column_v2.EmbeddingColumn,
            feature_column._SharedEmbeddingColumn)


def is_tensor_core_column(column: Any) -> bool:
    """Whether a column was made with `embedding_lookup_device='tpu_tensor_core'`.

    Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import feature_column_v2
    device = getattr(column, '_embedding_lookup_device', None)
    return bool(device == feature_column_v2.EmbeddingDevice.TPU_TENSOR_CORE)


def tensor_core_length(column: Any) -> int:
    """How many ids of a sample a column for the tensor core takes. Checked: 2.16-2.21."""
    return int(column._tensor_core_shape[1])


def recorded_column_scopes(graph: Any) -> dict[str, tuple[str, str]]:
    """What TPU columns recorded in `graph`: embedding name -> (variable scope, name in it).

    The columns write it while model_fn runs; TensorFlow's own reader was deleted with the
    TPUEstimator. Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import feature_column
    collection = graph.get_collection(feature_column._TPU_FC_TO_SCOPE)
    return dict(collection[0]) if collection else {}


def forget_column_scopes(graph: Any) -> None:
    """Removes those records, which a MetaGraph cannot hold, from `graph`."""
    from tensorflow.python.tpu import feature_column
    graph.clear_collection(feature_column._TPU_FC_TO_SCOPE)


def identity_columns() -> tuple[type, ...]:
    """The class of `categorical_column_with_identity`. Checked: 2.16-2.21."""
    from tensorflow.python.feature_column import feature_column_v2
    return (feature_column_v2.IdentityCategoricalColumn,)


def column_ids(categorical_column: Any, words: Any) -> Any:
    """Maps a SparseTensor of words to ids as the categorical column does.

    The public way needs a transformation cache that is private itself. Checked: 2.16-2.21.
    """
    return categorical_column._transform_input_tensor(words)


def thread_local_stacks(graph: Any) -> None:
    """Gives every thread its own device, control-dependency and colocation scopes in `graph`.

    Without it a tower that waits inside `tf.control_dependencies` imposes them on the others.
    `tf.Graph` has the method but does not document it. Checked: 2.16-2.21.
    """
    graph.switch_to_thread_local()


def global_step_read(graph: Any) -> Any:
    """The tensor through which TensorFlow's own hooks read the global step of `graph`.

    Made before the graph is finalised, since hooks ask for it later. Checked: 2.16-2.21.
    """
    from tensorflow.python.training import training_util
    return training_util._get_or_create_global_step_read(graph)


def add_listeners(saver_hook: Any, listeners: Any) -> None:
    """Adds saving listeners to a `CheckpointSaverHook` that exists; its constructor alone is
    public for that. Checked: 2.16-2.21.
    """
    saver_hook._listeners.extend(
        listener for listener in listeners if listener not in saver_hook._listeners)


def saving_listeners(saver_hook: Any) -> list[Any]:
    """The listeners of a `CheckpointSaverHook`. Checked: 2.16-2.21."""
    return list(saver_hook._listeners)


def replace_saver(saver_hook: Any, wrap: Callable[[Any], Any]) -> Any:
    """Lets a `CheckpointSaverHook` that exists save with another saver, which is returned.

    Args:
      saver_hook: that of a user, who may use it again for another graph.
      wrap: makes the other one from the saver of the hook, of which nothing may be used before
        there is a session: until then nobody knows which one it is. Checked: 2.16-2.21.
    """
    class Chosen:
        def __getattr__(self, name: str) -> Any:
            return getattr(type(saver_hook)._get_saver(saver_hook), name)

    wrapped = wrap(Chosen())
    saver_hook._get_saver = lambda: wrapped
    return wrapped


def resource_variable() -> Any:
    """The class of variables with a handle, whose instances may answer reads in their own way.

    `tf.Variable` makes such an instance, but nobody can derive from what it makes. A derived class
    may override `_read_variable_op(no_copy=False)`, through which all dense reads go, `sparse_read`
    and `gather_nd`, and may set `_graph_element`, which `Session.run` fetches for a variable; of
    that the saver takes the first input for the handle. `to_proto` writes the name of
    `_cached_value` if there is one. Who imports that has it as the cached value, and what is found
    through the first inputs, up to a `ReadVariableOp`, as the graph element. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import resource_variable_ops
    return resource_variable_ops.ResourceVariable


def last_creator_scope(creator: Callable[..., Any]) -> Any:
    """The context in which a creator of variables is called after all others.

    Those of `tf.variable_creator_scope` are called from the inside to the outside, so that one
    which makes variables itself, entered last, hides all that a user has. `creator` takes what
    `tf.variable_creator_scope` describes. Checked: 2.16-2.21.
    """
    from tensorflow.python.framework import ops
    return ops.get_default_graph()._variable_creator_scope(creator, priority=0)


def saver_builder() -> Any:
    """The class whose instances build the operations of a `tf.train.Saver`, by default.

    `tf.train.Saver(builder=...)` is public, what to derive a builder from is not. The builder
    has the class `ResourceVariableSaveable`, whose `handle_op` is the handle of the variable, and
    `shards`, which a derived class may override: of all that is on one device, the lists that
    become one file each. Checked: 2.16-2.21.
    """
    from tensorflow.python.training import saver

    class Builder(saver.BulkSaverBuilder):
        def shards(self, saveables: list[Any]) -> list[list[Any]]:
            """One file for all, as TensorFlow has it."""
            return [saveables]

        def _GroupByDevices(self, saveables: list[Any]) -> list[tuple[str, list[Any]]]:
            return [(device, shard) for device, group in super()._GroupByDevices(saveables)
                    for shard in self.shards(group)]

    return Builder


def without_deprecation_warnings() -> Any:
    """A context in which TensorFlow does not warn of what this package itself calls.

    It would advise users to give up what they came for. Checked: 2.16-2.21.
    """
    from tensorflow.python.util import deprecation
    return deprecation.silence()


def full_name_and_shape(variable: Any) -> tuple[str, list[int | None] | None]:
    """The name and shape that a checkpoint holds a variable under.

    For a part of a partitioned variable these are the whole one's; the shape is `None` where
    the rank is unknown. Checked: 2.16-2.21.
    """
    whole = variable._get_save_slice_info()
    if whole is not None:
        return whole.full_name, list(whole.full_shape)
    rank = variable.shape.rank
    return variable.op.name, None if rank is None else variable.shape.as_list()


def copied_variable_store(graph: Any) -> dict[Any, list[Any]]:
    """The collection in which `tf.get_variable` looks for what exists in `graph`, as a copy.

    Empty where nothing was made yet. Checked: 2.16-2.21.
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
    """This thread's variable scope in the default graph, and how often scope names were used.

    `tf.get_variable_scope` gives the first alone. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import variable_scope
    store = variable_scope.get_variable_scope_store()
    return store.current_scope, dict(store.variable_scopes_count)


def put_variable_scope_state(state: tuple[Any, dict[str, int]]) -> None:
    """Makes what `variable_scope_state` returned that of this thread."""
    from tensorflow.python.ops import variable_scope
    store = variable_scope.get_variable_scope_store()
    store.current_scope = state[0]
    store.variable_scopes_count = dict(state[1])


def wait_for(operation: Any, others: Any) -> None:
    """Adds control edges from `others` to `operation`, of a graph that no session has run.

    Checked: 2.16-2.21.
    """
    operation._add_control_inputs(list(others))


def summary_writer_initializers() -> list[Any]:
    """The operations that open the writers of V2 summaries in the default graph.

    `tf.compat.v1.summary.initialize` runs them only under a default writer. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import summary_ops_v2
    return list(summary_ops_v2.summary_writer_initializer_op())


def cached_summary_writers() -> list[Any]:
    """The writers that `tf.summary.FileWriterCache.get` gave. Checked: 2.16-2.21."""
    from tensorflow.python.summary.writer import writer_cache
    return list(writer_cache.FileWriterCache._cache.values())


def wait_instead(operation: Any, others: Any) -> None:
    """Makes whatever waits for `operation` by a control edge wait for `others` instead.

    In a graph that no session has run since. Checked: 2.16-2.21.
    """
    for waiting in operation._control_outputs:
        kept = [each for each in waiting.control_inputs if each is not operation]
        waiting._remove_all_control_inputs()
        waiting._add_control_inputs([*kept, *others])


def is_in_control_flow(operation: Any) -> bool:
    """Whether an operation is part of a `tf.cond` or `tf.while_loop` of control flow v1.

    Checked: 2.16-2.21.
    """
    return operation._get_control_flow_context() is not None


def keras_name_counters(graph: Any) -> dict[Any, Any]:
    """How often Keras has used each layer name in `graph`: the next layer's number.

    Checked: tf_keras 2.16-2.21.
    """
    from tf_keras.src import backend
    return dict(backend.PER_GRAPH_OBJECT_NAME_UIDS.get(graph, {}))


def put_keras_name_counters(graph: Any, counters: dict[Any, Any]) -> None:
    """Makes counters that `keras_name_counters` returned those of `graph`.

    Checked: tf_keras 2.16-2.21.
    """
    import collections

    from tf_keras.src import backend
    backend.PER_GRAPH_OBJECT_NAME_UIDS[graph] = collections.defaultdict(int, counters)


def is_inside_control_flow(graph: Any) -> bool:
    """Whether a `tf.cond` or `tf.while_loop` of control flow v1 is being built in `graph`.

    Checked: 2.16-2.21.
    """
    return graph._get_control_flow_context() is not None


def tpu_ops_module() -> Any:
    """The module through which `CrossShardOptimizer` calls `cross_replica_sum`.

    `compat.install` replaces that function: the op has no CPU kernel. Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu.ops import tpu_ops
    return tpu_ops


def tpu_module() -> Any:
    """The module that defines `replicate`, `shard`, `batch_parallel` and `rewrite`.

    All of them call its `split_compile_and_replicate`, which `compat.install` replaces.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.tpu import tpu
    return tpu


def tpu_cluster_resolver_module() -> Any:
    """The module that defines `TPUClusterResolver`, for `compat.install`. Checked: 2.16-2.21."""
    from tensorflow.python.distribute.cluster_resolver.tpu import tpu_cluster_resolver
    return tpu_cluster_resolver


def fast_callable(session: Any, feeds: Sequence[Any], fetches: Sequence[Any],
                  targets: Sequence[Any]) -> Callable[..., list[Any]]:
    """Takes arrays for `feeds`, runs `targets` too, and gives the values of `fetches`.

    It fails as `session.run` does, at a fraction of its cost; the public `make_callable` calls
    `run` where there are feeds. Checked: 2.16-2.21.
    """
    from tensorflow.core.protobuf import config_pb2
    call = session._make_callable_from_options(config_pb2.CallableOptions(
        feed=[one.name for one in feeds], fetch=[one.name for one in fetches],
        target=[one.name for one in targets]))
    return lambda *values: session._do_call(call, *values)


def modules_of_contrib() -> dict[str, Any]:
    """By name: what was in `tensorflow.contrib.tpu.python.tpu` once, and what `contrib.summary`
    and `contrib.framework.nest` were made of, since public names write other summaries and have
    fewer functions. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import summary_ops_v2
    from tensorflow.python.tpu import (
        bfloat16, device_assignment, feature_column, topology, tpu, tpu_function, tpu_optimizer,
        training_loop)
    from tensorflow.python.util import nest
    return {module.__name__.rpartition('.')[2]: module for module in (
        bfloat16, device_assignment, feature_column, nest, summary_ops_v2, topology, tpu,
        tpu_function, tpu_optimizer, training_loop)}


def auto_trackable() -> type:
    """The base class of objects whose attributes are saved by `tf.train.Checkpoint`.

    Public only below `tf.__internal__`. Checked: 2.16-2.21.
    """
    from tensorflow.python.trackable import autotrackable
    return autotrackable.AutoTrackable


def add_variable(owner: Any, name: str, shape: tuple[int, ...], initializer: Callable[[], Any],
                 create: Callable[..., Any]) -> Any:
    """Lets `create` make a variable that is tracked as the child `name` of a trackable.

    If `owner` was restored before, `initializer` is replaced by what gives the value restored.
    The public way, to assign an attribute, runs the initializer nevertheless, and cannot make
    children whose names hold a slash. Checked: 2.16-2.21.
    """
    return owner._add_variable_with_custom_getter(
        name=name, shape=shape, initializer=initializer, getter=create)


def random_initializers() -> tuple[type, ...]:
    """The classes of initializers whose values are random, one of which TableConfigs have.

    The public names are those of Keras. Checked: 2.16-2.21.
    """
    from tensorflow.python.ops import init_ops_v2
    return (init_ops_v2.RandomNormal, init_ops_v2.RandomUniform, init_ops_v2.TruncatedNormal,
            init_ops_v2.VarianceScaling)


def global_seed() -> int | None:
    """That of `tf.random.set_seed`, in eager mode; `None` before. Checked: 2.16-2.21."""
    from tensorflow.python.eager import context
    return context.global_seed()


def eager_mode() -> Any:
    """A context of eager mode within whatever this thread builds, of which it touches nothing.

    For what is called by the collector of garbage, at any place; `tf.init_scope` changes the graph.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.eager import context
    return context.eager_mode()


def is_saving_model() -> bool:
    """Whether functions are being traced for `tf.saved_model.save`. Checked: 2.16-2.21."""
    from tensorflow.python.saved_model import save_context
    return bool(save_context.in_save_context())


def create_slots(optimizer: Any, table: Any, create: Callable[..., Any]) -> dict[str, Any]:
    """The slots that an optimizer of `tf.tpu.experimental.embedding` wants for a table, by name.

    Made by its `slot_variable_creation_fn`, else by `create(name, initializer)`. No public name.
    Checked: 2.16-2.21.
    """
    return dict(optimizer._create_slots(table, create))


def joined_paths(structure: Any) -> list[tuple[str, Any]]:
    """The path of each leaf in a nested structure, such as `'a/0'`, and the leaf.

    In the order of `tf.nest.flatten`, with the paths that TensorFlow's own messages have.
    Checked: 2.16-2.21.
    """
    from tensorflow.python.util import nest
    return list(nest.flatten_with_joined_string_paths(structure))
