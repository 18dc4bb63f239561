#!/usr/bin/env python3
"""Times a whole job: a TPUEstimator beside the same model on a plain Estimator.

    python3 tools/bench/job.py [--shrink K] [--rounds 4] [--steps 300] [--kernels native]
        [--json FILE]

needs the package with its `cpu` extra. The model has the tables of W2 (`workloads.py`), a hidden
layer over their activations and a logistic loss. Adagrad trains the tables, and gradient descent
trains the rest. On the plain Estimator the columns are TensorFlow's own `embedding_column`, and
one AdagradOptimizer trains all. It runs as shipped, and tuned, with grappler's arithmetic
optimizer off. Input comes from batches in memory.

The three train in turn, so many rounds of so many steps. A hook looks at the clock every 50 steps;
a window is the time between two looks, without the first of each round. Prints the median
milliseconds per step, and the ratio to ours, which is the median over the rounds.
"""

import argparse
import itertools
import os
import statistics
import tempfile
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import estimator_tpu_embedding as ete  # noqa: E402

ete.install()

import evidence  # noqa: E402
import numpy as np  # noqa: E402
import sessions  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from workloads import ACCUMULATOR, RATE, WORKLOADS  # noqa: E402

WINDOW, UNITS = 50, 32


class Clock(tf.train.SessionRunHook):
    """Measures milliseconds per step of each window but the first."""

    def __init__(self):
        self.windows, self._runs, self._began = [], 0, 0.0

    def after_run(self, run_context, run_values):
        """Looks at the clock where a window ends."""
        self._runs += 1
        if self._runs % WINDOW == 0:
            now = time.perf_counter()
            if self._runs > WINDOW:
                self.windows.append(1e3 * (now - self._began) / WINDOW)
            self._began = now


def input_fn_of(workload):
    """Returns an input_fn that repeats the batches of the workload, by column, with labels."""
    names = [f'f{k:03}' for k in range(len(workload.features))]
    batches = [dict(zip(names, batch)) for batch in workload.feeds()]
    labels = np.random.default_rng(2).integers(0, 2, [workload.batch, 1]).astype(np.float32)

    def input_fn(params=None):
        if not params:
            own = slice(None)
        else:  # Each host of a TPUEstimator gets a part of its own.
            begin = params['context'].current_host * params['batch_size']
            own = slice(begin, begin + params['batch_size'])
        parts = [({name: ids[own] for name, ids in batch.items()}, labels[own])
                 for batch in batches]
        types, shapes = (tf.nest.map_structure(lambda one: getattr(one, kind), parts[0])
                         for kind in ('dtype', 'shape'))
        # The graph does not hold the data: a job has them in files. The cache is memory.
        return tf.data.Dataset.from_generator(
            lambda: parts, types, shapes).cache().repeat().prefetch(2)

    return input_fn


def loss_of(columns, features, labels, units):
    """Builds the model, and returns its loss."""
    net = tf.keras.layers.DenseFeatures(columns)(features)
    net = tf.keras.layers.Dense(1)(tf.keras.layers.Dense(units, 'relu')(net))
    return tf.losses.sigmoid_cross_entropy(labels, net)


def categorical(workload):
    """Returns a column of ids per feature."""
    return [tf.feature_column.categorical_column_with_identity(
        f'f{k:03}', workload.tables[feature.table][0])
        for k, feature in enumerate(workload.features)]


def ours(workload, kernels, model_dir, *, model=None, units=UNITS, hosts=1, cores=1, iterations=1,
         cluster=None):
    """Returns the TPUEstimator; `cores` are those of a host. A `cluster` takes their place.

    `model` is a function such as `loss_of`, for another model.
    """
    width = workload.tables[0][1]
    columns = [ete.embedding_column(each, width, workload.combiner)
               for each in categorical(workload)]

    def model_fn(features, labels, mode, params):
        loss = (model or loss_of)(columns, features, labels, units)
        optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(.01))
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=optimizer.minimize(
            loss, tf.train.get_global_step()))

    return ete.TPUEstimator(
        model_fn=model_fn, train_batch_size=workload.batch, config=ete.RunConfig(
            model_dir=model_dir, kernels=kernels, save_checkpoints_steps=None,
            save_checkpoints_secs=10**6, save_summary_steps=None, log_step_count_steps=None,
            cluster=cluster or ete.TPUClusterResolver(hosts=hosts, cores=cores),
            tpu_config=ete.TPUConfig(iterations_per_loop=iterations)),
        embedding_config_spec=ete.EmbeddingConfigSpec(
            feature_columns=columns,
            optimization_parameters=ete.AdagradParameters(RATE, ACCUMULATOR)))


def plain(workload, kind, model_dir, *, units=UNITS):
    """Returns the plain Estimator."""
    width = workload.tables[0][1]
    columns = [tf.feature_column.embedding_column(each, width, workload.combiner)
               for each in categorical(workload)]

    def model_fn(features, labels, mode):
        loss = loss_of(columns, features, labels, units)
        optimizer = tf.train.AdagradOptimizer(RATE, ACCUMULATOR)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(
            loss, tf.train.get_global_step()))

    return tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(
        model_dir=model_dir, session_config=sessions.config_of('tuned') if kind == 'tuned'
        else None, save_checkpoints_secs=10**6, save_summary_steps=None,
        log_step_count_steps=None))


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('--rounds', type=int, default=4)
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--shrink', type=int, default=1)
    parser.add_argument('--kernels', default='native')
    evidence.add_argument(parser)
    evidence.add_noisy(parser)
    parsed = parser.parse_args()
    with evidence.recorded(parsed.json, 'job', parsed.noisy) as figures:
        compare(parsed, figures)


def compare(parsed, figures):
    """Trains all three in turn, and prints one line per estimator."""
    workload = WORKLOADS['W2'].shrunk(parsed.shrink)
    makers = {f'ours, {parsed.kernels}': lambda to: ours(workload, parsed.kernels, to),
              'plain, tuned': lambda to: plain(workload, 'tuned', to),
              'plain, as shipped': lambda to: plain(workload, 'shipped', to)}
    found = {name: [] for name in makers}

    def train(make):
        with tempfile.TemporaryDirectory() as model_dir:
            clock = Clock()
            make(model_dir).train(input_fn_of(workload), steps=parsed.steps, hooks=[clock])
        return clock.windows

    for _ in range(parsed.rounds):
        for name, make in makers.items():
            found[name].append(figures.quiet(lambda: train(make)))
    base = next(iter(found.values()))
    for name, rounds in found.items():
        milliseconds = figures.add(name, 'ms/step', itertools.chain(*rounds))
        ratio = figures.add(f'{name}, ratio', 'times ours', (
            statistics.median(its) / statistics.median(own) for its, own in zip(rounds, base)))
        print(f'{name:20}{milliseconds:9.2f} ms{ratio:8.2f} times as long')


if __name__ == '__main__':
    main()
