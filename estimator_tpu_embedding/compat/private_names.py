"""Says where private names of TensorFlow 1.15 to 2.15 are today: as aliases, or as advice.

`ALIASES` has what means the same today; `import_paths` puts it in place. `TODAY` has what has
another meaning, or only a public replacement. Scripts get advice on that. `tools/moved_names.py`
finds candidates, and a person reads them.
"""

from __future__ import annotations

import functools

TODAY: dict[str, tuple[str, ...]] = {
    # path below tensorflow.python: present home of its names
    'client.notebook': ('tf.compat.v1.Session',),
    'compiler.xla.experimental.xla': ('tf.xla.experimental',),
    'data.ops.dataset_ops.MapDataset': ('tensorflow.python.data.ops.map_op',),
    'data.ops.dataset_ops.ParallelMapDataset': ('tensorflow.python.data.ops.map_op',),
    'eager.function.defun': ('tf.function',),
    'eager.profiler': ('tf.profiler.experimental',),
    'keras.engine.network': ('tf.keras.Model',),
    **{f'keras.{name}': ('tf.keras',) for name in (
        'layers.cudnn_recurrent', 'layers.kernelized', 'layers.local', 'layers.noise',
        'layers.normalization', 'layers.preprocessing', 'layers.recurrent_v2', 'layers.wrappers',
        'premade', 'utils.multi_gpu_utils', 'wrappers')},
    'keras.mixed_precision.experimental': ('tf.keras.mixed_precision',),
    'lib.core.bfloat16': ('tf.bfloat16',),
    'ops.spectral_ops': ('tf.signal',),
    'training.distribute': ('tf.distribute',),
    'training.saving.functional_saver': ('tensorflow.python.checkpoint.functional_saver',),
}
ALIASES = """
=autograph.core.naming autograph.pyct.naming
=autograph.operators.special_values autograph.operators.variables
autograph.pyct.errors autograph.pyct.error_utils: ErrorMetadataBase MultilineMessageKeyError
=data.experimental.ops.distribute_options data.ops.options
=data.experimental.ops.optimization_options data.ops.options
=data.experimental.ops.threading_options data.ops.options
data.ops.dataset_ops data.ops.batch_op: ParallelBatchDataset=_ParallelBatchDataset
data.ops.dataset_ops data.ops.cache_op: CacheDataset
data.ops.dataset_ops data.ops.concatenate_op: ConcatenateDataset=_ConcatenateDataset
data.ops.dataset_ops data.ops.debug_mode: enable_debug_mode toggle_debug_mode
data.ops.dataset_ops data.ops.filter_op: FilterDataset=_FilterDataset
data.ops.dataset_ops data.ops.flat_map_op: FlatMapDataset=_FlatMapDataset
data.ops.dataset_ops data.ops.from_tensor_slices_op: TensorSliceDataset=_TensorSliceDataset
data.ops.dataset_ops data.ops.from_tensors_op: TensorDataset=_TensorDataset
data.ops.dataset_ops data.ops.interleave_op: InterleaveDataset=_InterleaveDataset
data.ops.dataset_ops data.ops.interleave_op: ParallelInterleaveDataset=_ParallelInterleaveDataset
data.ops.dataset_ops data.ops.options: AutotuneAlgorithm Options
data.ops.dataset_ops data.ops.padded_batch_op: PaddedBatchDataset=_PaddedBatchDataset
data.ops.dataset_ops data.ops.range_op: RangeDataset=_RangeDataset
data.ops.dataset_ops data.ops.shard_op: ShardDataset=_ShardDataset
data.ops.dataset_ops data.ops.skip_op: SkipDataset=_SkipDataset
data.ops.dataset_ops data.ops.take_op: TakeDataset=_TakeDataset
data.ops.dataset_ops data.ops.window_op: WindowDataset=_WindowDataset
data.ops.dataset_ops data.ops.zip_op: ZipDataset=_ZipDataset
data.util.nest data.util.nest: is_sequence=is_nested
=distribute.all_reduce distribute.v1.all_reduce
distribute.coordinator.values distribute.coordinator.remote_value: RemoteValue RemoteValueStatus
distribute.distribute_lib distribute.distribute_utils: get_loss_reduction
=distribute.distribution_strategy_context distribute.distribute_lib
distribute.input_lib distribute.input_util: get_distributed_datasets_from_function
distribute.input_lib distribute.v1.input_lib: DistributedDatasetsFromFunctionV1
distribute.input_lib distribute.v1.input_lib: DistributedIteratorV1 InputFunctionIterator
distribute.input_lib types.distribute: DistributedDatasetInterface DistributedIteratorInterface
distribute.tpu_values distribute.tpu_util: enclosing_tpu_context
distribute.values distribute.distribute_utils: is_distributed_variable select_replica
distribute.values distribute.distribute_utils: validate_colocate value_container
distribute.values distribute.distribute_utils: validate_colocate_distributed_variable
distribute.values distribute.ps_values: AggregatingVariable
distribute.values distribute.tpu_values: TPUMirroredVariable TPUSyncOnReadVariable TPUVariableMixin
eager.context eager.context: VirtualDeviceConfiguration=LogicalDeviceConfiguration
eager.def_function eager.polymorphic_function.eager_function_run: experimental_functions_run_eagerly
eager.def_function eager.polymorphic_function.eager_function_run: experimental_run_functions_eagerly
eager.def_function eager.polymorphic_function.polymorphic_function: OptionalXlaContext
eager.function eager.polymorphic_function.function_type_utils: is_same_structure
eager.function eager.polymorphic_function.polymorphic_function: class_method_to_instance_method
=eager.polymorphic_function.monomorphic_function eager.polymorphic_function.concrete_function
eager.tape eager.record: VariableWatcher could_possibly_record record_operation
eager.tape eager.record: record_operation_backprop_only record_operation_forwardprop_only
eager.tape eager.record: should_record_backprop stop_recording
=feature_column.dense_features tf_keras.src.feature_column.dense_features
=feature_column.dense_features_v2 tf_keras.src.feature_column.dense_features_v2
feature_column.feature_column_v2 feature_column.feature_column_v2_types: FeatureColumn
feature_column.sequence_feature_column tf_keras.experimental: SequenceFeatures
framework.config framework.config: get_virtual_device_configuration=get_logical_device_configuration
framework.config framework.config: set_virtual_device_configuration=set_logical_device_configuration
framework.graph_util framework.convert_to_constants: convert_variables_to_constants
framework.graph_util_impl framework.convert_to_constants: convert_variables_to_constants
framework.ops framework.indexed_slices: IndexedSlices IndexedSlicesValue
framework.ops framework.indexed_slices: convert_n_to_tensor_or_indexed_slices
framework.ops framework.indexed_slices: convert_to_tensor_or_indexed_slices
framework.ops framework.indexed_slices: internal_convert_n_to_tensor_or_indexed_slices
framework.ops framework.indexed_slices: internal_convert_to_tensor_or_indexed_slices
framework.ops framework.stack: default_session
framework.ops framework.tensor: Tensor disable_tensor_equality enable_tensor_equality
framework.ops framework.tensor_conversion: convert_to_tensor_v1 convert_to_tensor_v2
framework.ops framework.tensor_conversion: convert_to_tensor_v1_with_dispatch
framework.ops framework.tensor_conversion: convert_to_tensor_v2_with_dispatch
framework.ops framework.tensor_conversion_registry: register_tensor_conversion_function
framework.ops ops.handle_data_util: get_handle_data
framework.tensor_spec framework.tensor: sanitize_spec_name
framework.tensor_util ops.shape_util: maybe_set_static_shape shape_tensor
framework.type_spec framework.type_spec_registry: get_name lookup register
=keras.applications tf_keras.src.applications
=keras.datasets tf_keras.src.datasets
=keras.feature_column tf_keras.src.feature_column
=keras.preprocessing tf_keras.src.preprocessing
ops.array_ops ops.array_ops_stack: stack unstack
ops.bincount_ops ops.sparse_ops: sparse_bincount
ops.control_flow_ops framework.smart_cond: smart_cond
ops.control_flow_ops ops.cond: cond cond_for_tf_v2
ops.control_flow_ops ops.control_flow_assert: Assert
ops.control_flow_ops ops.control_flow_case: case case_v2
ops.control_flow_ops ops.control_flow_switch_case: execute_fn_for_device switch_case
ops.control_flow_ops ops.while_loop: while_loop while_loop_v2
ops.custom_gradient ops.handle_data_util: copy_handle_data
ops.gen_dataset_ops ops.gen_optional_ops: optional_from_value optional_get_value
ops.gen_dataset_ops ops.gen_optional_ops: optional_has_value optional_none
ops.gen_lookup_ops ops.gen_experimental_dataset_ops: initialize_table_from_dataset
ops.gen_math_ops ops.gen_special_math_ops: bessel_i0e bessel_i1e
=ops.gen_user_ops user_ops.ops.gen_user_ops
ops.gradients_util eager.backprop_util: IsTrainable
=ops.linalg.registrations_util ops.linalg.property_hint_util
ops.lookup_ops data.experimental.ops.lookup_ops: DatasetInitializer
=ops.losses.loss_reduction tf_keras.src.utils.losses_utils
ops.losses.util ops.losses.losses_impl: compute_weighted_loss
ops.math_ops framework.override_binary_operator: maybe_promote_tensors
ops.math_ops ops.bincount_ops: bincount_v1
ops.nn_impl ops.nn_impl: l2_normalize_v2=l2_normalize
ops.nn_impl ops.nn_impl_distribute: compute_average_loss scale_regularization_loss
ops.random_ops ops.random_crop_ops: random_crop stateless_random_crop
=ops.rnn_cell_wrapper_impl keras.layers.legacy_rnn.rnn_cell_wrapper_impl
ops.stateful_random_ops ops.random_ops_util: Algorithm
ops.stateless_random_ops ops.random_ops_util: Algorithm convert_alg_to_int
ops.stateless_random_ops ops.random_ops_util: unsupported_alg_error_msg
ops.variable_scope ops.ref_variable: default_variable_creator
ops.variable_scope ops.resource_variable_ops: default_variable_creator_v2
ops.variable_scope ops.resource_variables_toggle: disable_resource_variables
ops.variable_scope ops.resource_variables_toggle: enable_resource_variables
ops.variable_scope ops.resource_variables_toggle: resource_variables_enabled
ops.variable_scope ops.variable_v1: variable=VariableV1
ops.variables ops.ref_variable: RefVariable
ops.variables ops.variable_v1: VariableV1 is_variable_initialized
pywrap_tensorflow training.py_checkpoint_reader: NewCheckpointReader
=saved_model.load_context distribute.load_context
saved_model.utils_impl framework.byte_swap_tensor: byte_swap_tensor_content byte_swappable
saved_model.utils_impl saved_model.path_helpers: get_assets_dir get_debug_dir get_variables_dir
saved_model.utils_impl saved_model.path_helpers: get_or_create_assets_dir get_or_create_debug_dir
saved_model.utils_impl saved_model.path_helpers: get_or_create_variables_dir get_variables_path
saved_model.utils_impl saved_model.path_helpers: get_saved_model_pb_path get_saved_model_pbtxt_path
=tensorflow_core tensorflow
=tf_keras.legacy_tf_layers tf_keras.src.legacy_tf_layers
=tpu._tpu_estimator_embedding tensorflow_estimator.python.estimator.tpu._tpu_estimator_embedding
=tpu.ops.gen_tpu_embedding_ops ops.gen_tpu_ops
tpu.tpu tpu.tpu_replication: OutsideCompilationV2Context TPUReplicateContext is_tpu_strategy
tpu.tpu tpu.tpu_replication: outside_compilation
tpu.tpu_embedding_v2 tpu.tpu_embedding_for_serving: cpu_embedding_lookup
tpu.tpu_embedding_v2 tpu.tpu_embedding_v2_utils: get_list_of_hosts
=training.checkpointable
=training.checkpointable.base trackable.base checkpoint.restore trackable.constants
training.checkpointable.base trackable.base: Checkpointable=Trackable CheckpointableBase=Trackable
=training.checkpointable.data_structures trackable.data_structures
=training.checkpointable.tracking trackable.autotrackable trackable.resource trackable.asset
training.checkpointable.tracking trackable.autotrackable: AutoCheckpointable=AutoTrackable
=training.checkpointable.util checkpoint.checkpoint checkpoint.util
=training.distribution_strategy_context distribute.distribute_lib
training.saver.BaseSaverBuilder training.saving.saveable_object_util: OpListToDict=op_list_to_dict
=training.saving.checkpoint_options checkpoint.checkpoint_options
=training.tracking
=training.tracking.asset trackable.asset
=training.tracking.autotrackable trackable.autotrackable
=training.tracking.base trackable.base checkpoint.restore trackable.constants
=training.tracking.base_delegate trackable.base_delegate
=training.tracking.data_structures trackable.data_structures
=training.tracking.graph_view checkpoint.graph_view checkpoint.save_util_v1
=training.tracking.layer_utils trackable.layer_utils
=training.tracking.python_state trackable.python_state
=training.tracking.resource trackable.resource
=training.tracking.trackable_utils trackable.trackable_utils
=training.tracking.tracking trackable.autotrackable trackable.resource trackable.asset
training.tracking.tracking trackable.asset: TrackableAsset=Asset
=training.tracking.util checkpoint.checkpoint checkpoint.util
util.nest util.nest: is_sequence=is_nested
util.tf_export estimator_tpu_embedding.compat.import_paths: estimator_export=exports_nothing
"""
"""A line per old module or class, its home today, and the names; `old=new` for other names.

A module after `=` is gone. It is the module of its home, or looks in all of them.
"""
BUILDER = 'tensorflow.python.training.saver.BaseSaverBuilder'
"""The one class in the table."""


@functools.cache
def homes() -> dict[str, tuple[str, ...]]:
    """Returns the modules in which each module that is gone finds its names, by its whole path."""
    parts = (line[1:].split() for line in ALIASES.split('\n') if line.startswith('='))
    return {_whole(old): tuple(map(_whole, new)) for old, *new in parts}


@functools.cache
def names() -> dict[str, dict[str, tuple[str, str]]]:
    """Returns home and name today of each name, by the module or class that had it.

    >>> names()['tensorflow.python.util.nest']['is_sequence']
    ('tensorflow.python.util.nest', 'is_nested')
    """
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for left, _, right in (line.partition(': ') for line in ALIASES.split('\n') if ': ' in line):
        old, home = map(_whole, left.split())
        for pair in right.split():
            name, _, new = pair.partition('=')
            found.setdefault(old, {})[name] = home, new or name
    return found


def advice(path: str) -> str | None:
    """Returns a line for the user about the full name of what is missing; `None` if unknown.

    >>> advice('tensorflow.python.eager.function.defun')
    'tensorflow.python.eager.function.defun is private and has moved: use tf.function'
    """
    known = path
    while known and known not in _advised():
        known = known.rpartition('.')[0]
    today = ', '.join(_advised().get(known, ()))
    return f'{known} is private and has moved: use {today}' if known else None


@functools.cache
def _advised() -> dict[str, tuple[str, ...]]:
    known = {**homes(), **{_whole(path): new for path, new in TODAY.items()}}
    return {path: new for path, new in known.items() if new}


def _whole(path: str) -> str:
    is_whole = path.startswith(('tensorflow', 'tf_keras.', 'estimator_tpu_embedding.'))
    return path if is_whole else f'tensorflow.python.{path}'
