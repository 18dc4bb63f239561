"""Names the replacements for parts of `tf.contrib` that are not provided."""

from __future__ import annotations

from . import same

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


def missing(path: str) -> str:
    """Returns the message for a name that is not provided.

    Args:
      path: full path, such as `'tensorflow.contrib.layers.conv2d'`.

    >>> missing('tensorflow.contrib.nn.alpha_dropout')
    'tf.contrib.nn.alpha_dropout is not provided by install(contrib=True); use tf.nn'
    """
    name = path.removeprefix('tensorflow.contrib.')
    known = name
    while known and known not in REPLACEMENTS:
        known = known.rpartition('.')[0]
    if exact := same.successor(name):
        advice = f'; use {exact.replace("tensorflow", "tf", 1)}'
    else:
        advice = f'; use {REPLACEMENTS[known]}' if known else ''
    return f'tf.contrib.{name} is not provided by install(contrib=True){advice}'
