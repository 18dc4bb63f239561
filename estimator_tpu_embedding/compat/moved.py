"""Advises on private names of TensorFlow that scripts imported: says where each one is today.

They are no part of TensorFlow's interface. So a script gets advice, and not the old names. The
advice names a public replacement if there is one.
"""

from __future__ import annotations

_TRACKABLE = tuple(f'tensorflow.python.{module}' for module in (
    'trackable.base', 'trackable.autotrackable', 'trackable.data_structures',
    'checkpoint.checkpoint'))

TODAY: dict[str, tuple[str, ...]] = {
    # path below tensorflow.python: present home of its names
    'client.notebook': ('tf.compat.v1.Session',),
    'compiler.xla.experimental.xla': ('tf.xla.experimental',),
    'data.experimental.ops.distribute_options': ('tf.data.experimental.DistributeOptions',),
    'data.experimental.ops.optimization_options': ('tf.data.experimental.OptimizationOptions',),
    'data.experimental.ops.threading_options': ('tf.data.ThreadingOptions',),
    'data.ops.dataset_ops.MapDataset': ('tensorflow.python.data.ops.map_op',),
    'data.ops.dataset_ops.RangeDataset': ('tensorflow.python.data.ops.range_op',),
    'data.ops.dataset_ops.TensorSliceDataset': (
        'tensorflow.python.data.ops.from_tensor_slices_op',),
    'distribute.distribution_strategy_context': ('tf.distribute',),
    'eager.function.defun': ('tf.function',),
    'eager.profiler': ('tf.profiler.experimental',),
    'feature_column.dense_features': ('tf.compat.v1.keras.layers.DenseFeatures',),
    'feature_column.dense_features_v2': ('tf.compat.v1.keras.layers.DenseFeatures',),
    'framework.ops.IndexedSlices': ('tf.IndexedSlices',),
    'framework.ops.Tensor': ('tf.Tensor',),
    'framework.ops.convert_to_tensor_or_indexed_slices': (
        'tf.compat.v1.convert_to_tensor_or_indexed_slices',),
    'framework.ops.register_tensor_conversion_function': (
        'tf.register_tensor_conversion_function',),
    'keras.applications': ('tf.keras.applications',),
    'keras.datasets': ('tf.keras.datasets',),
    'keras.engine.network': ('tf.keras.Model',),
    'keras.feature_column': ('tf.compat.v1.keras.layers.DenseFeatures',),
    'keras.mixed_precision.experimental': ('tf.keras.mixed_precision',),
    'keras.preprocessing': ('tf.keras.preprocessing',),
    'lib.core.bfloat16': ('tf.bfloat16',),
    'ops.array_ops.stack': ('tf.stack',),
    'ops.array_ops.unstack': ('tf.unstack',),
    'ops.control_flow_ops.Assert': ('tf.debugging.Assert',),
    'ops.control_flow_ops.case': ('tf.case',),
    'ops.control_flow_ops.cond': ('tf.cond',),
    'ops.control_flow_ops.smart_cond': ('tensorflow.python.framework.smart_cond.smart_cond',),
    'ops.control_flow_ops.switch_case': ('tf.switch_case',),
    'ops.control_flow_ops.while_loop': ('tf.while_loop',),
    'ops.losses.util.compute_weighted_loss': ('tf.compat.v1.losses.compute_weighted_loss',),
    'ops.spectral_ops': ('tf.signal',),
    'ops.variables.RefVariable': ('tensorflow.python.ops.ref_variable.RefVariable',),
    'ops.variables.VariableV1': ('tf.compat.v1.Variable',),
    'pywrap_tensorflow.NewCheckpointReader': ('tf.compat.v1.train.NewCheckpointReader',),
    'tpu.tpu.outside_compilation': ('tf.compat.v1.tpu.outside_compilation',),
    'training.checkpointable': _TRACKABLE,
    'training.distribute': ('tf.distribute',),
    'training.distribution_strategy_context': ('tf.distribute',),
    'training.saving.checkpoint_options': ('tf.train.CheckpointOptions',),
    'training.saving.functional_saver': ('tensorflow.python.checkpoint.functional_saver',),
    'training.tracking': _TRACKABLE,
}
EXACT = frozenset({  # those whose present home has the same object, with the same arguments
    'framework.ops.IndexedSlices', 'framework.ops.Tensor',
    'framework.ops.convert_to_tensor_or_indexed_slices',
    'framework.ops.register_tensor_conversion_function', 'ops.array_ops.stack',
    'ops.array_ops.unstack', 'ops.control_flow_ops.Assert', 'ops.control_flow_ops.switch_case',
    'ops.variables.VariableV1', 'pywrap_tensorflow.NewCheckpointReader',
    'tpu.tpu.outside_compilation'})
_CORE = 'tensorflow_core'
"""The package that `tensorflow` stood for in TensorFlow 1.15 and 2.0."""


def advice(path: str) -> str | None:
    """Returns a line for the user about a missing name; `None` for an unknown name.

    Args:
      path: the full name of a module, or of a name in it.

    >>> advice('tensorflow.python.eager.function.defun')
    'tensorflow.python.eager.function.defun is private and has moved: use tf.function'
    """
    if path == _CORE or path.startswith(f'{_CORE}.'):
        return f'{path} is called {path.replace(_CORE, "tensorflow", 1)} today'
    name = path.removeprefix('tensorflow.python.')
    if name == path:
        return None
    known = name
    while known and known not in TODAY:
        known = known.rpartition('.')[0]
    if not known:
        return None
    return (f'tensorflow.python.{known} is private and has moved: use '
            f'{", ".join(TODAY[known])}')


def successor(path: str) -> str:
    """Returns the public path of the same object today; `''` if there is none.

    >>> successor('tensorflow.python.ops.array_ops.stack')
    'tensorflow.stack'
    """
    name = path.removeprefix('tensorflow.python.')
    return TODAY[name][0].replace('tf.', 'tensorflow.', 1) if name in EXACT else ''
