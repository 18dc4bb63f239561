"""Builds whole jobs in few lines: a TPUEstimator over arrays, and hooks that look inside."""

import numpy as np
import tensorflow.compat.v1 as tf

import estimator_tpu_embedding as ete
from estimator_tpu_embedding import _legacy
from estimator_tpu_embedding.core.partition import Partition


def identity_column(key, buckets=10):
    return tf.feature_column.categorical_column_with_identity(key, buckets)


def embedding(key, buckets=10, dimension=2, combiner='sum', **kwargs):
    return ete.embedding_column(identity_column(key, buckets), dimension, combiner, **kwargs)


def run_config(model_dir, hosts=1, cores=1, iterations=2, num_shards=None, **kwargs):
    """A RunConfig for an emulated system of a stated size; logs and summaries off.

    It waits two seconds, not a minute, for what a test lets hang. Checkpoints come without their
    graph, whose text takes a tenth of such a job.
    """
    return ete.RunConfig(
        cluster=ete.TPUClusterResolver(hosts=hosts, cores=cores), model_dir=str(model_dir),
        tpu_config=ete.TPUConfig(
            iterations_per_loop=iterations, num_shards=num_shards,
            per_host_input_for_training=ete.InputPipelineConfig.PER_HOST_V2),
        **{'save_checkpoints_steps': 100, 'save_summary_steps': 0,
           'log_step_count_steps': None, 'tf_random_seed': 1, 'shutdown_deadline_secs': 2.,
           'checkpoint_save_graph_def': False, **kwargs})


def estimator(model_fn, columns, config, *, batch_size=8, strategy='div', optimizer=None,
              **kwargs):
    """A TPUEstimator whose tables are trained by `optimizer`, Adagrad(0.5) if `None`."""
    return ete.TPUEstimator(
        model_fn=model_fn, config=config, train_batch_size=batch_size,
        eval_batch_size=batch_size, embedding_config_spec=ete.EmbeddingConfigSpec(
            feature_columns=columns, partition_strategy=strategy,
            optimization_parameters=optimizer or ete.AdagradParameters(0.5)),
        **{'predict_batch_size': batch_size, **kwargs})


def linear_model_fn(columns, make_optimizer=None, observe=None):
    """y = activations @ w, squared error; w starts at one. Predicts `y` and the activations `net`.

    Args:
      columns: of the model.
      make_optimizer: of w; gradient descent of rate 0.1, summed over shards, if `None`.
      observe: called with (features, loss) whenever the model is.
    """
    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        logits = tf.layers.dense(net, 1, use_bias=False, name='w',
                                 kernel_initializer=tf.ones_initializer())
        if mode == 'infer':
            return ete.TPUEstimatorSpec(mode, predictions={'y': logits[:, 0], 'net': net})
        loss = tf.reduce_mean(tf.square(logits[:, 0] - labels))
        if observe is not None:
            observe(features, loss)
        train_op = None
        if mode == 'train':
            optimizer = (make_optimizer() if make_optimizer
                         else ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1)))
            train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return ete.TPUEstimatorSpec(
            mode=mode, loss=loss, train_op=train_op,
            eval_metrics=(lambda labels, logits: {
                'mean_label': tf.metrics.mean(labels),
                'mean_square': tf.metrics.mean(tf.square(logits[:, 0] - labels))},
                [labels, logits]))
    return model_fn


def serving():
    """Receives the ids of a feature `f` when an exported model serves."""
    ids = tf.placeholder(tf.int64, [None])
    return _legacy.load().export.ServingInputReceiver({'f': ids}, {'f': ids})


def trained_spec(mode, loss, rate=.1):
    """A spec with a loss, which gradient descent, summed over shards, makes less in training."""
    train_op = None
    if mode == 'train':
        train_op = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(rate)).minimize(
            loss, tf.train.get_global_step())
    return ete.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def poisoned_spec(mode, net, first, poison):
    """Trains the mean sum of `net`; the gradient of `first` is 0 / 0 where `poison` is 0.

    What the root adds to the loss is below the last digit.
    """
    loss = tf.reduce_mean(tf.reduce_sum(net, 1)) + 1e-30 * tf.reduce_sum(
        tf.sqrt(poison * tf.square(first)))
    loss += tf.get_variable('w', [], initializer=tf.zeros_initializer())
    return trained_spec(mode, loss, .5)


def input_fn_of(steps):
    """An input_fn that deals global batches out to the cores, host by host.

    Args:
      steps: per step a dict `{feature: array [G, ...]}` with a key `'label'`; for a feature
        with lists of ids give a list of lists, which becomes a SparseTensor.
    """
    def input_fn(params):
        per_core = params['batch_size']
        _, host, _, replicas = params['context'].current_input_fn_deployment()
        batches = []
        for step in steps:
            for core in range(host * replicas, (host + 1) * replicas):
                rows = slice(core * per_core, (core + 1) * per_core)
                batches.append({key: values[rows] for key, values in step.items()})
        return dataset_of(batches)
    return input_fn


def dataset_of(batches):
    """A dataset of (features, label) whose elements are the given batches."""
    arrays = {key: np.stack([batch[key] for batch in batches])
              for key, value in batches[0].items() if isinstance(value, np.ndarray)}
    ragged = {key: tf.ragged.constant([batch[key] for batch in batches], dtype=tf.int64)
              for key, value in batches[0].items() if not isinstance(value, np.ndarray)}

    def split(element):
        features = {key: value.to_sparse() if isinstance(value, tf.RaggedTensor) else value
                    for key, value in element.items() if key != 'label'}
        return features, element['label']

    return tf.data.Dataset.from_tensor_slices({**arrays, **ragged}).map(split)


class AssignTable(tf.train.SessionRunHook):
    """Writes the rows of a whole table when the session begins."""

    def __init__(self, name, rows, strategy):
        self._name, self._rows, self._strategy = name, np.asarray(rows, np.float32), strategy

    def after_create_session(self, session, coord):
        parts = parts_of(session.graph, self._name)
        partition = Partition(strategy=self._strategy, vocabulary_size=len(self._rows),
                              num_hosts=len(parts))
        for host, part in enumerate(parts):
            part.load(self._rows[partition.ids_on(host)], session)


def parts_of(graph, name):
    """The part variables of a table, by host."""
    parts = {variable.op.name: variable for variable in graph.get_collection('variables')
             if variable.op.name.startswith(f'{name}/part_')}
    return [parts[f'{name}/part_{host}'] for host in range(len(parts))]


class EveryRun(tf.train.SessionRunHook):
    """Calls a function with the session after every run, and counts the runs."""

    def __init__(self, function=lambda session: None):
        self.runs, self._function = 0, function

    def after_run(self, run_context, run_values):
        self.runs += 1
        self._function(run_context.session)


def summaries_of(directory):
    """By tag the values of all steps, from the files of events in a directory."""
    found = {}
    for path in directory.glob('events*'):
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def stored(model_dir, name, strategy='div', hosts=1):
    """The rows of all ids, in order, from the newest checkpoint."""
    tensor = tf.train.load_variable(str(model_dir), name)
    partition = Partition(strategy=strategy, vocabulary_size=len(tensor), num_hosts=hosts)
    return tensor[partition.stored_row(np.arange(len(tensor)))]
