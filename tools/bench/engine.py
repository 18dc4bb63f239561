#!/usr/bin/env python3
"""Times one step of look-up and update: ours beside what TensorFlow has.

    python3 tools/bench/engine.py [W1 W2 W3] [--steps N] [--shrink K]

Runs in an environment with the extra `cpu`. Three engines train the same tables with Adagrad on
the same Zipf(1.05) ids, one step each in turn, so that what disturbs the machine disturbs all:
`hosts/local`, and `embedding_lookup_sparse` with `AdagradOptimizer`, as shipped and tuned, that
is with grappler's arithmetic optimizer off, which otherwise reads whole tables. Prints the median
milliseconds per step and how many times as long as ours the others take. `--shrink 10` divides
rows and batch by 10, for a machine with less than 16 GiB.

| workload | tables | rows x width | batch | ids per sample | combiner |
|---|---|---|---|---|---|
| W1 | 8 | 1M x 64 | 4096 | 10 | sum |
| W2 | 26 | 100k x 16 | 8192 | 1 | sum |
| W3 | 1 | 10M x 32 | 16384 | 20 | mean |
"""

import argparse
import os
import statistics
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

from estimator_tpu_embedding.core.optimizers import Adagrad  # noqa: E402
from estimator_tpu_embedding.core.plan import resolve  # noqa: E402
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology  # noqa: E402
from estimator_tpu_embedding.hosts.local import LocalBackend  # noqa: E402
from estimator_tpu_embedding.hosts.queues import IdQueues  # noqa: E402
from estimator_tpu_embedding.hosts.tables import create_tables  # noqa: E402
from estimator_tpu_embedding.ops.ids import IdBatch  # noqa: E402

WORKLOADS = {'W1': (8, 10**6, 64, 4096, 10, 'sum'), 'W2': (26, 10**5, 16, 8192, 1, 'sum'),
             'W3': (1, 10**7, 32, 16384, 20, 'mean')}
RATE, ACCUMULATOR, BATCHES = 0.1, 0.1, 4


def zipf(generator, rows, count):
    """`count` ids of which id k is drawn in proportion to 1 / (k + 1)**1.05, then shuffled."""
    weights = 1 / np.arange(1, rows + 1)**1.05
    drawn = np.searchsorted(np.cumsum(weights) / weights.sum(), generator.random(count))
    return generator.permutation(rows)[np.minimum(drawn, rows - 1)].astype(np.int64)


class Engine:
    """One engine in a graph and a session of its own."""

    def __init__(self, build, workload, arithmetic_optimizer_off):
        tables, rows, width, batch, per_sample, combiner = workload
        generator = np.random.default_rng(1)
        self._pool = [[zipf(generator, rows, batch * per_sample) for _ in range(tables)]
                      for _ in range(BATCHES)]
        config = tf.ConfigProto()
        rewrites = config.graph_options.rewrite_options
        if arithmetic_optimizer_off:
            rewrites.arithmetic_optimization = rewrites.OFF
        with tf.Graph().as_default():
            self._ids = [tf.placeholder(tf.int64, [batch * per_sample]) for _ in range(tables)]
            samples = tf.constant(np.repeat(np.arange(batch), per_sample).astype(np.int32))
            step = build(workload, samples, self._ids)
            self._session = tf.Session(config=config)
            self._session.run(tf.global_variables_initializer())
            self._step = self._session.make_callable(step, feed_list=self._ids)

    def time(self, number):
        """Milliseconds of one step."""
        began = time.perf_counter()
        self._step(*self._pool[number % BATCHES])
        return 1e3 * (time.perf_counter() - began)


def ours(workload, samples, ids):
    """One step of `LocalBackend`; the loss is the sum of squares of the activations, halved."""
    tables, rows, width, batch, _, combiner = workload
    plan = resolve(
        [TableSpec(name=f't{k:02}', vocabulary_size=rows, dimension=width, combiner=combiner)
         for k in range(tables)],
        [FeatureSpec(name=f'f{k:02}', table=f't{k:02}') for k in range(tables)], Topology(),
        batch_size=batch,
        optimizer=Adagrad(learning_rate=RATE, initial_accumulator=ACCUMULATOR))
    backend = LocalBackend(
        plan, create_tables(plan, {table.name: table.name for table in plan.tables}),
        IdQueues(plan), tf.train.create_global_step())
    enqueue = backend.enqueue({
        feature.name: IdBatch(samples, one, batch)
        for feature, one in zip(plan.features, ids)}, host=0, core=0)
    activations, receipt = backend.lookup(core=0)
    return tf.group(enqueue, backend.update([receipt], [activations]))


def stock(workload, samples, ids):
    """The same in TensorFlow's own terms."""
    tables, rows, width, batch, per_sample, combiner = workload
    places = tf.stack([tf.cast(samples, tf.int64),
                       tf.tile(tf.range(per_sample, dtype=tf.int64), [batch])], 1)
    loss = 0.0
    for k in range(tables):
        table = tf.get_variable(f't{k:02}', [rows, width], use_resource=True)
        activations = tf.nn.embedding_lookup_sparse(
            table, tf.SparseTensor(places, ids[k], [batch, per_sample]), None, combiner=combiner)
        loss += tf.nn.l2_loss(activations)
    return tf.train.AdagradOptimizer(RATE, ACCUMULATOR).minimize(loss)


def main():
    """Prints one line per workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('workloads', nargs='*', metavar='W', help='of W1, W2 and W3; all if none')
    parser.add_argument('--steps', type=int, default=20)
    parser.add_argument('--shrink', type=int, default=1)
    parsed = parser.parse_args()
    print(f'{"":4}{"ours":>12}{"tuned":>12}{"as shipped":>12}   times as long as ours')
    for name in parsed.workloads or WORKLOADS:
        tables, rows, width, batch, *rest = WORKLOADS[name]
        workload = (tables, rows // parsed.shrink, width, batch // parsed.shrink, *rest)
        engines = [Engine(ours, workload, True), Engine(stock, workload, True),
                   Engine(stock, workload, False)]
        times = [[engine.time(step) for engine in engines] for step in range(parsed.steps + 3)]
        medians = [statistics.median(column) for column in zip(*times[3:])]
        ratios = ', '.join(f'{median / medians[0]:.2f}' for median in medians[1:])
        print(f'{name:4}' + ''.join(f'{median:9.1f} ms' for median in medians) + f'   {ratios}',
              flush=True)
        del engines


if __name__ == '__main__':
    main()
