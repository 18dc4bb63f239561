#!/usr/bin/env python3
"""Times a loop of TF2 beside a job of TF1: midlevel's TPUEmbedding and a TPUEstimator.

    python3 tools/bench/tf2.py [W1 W2 W3 W4] [--shrink K] [--windows 12] [--steps 20] [--json FILE]

needs the package with its `cpu` extra. Both have the tables of a workload (`workloads.py`), ids in
SparseTensors from the same tf.data pipeline, and the same model. The model is a hidden layer over
the activations and a logistic loss. Adagrad trains the tables, and gradient descent the rest.

A window is so many steps: one loop of the TPUEstimator, or one call of a `tf.function` with
`tf.range`. Windows of the two take turns in one process; the infeed thread of the TPUEstimator
waits while TF2 has its turn. The first two pairs do not count. Prints the median milliseconds per
step of both. The ratio is a window of TF2 over the window of the TPUEstimator before it, in the
median. All this runs under no strategy with one core, and under the emulated TPUStrategy with 1
and 2 replicas beside as many cores.
"""

import argparse
import os
import tempfile
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import estimator_tpu_embedding as ete  # noqa: E402

ete.install(hosts=1, cores=2)

import evidence  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from turns import InTurns  # noqa: E402
from workloads import ACCUMULATOR, RATE, WORKLOADS  # noqa: E402

tf.get_logger().setLevel('ERROR')

UNITS, DENSE_RATE = 32, .01
CASES = {'no strategy': 1, 'TPUStrategy, 1 replica': 1, 'TPUStrategy, 2 replicas': 2}
"""What is compared, and how many cores it has."""


def name_of(number):
    """Returns the name of a feature."""
    return f'f{number:03}'


def dataset_of(workload, batch):
    """Returns the batches of one replica, each in turn: (SparseTensors by feature, labels)."""
    datasets = []
    labels = np.random.default_rng(2).integers(0, 2, [batch, 1]).astype(np.float32)
    for feed in workload.feeds():
        for first in range(0, workload.batch, batch):
            features = {}
            for number, (ids, feature) in enumerate(zip(feed, workload.features)):
                shape = [batch, feature.per_sample]
                values = ids.reshape(-1, feature.per_sample)[first:first + batch].reshape(-1)
                features[name_of(number)] = tf.SparseTensor(
                    np.argwhere(np.ones(shape)), values, shape)
            datasets.append(tf.data.Dataset.from_tensors((features, labels)))
    joined = datasets[0]
    for each in datasets[1:]:
        joined = joined.concatenate(each)
    return joined.cache().repeat().prefetch(2)


class Job(InTurns):
    """Trains a TPUEstimator; a window is a loop of it."""

    def __init__(self, workload, cores, steps):
        self._workload, self._cores = workload, cores
        super().__init__(steps)

    def train(self):
        """Trains until it is closed."""
        job = self

        class Turns(tf.compat.v1.train.SessionRunHook):
            """Waits for its turn between two loops."""

            def before_run(self, run_context):
                """Gives the turn away, and begins when it is back."""
                job.begin()

            def after_run(self, run_context, run_values):
                """Looks at the clock."""
                job.end()

        with tempfile.TemporaryDirectory() as model_dir:
            _estimator(self._workload, self._cores, self._steps, model_dir).train(
                lambda params: dataset_of(self._workload, params['batch_size']),
                max_steps=10**6, hooks=[Turns()])


def _estimator(workload, cores, steps, model_dir):
    columns = [ete.embedding_column(
        tf.feature_column.categorical_column_with_identity(
            name_of(number), workload.tables[feature.table][0]),
        workload.tables[feature.table][1], workload.combiner)
        for number, feature in enumerate(workload.features)]

    def model_fn(features, labels, mode, params):
        net = tf.compat.v1.keras.layers.DenseFeatures(columns)(features)
        net = tf.keras.layers.Dense(1)(tf.keras.layers.Dense(UNITS, 'relu')(net))
        loss = tf.compat.v1.losses.sigmoid_cross_entropy(labels, net)
        optimizer = ete.CrossShardOptimizer(
            tf.compat.v1.train.GradientDescentOptimizer(DENSE_RATE))
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=optimizer.minimize(
            loss, tf.compat.v1.train.get_global_step()))

    return ete.TPUEstimator(
        model_fn=model_fn, train_batch_size=workload.batch, config=ete.RunConfig(
            cluster=ete.TPUClusterResolver(hosts=1, cores=cores), model_dir=model_dir,
            kernels='native', save_checkpoints_steps=None, save_checkpoints_secs=None,
            save_summary_steps=None, log_step_count_steps=None, tpu_config=ete.TPUConfig(
                iterations_per_loop=steps,
                per_host_input_for_training=ete.InputPipelineConfig.PER_HOST_V2)),
        embedding_config_spec=ete.EmbeddingConfigSpec(
            feature_columns=columns,
            optimization_parameters=ete.AdagradParameters(RATE, ACCUMULATOR)))


class Loop:
    """Trains with a `tf.function`."""

    def __init__(self, workload, strategy, steps):
        api = tf.tpu.experimental.embedding
        replicas = strategy.num_replicas_in_sync
        per_replica = workload.batch // replicas
        tables = [api.TableConfig(rows, width, combiner=workload.combiner, name=f't{number:02}')
                  for number, (rows, width) in enumerate(workload.tables)]
        with strategy.scope():
            embedding = api.TPUEmbedding(
                {name_of(number): api.FeatureConfig(tables[feature.table])
                 for number, feature in enumerate(workload.features)},
                api.Adagrad(RATE, ACCUMULATOR))
            embedding.build(per_replica_batch_size=per_replica)
            model = tf.keras.Sequential([
                tf.keras.layers.Dense(UNITS, 'relu'), tf.keras.layers.Dense(1)])
            model.build([per_replica, sum(
                workload.tables[feature.table][1] for feature in workload.features)])
            optimizer = tf.keras.optimizers.legacy.SGD(DENSE_RATE)
        self._iterator = iter(strategy.distribute_datasets_from_function(
            lambda context: dataset_of(workload, per_replica),
            tf.distribute.InputOptions(experimental_fetch_to_device=False)))
        self._steps = tf.constant(steps)

        def on_replica(labels):
            with tf.GradientTape() as tape:
                activations = embedding.dequeue()
                tape.watch(activations)
                logits = model(tf.concat(tf.nest.flatten(activations), 1))
                loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(
                    labels, logits)) / workload.batch
            of_model, of_tables = tape.gradient(loss, [model.trainable_variables, activations])
            embedding.apply_gradients(of_tables)
            optimizer.apply_gradients(zip(of_model, model.trainable_variables))

        @tf.function
        def train(iterator, steps):
            for _ in tf.range(steps):
                features, labels = next(iterator)
                embedding.enqueue(features)
                strategy.run(on_replica, (labels,))

        self._train = train
        # Traced here: layers of Keras are invalid once an Estimator has made some in a graph.
        self.window()

    def window(self):
        """Milliseconds per step."""
        began = time.perf_counter()
        self._train(self._iterator, self._steps)
        return 1e3 * (time.perf_counter() - began) / int(self._steps)


def strategy_of(case):
    """Returns the strategy of one of `CASES`."""
    if case == 'no strategy':
        return tf.distribute.get_strategy()
    resolver = ete.TPUClusterResolver(hosts=1, cores=CASES[case])
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


def compare(workload, case, steps, windows):
    """Returns milliseconds per step of both, as pairs of windows that follow each other."""
    loop, job = Loop(workload, strategy_of(case), steps), Job(workload, CASES[case], steps)
    try:
        return [(job.window(), loop.window()) for _ in range(windows + 2)][2:]
    finally:
        job.close()


def show(parsed, figures):
    """Prints one line per workload and strategy."""
    for name in parsed.workloads or ['W1']:
        for case in [list(CASES)[int(one)] for one in parsed.cases.split(',')]:
            pairs = compare(
                WORKLOADS[name].shrunk(parsed.shrink), case, parsed.steps, parsed.windows)
            key, (of_job, of_loop) = f'{name}, {case}', zip(*pairs)
            its = figures.add(f'{key}, TPUEstimator', 'ms/step', of_job)
            own = figures.add(f'{key}, TF2', 'ms/step', of_loop)
            ratio = figures.add(f'{key}, ratio', 'times TPUEstimator', (
                loop / job for job, loop in pairs))
            print(f'{name} {case:26}{its:9.2f} ms, TF2{own:9.2f} ms, {ratio:.2f} times',
                  flush=True)


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('workloads', nargs='*', metavar='W', help='of W1 to W4; W1 if none')
    parser.add_argument('--windows', type=int, default=12)
    parser.add_argument('--steps', type=int, default=20)
    parser.add_argument('--shrink', type=int, default=1)
    parser.add_argument('--cases', default=','.join(map(str, range(len(CASES)))))
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    with evidence.recorded(parsed.json, 'tf2') as figures:
        show(parsed, figures)


if __name__ == '__main__':
    main()
