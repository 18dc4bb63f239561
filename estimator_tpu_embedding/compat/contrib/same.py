"""Lists the names of `tf.contrib` that were, or are here, other names for objects of `tf` itself.

The areas take them from here, and `advice` and `etpe doctor` name them.
"""

from __future__ import annotations

import functools
from typing import Any

_SAME: dict[str, dict[str, str]] = {
    # area: module below tf.compat.v1: names; `old=new` where the name is another one there
    'cluster_resolver': {
        'distribute.cluster_resolver':
            'ClusterResolver GceClusterResolver=GCEClusterResolver KubernetesClusterResolver '
            'SimpleClusterResolver SlurmClusterResolver TFConfigClusterResolver '
            'TPUClusterResolver UnionClusterResolver=UnionResolver'},
    'data': {
        'data.experimental':
            'AUTOTUNE Counter CsvDataset Optional RandomDataset Reducer SqlDataset TFRecordWriter '
            'bucket_by_sequence_length choose_from_datasets copy_to_device dense_to_sparse_batch '
            'enumerate_dataset get_next_as_optional get_single_element group_by_reducer '
            'group_by_window ignore_errors make_batched_features_dataset make_csv_dataset '
            'make_saveable_from_iterator map_and_batch map_and_batch_with_legacy_function '
            'parallel_interleave parse_example_dataset prefetch_to_device rejection_resample '
            'sample_from_datasets scan shuffle_and_repeat unbatch unique'},
    'framework': {
        'train':
            'assert_global_step create_global_step get_global_step get_or_create_global_step '
            'init_from_checkpoint list_variables load_checkpoint load_variable',
        '': 'argsort is_tensor sort'},
    'metrics': {
        '': 'confusion_matrix',
        'metrics': 'streaming_mean=mean streaming_mean_tensor=mean_tensor '
                   'streaming_percentage_less=percentage_below',
        'sets': 'set_difference=difference set_intersection=intersection set_size=size '
                'set_union=union'},
    'summary': {'summary': 'all_summary_ops=all_v2_summary_ops initialize'},
    'tpu': {
        'estimator.tpu': 'InputPipelineConfig RunConfig TPUConfig TPUEstimator TPUEstimatorSpec',
        'estimator.tpu.experimental': 'EmbeddingConfigSpec',
        'tpu': 'CrossShardOptimizer batch_parallel bfloat16_scope core cross_replica_sum '
               'initialize_system outside_compilation replicate rewrite shard shutdown_system',
        'tpu.experimental': 'AdagradParameters AdamParameters FtrlParameters '
                            'StochasticGradientDescentParameters'},
    'training': {'train': 'checkpoints_iterator'}}
_NOT_PROVIDED: dict[str, dict[str, str]] = {  # the same of areas and names that are not here
    'rnn': {
        'nn': 'static_bidirectional_rnn static_rnn static_state_saving_rnn',
        'nn.rnn_cell': 'BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell '
                       'LSTMStateTuple MultiRNNCell RNNCell ResidualWrapper'},
    'util': {'': 'constant_value=get_static_value make_ndarray make_tensor_proto'}}


def successor(path: str) -> str:
    """Returns the whole path of the same object today; `''` if there is none.

    Args:
      path: below `tf.contrib`; also through the packages that scripts of 2018 imported from.

    >>> successor('tpu.TPUConfig'), successor('layers.conv2d')
    ('tensorflow.compat.v1.estimator.tpu.TPUConfig', '')
    """
    return SUCCESSORS.get(path, '')


def names_of(area: str) -> dict[str, Any]:
    """Returns the objects of an area, by their names in it."""
    import tensorflow.compat.v1 as tf
    return {path.removeprefix(f'{area}.'): functools.reduce(getattr, home.split('.')[3:], tf)
            for path, home in SUCCESSORS.items() if path.startswith(f'{area}.')}


def _successors(areas: dict[str, dict[str, str]]) -> dict[str, str]:
    found = {}
    for area, modules in areas.items():
        for module, names in modules.items():
            for old, _, new in (name.partition('=') for name in names.split()):
                parts = ('tensorflow.compat.v1', module, new or old)
                found[f'{area}.{old}'] = '.'.join(part for part in parts if part)
    return found


SUCCESSORS = _successors(_SAME) | _successors(_NOT_PROVIDED)
"""By path below `tf.contrib`, the whole path of the same object today."""
