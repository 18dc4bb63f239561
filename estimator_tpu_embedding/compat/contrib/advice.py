"""Says what takes the place of names of `tf.contrib`: the same objects in `tf`, or other ones.

The areas take their names from here, and `etpe doctor` names them.
"""

from __future__ import annotations

import functools
from typing import Any

_ADDONS = 'the package tensorflow-addons, or write it yourself'
_PROBABILITY = 'the package tensorflow-probability'

REPLACEMENTS = {
    'autograph': 'tf.autograph', 'bayesflow': _PROBABILITY, 'checkpoint': 'tf.train.Checkpoint',
    'cloud': 'the package tensorflow-io', 'cluster_resolver.TPUConfig': 'tf.contrib.tpu.TPUConfig',
    'compiler': 'tf.xla.experimental', 'crf': _ADDONS, 'cudnn_rnn': 'tf.keras.layers.LSTM, GRU',
    'data.assert_element_shape': 'tf.ensure_shape in a map',
    'data.make_one_shot_iterator': 'tf.data.make_one_shot_iterator',
    'data.read_batch_features': 'tf.data.experimental.make_batched_features_dataset',
    'data.reduce_dataset': 'dataset.reduce', 'data.sliding_window_batch': 'dataset.window',
    'distribute': 'tf.distribute', 'distributions': _PROBABILITY,
    'eager': 'tf.enable_eager_execution, tf.Variable',
    'estimator': 'tf.estimator, tf.estimator.experimental',
    'feature_column': 'tf.feature_column, tf.keras.experimental.SequenceFeatures',
    'framework.load_and_remap_matrix': 'tf.train.warm_start',
    'gan': 'the package tensorflow-gan', 'graph_editor': 'tf.graph_util',
    'image': f'tf.image, {_ADDONS}', 'keras': 'tf.keras', 'learn': 'tf.estimator',
    'layers': 'tf.layers, tf.feature_column',
    'layers.bucketized_column': 'tf.feature_column.bucketized_column',
    'layers.crossed_column': 'tf.feature_column.crossed_column',
    'layers.embedding_column': 'tf.feature_column.embedding_column',
    'layers.real_valued_column': 'tf.feature_column.numeric_column',
    'layers.safe_embedding_lookup_sparse': 'tf.nn.safe_embedding_lookup_sparse',
    'layers.sparse_column_with_hash_bucket':
        'tf.feature_column.categorical_column_with_hash_bucket',
    'layers.sparse_column_with_integerized_feature':
        'tf.feature_column.categorical_column_with_identity',
    'legacy_seq2seq': 'tf.nn.dynamic_rnn', 'linear_optimizer': 'tf.train.FtrlOptimizer',
    'lite': 'tf.lite', 'lookup': 'tf.lookup, tf.lookup.StaticHashTable',
    'lookup.HashTable': 'tf.lookup.StaticHashTable',
    'lookup.index_table_from_file':
        'tf.lookup.StaticVocabularyTable with tf.lookup.TextFileInitializer',
    'metrics': 'tf.metrics',
    'mixed_precision': 'tf.train.experimental, loss scaling',
    'nn': 'tf.nn', 'opt': _ADDONS, 'predictor': 'tf.saved_model.load',
    'quantize': 'the package tensorflow-model-optimization',
    'model_pruning': 'the package tensorflow-model-optimization',
    'rnn': 'tf.nn.rnn_cell, which has most cells', 'saved_model': 'tf.saved_model',
    'seq2seq': _ADDONS,
    'stateless': 'tf.random.stateless_uniform, stateless_normal',
    'summary.create_db_writer': 'tf.contrib.summary.create_file_writer',
    'tensor_forest': 'the package tensorflow-decision-forests',
    'tpu.Topology': 'tf.tpu.experimental.Topology', 'tpu.topology': 'tf.tpu.experimental.Topology',
    'tpu.DeviceAssignment': 'tf.tpu.experimental.DeviceAssignment',
    'tpu.TPUDistributionStrategy': 'tf.contrib.tpu.TPUEstimator',
    'tpu.keras_to_tpu_model': 'tf.contrib.tpu.TPUEstimator',
    'training.bucket_by_sequence_length': 'tf.data.experimental.bucket_by_sequence_length',
    'util': 'tf.get_static_value, tf.make_tensor_proto, tf.make_ndarray',
}
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


def names_of(area: str) -> dict[str, Any]:
    """Returns the objects of an area, by their names in it."""
    import tensorflow.compat.v1 as tf
    return {path.removeprefix(f'{area}.'): functools.reduce(getattr, home.split('.')[3:], tf)
            for path, home in SUCCESSORS.items() if path.startswith(f'{area}.')}


def missing(path: str) -> str:
    """Returns the message for a name that is not provided, by its full path.

    >>> missing('tensorflow.contrib.nn.alpha_dropout')
    'tf.contrib.nn.alpha_dropout is not provided by install(contrib=True); use tf.nn'
    """
    name = path.removeprefix('tensorflow.contrib.')
    known = name
    while known and known not in REPLACEMENTS:
        known = known.rpartition('.')[0]
    if exact := SUCCESSORS.get(name):
        advice = f'; use {exact.replace("tensorflow", "tf", 1)}'
    else:
        advice = f'; use {REPLACEMENTS[known]}' if known else ''
    return f'tf.contrib.{name} is not provided by install(contrib=True){advice}'
