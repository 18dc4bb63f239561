"""Holds every private symbol of TensorFlow that this package borrows, one function for each.

No other folder imports `tensorflow.python`. Each module covers one area. Each docstring says why no
public symbol would do, and on which versions the symbol was checked by `tools/noxfile.py`.
Functions import TensorFlow when they are called, so importing this package costs nothing. Callers
write `_tf.name()` for every module but `distribute`, which its few users import themselves.
"""

from .columns import (
    column_ids,
    columns_used,
    computed_columns,
    forget_column_scopes,
    identity_columns,
    is_tensor_core_column,
    old_tpu_embedding_columns,
    other_columns_of_a_spec,
    recorded_column_scopes,
    tensor_core_length,
    tpu_embedding_columns,
)
from .gradients import bounded_gradients
from .graphs import (
    collections_of,
    copied_variable_store,
    discarded_graph,
    function_of,
    global_step_read,
    graph_def_kept,
    is_compiled_by_xla,
    is_in_control_flow,
    is_inside_control_flow,
    keras_name_counters,
    move,
    put_collections,
    put_keras_name_counters,
    put_on,
    put_variable_scope_state,
    replace_control_inputs,
    replace_input,
    thread_local_stacks,
    variable_scope_state,
    wait_for,
    wait_instead,
)
from .repeats import Repeats, inputs_seen, repeats_shared
from .saving import (
    add_listeners,
    arrange_scaffold,
    begin_saving,
    replace_saver,
    saver_builder,
    saving_listeners,
)
from .sessions import (
    ask_nothing,
    cached_summary_writers,
    creator_that_tells,
    eager_mode,
    fast_callable,
    global_seed,
    is_recording_gradients,
    is_saving_model,
    joined_paths,
    leave_session,
    mark_unopened,
    pass_calls_through,
    register_function,
    session_class,
    summary_writer_initializers,
    without_deprecation_warnings,
)
from .tpu import (
    create_slots,
    generated_tpu_ops_module,
    keep_arg_scopes_by_thread,
    modules_of_contrib,
    tpu_cluster_resolver_module,
    tpu_module,
    tpu_ops_module,
    tpu_shard_context,
)
from .variables import (
    add_variable,
    auto_trackable,
    full_name_and_shape,
    last_creator_scope,
    random_initializers,
    resource_variable,
    without_tracking_wrapper,
)
