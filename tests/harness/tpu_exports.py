"""Jobs whose exports have a TPU graph, built here and by TensorFlow 2.15.

So it imports nothing but TensorFlow, under the names that TensorFlow 2.15 had. A plain CPU trains
the models for one step, which gives them a checkpoint.
"""

import os
from typing import Any

import tensorflow.compat.v1 as tf

from . import tpu_graphs

LENGTH = 3
JOBS: dict[str, dict[str, Any]] = {  # What differs from the plainest job.
    'no tables': {},
    'columns': {'columns': True},
    'columns in batches': {'columns': True, 'is_dense': True, 'rewrites': 'whole'},
    'tensor core': {'columns': True, 'tensor_core': True},
    'part on a TPU': {'columns': True, 'layers': True, 'rewrites': 'part'},
    'TPU alone': {'columns': True, 'export_to_cpu': False}}


def _columns(is_dense, layers, tensor_core):
    by_identity = tf.feature_column.categorical_column_with_identity
    embedding_column = tf.tpu.experimental.embedding_column
    liked = by_identity('liked', 22)
    plain = [
        *tf.tpu.experimental.shared_embedding_columns(
            [by_identity('watched', 22), liked if is_dense else
             tf.feature_column.weighted_categorical_column(liked, 'how_much')],
            dimension=4, combiner='mean', initializer=tf.constant_initializer(0.5)),
        embedding_column(by_identity('who', 7), dimension=4, combiner='sum', **(
            {'embedding_lookup_device': 'tpu_tensor_core', 'tensor_core_shape': [2, LENGTH]}
            if tensor_core else {}))]
    return plain, [] if is_dense or not layers else [embedding_column(
        tf.feature_column.sequence_categorical_column_with_identity('history', 22), dimension=4,
        max_sequence_length=LENGTH)]


def _features(columns, is_dense, make, make_sparse):
    """The features of a job, made of their type and their shape in a batch."""
    features = {'dense': make('dense', tf.float32, [None, 2])}
    if columns:
        for name in ['watched', 'liked', 'who', 'history']:
            features[name] = (make(name, tf.int64, [None, 2]) if is_dense
                              else make_sparse(name, tf.int64))
        if not is_dense:
            features['how_much'] = make_sparse('how_much', tf.float32)
    return features


def model_fn_of(plain, sequence, layers, rewrites):
    """A model that API version 2 may rewrite as a whole or in part."""
    def looked_up(features):
        parts = [features['dense']]
        if plain and layers:
            parts.append(tf.keras.layers.DenseFeatures(plain)(features))
        elif plain:  # A layer of 2.15 takes no other of these in a TPU graph than shared ones.
            parts += [tf.keras.layers.DenseFeatures(plain[:2])(features),
                      tf.feature_column.input_layer(features, plain[2:])]
        if sequence:
            of_history, _ = tf.keras.experimental.SequenceFeatures(sequence)(features)
            parts.append(tf.reduce_sum(of_history, 1))
        return tf.concat(parts, 1)

    def network(features):
        return top(looked_up(features))

    def top(net):
        return net * 2.0, tf.layers.dense(net, 1, name='top')

    def spec(mode, net, logits):
        outputs = tf.estimator.export
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, predictions={'net': net, 'y': logits}, export_outputs={
                'serving_default': outputs.PredictOutput({'net': net, 'y': logits}),
                'score': outputs.ClassificationOutput(scores=tf.sigmoid(logits)),
                'line': outputs.RegressionOutput(logits)} if rewrites != 'part' else None)

    def predicting(features, labels, mode, params):
        return spec(mode, *network(features))

    def model_fn(features, labels, mode, params):
        from tensorflow_estimator.python.estimator.tpu import tpu_estimator
        if mode != tf.estimator.ModeKeys.PREDICT:
            loss = tf.losses.mean_squared_error(labels, network(features)[1])
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode, loss=loss, train_op=tf.train.AdagradOptimizer(0.1).minimize(
                    loss, tf.train.get_global_step()))
        if not rewrites or not params['use_tpu']:
            return predicting(features, labels, mode, params)
        if rewrites == 'whole':
            return tpu_estimator.model_fn_inference_on_tpu(
                predicting, features, labels, None, params,
                tpu_estimator.BatchConfig(2, 8, 1000, [4, 8]))
        return spec(mode, *tpu_estimator.inference_on_tpu(
            top, [looked_up(features)], 1, 8, 100))

    return model_fn


def export(name, directory):
    """Trains and exports a job, and returns the directory of the export."""
    return _export(directory, **JOBS[name])


def _export(directory, columns=False, layers=False, is_dense=False, rewrites=None,
            tensor_core=False, **more):
    tpu = tf.estimator.tpu
    plain, sequence = _columns(is_dense, layers, tensor_core) if columns else ([], [])
    spec = None
    if columns:
        from tensorflow.python.tpu import tpu_embedding
        spec = tpu.experimental.EmbeddingConfigSpec(
            [*plain, *sequence],
            optimization_parameters=tpu_embedding.AdagradParameters(0.5))
    estimator = tpu.TPUEstimator(
        model_fn_of(plain, sequence, layers, rewrites), model_dir=os.path.join(directory, 'model'),
        config=tpu.RunConfig(
            tf_random_seed=1, tpu_config=tpu.TPUConfig(
                per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2),
            # TensorFlow 2.15 restores no TPU graph on a CPU without it.
            session_config=tf.ConfigProto(graph_options=tf.GraphOptions(place_pruned_graph=True))),
        train_batch_size=2, embedding_config_spec=spec, use_tpu=False,
        export_saved_model_api_version=2 if rewrites else 1, **more)

    def tensor(name, kind, shape):
        return tf.ones([2, *shape[1:]], kind)

    def sparse(name, kind):
        return tf.SparseTensor([[0, 0], [1, 0]], tf.constant([3, 5], kind), [2, 2])

    estimator.train(lambda params: tf.data.Dataset.from_tensors(
        (_features(columns, is_dense, tensor, sparse), tf.ones([2, 1]))).repeat(), steps=1)

    def receiver():
        features = _features(
            columns, is_dense, lambda name, kind, shape: tf.placeholder(kind, shape, name),
            lambda name, kind: tf.sparse_placeholder(kind, [None, None], name))
        return tf.estimator.export.ServingInputReceiver(features, features)

    return estimator.export_saved_model(os.path.join(directory, 'export'), receiver).decode()


def tpu_graph_of(path):
    """The TPU graph of an export, as a MetaGraphDef."""
    from tensorflow.core.protobuf import saved_model_pb2
    with open(os.path.join(path, 'saved_model.pb'), 'rb') as file:
        saved = saved_model_pb2.SavedModel.FromString(file.read())
    return next(one for one in saved.meta_graphs if 'tpu' in one.meta_info_def.tags)


def summary_of(name, directory):
    """What `tpu_graphs.differences` compares of the TPU graph of a job."""
    return tpu_graphs.of_meta_graph(tpu_graph_of(export(name, directory)))
