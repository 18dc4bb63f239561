#!/usr/bin/env python3
"""Times pipelining: the look-up of the next step runs beside the dense part of this step.

    python3 tools/bench/pipeline.py [compute] [wait] [--steps N] [--shrink K] [--json FILE]

Runs in an environment with the extra `cpu`. The job has a table of 1M x 64 with Adagrad, batch
16384, and 10 ids per sample. It makes one step without and one with `hosts/pipelined`; its look-up
alone and its dense part alone run between them. The four take turns, so that other load disturbs
all of them alike. Prints the medians in milliseconds, and the time that pipelining saves per step.
That cannot be more than the shorter of look-up and dense part, since the update waits for both.

Each operation has one thread and there is one table, so a look-up keeps one core busy. The dense
part is made to take as long, and to leave a core free:

* `compute` multiplies small matrices one after the other. It shows the worth of a second idle core
  to a model that keeps one busy; a model that keeps all cores busy has nothing to gain.
* `wait` sleeps and computes nothing, as the host does while an accelerator runs the model.

Neither is a model. `--shrink 10` divides rows and batch by 10.
"""

import argparse
import os
import statistics
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import evidence  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

from estimator_tpu_embedding.core.optimizers import Adagrad  # noqa: E402
from estimator_tpu_embedding.core.plan import resolve  # noqa: E402
from estimator_tpu_embedding.core.specs import FeatureSpec, TableSpec, Topology  # noqa: E402
from estimator_tpu_embedding.hosts.backend import Backend  # noqa: E402
from estimator_tpu_embedding.hosts.engine_choice import choose_engine  # noqa: E402
from estimator_tpu_embedding.hosts.pipelined import PipelinedBackend  # noqa: E402
from estimator_tpu_embedding.ops.ids import IdBatch  # noqa: E402

TABLES, ROWS, WIDTH, BATCH, PER_SAMPLE = 1, 10**6, 64, 16384, 10
MATRIX, BATCHES, WARM_UP = 96, 4, 3


def session():
    """Returns a session: a thread for the look-up, one for the dense part, and one per operation.
    """
    config = tf.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=1)
    rewrites = config.graph_options.rewrite_options
    rewrites.arithmetic_optimization = rewrites.OFF
    return tf.Session(config=config)


def compute(amount):
    """A scalar 1 after so many products of small matrices."""
    _, product = tf.while_loop(
        lambda done, product: done < tf.cast(amount, tf.int32),
        lambda done, product: (done + 1, tf.matmul(product, tf.eye(MATRIX))),
        [0, tf.eye(MATRIX)], parallel_iterations=1)
    return product[0, 0]


def wait(amount):
    """A scalar 1 after so many microseconds of sleep."""
    def sleep(microseconds):
        time.sleep(1e-6 * float(microseconds))
        return np.float32(1)
    return tf.ensure_shape(tf.py_func(sleep, [amount], tf.float32), [])


class Dense:
    """The dense part alone."""

    def __init__(self, dense):
        with tf.Graph().as_default():
            amount = tf.placeholder(tf.float32, [])
            result = dense(amount)
            self._session = session()
            self._step = self._session.make_callable(result, feed_list=[amount])

    def time(self, amount, number):
        """Milliseconds of one."""
        del number
        began = time.perf_counter()
        self._step(amount)
        return 1e3 * (time.perf_counter() - began)


class Engine:
    """A job, or its look-up alone, in a graph and a session of its own."""

    def __init__(self, dense, shrink, *, pipelined):
        batch = BATCH // shrink
        plan = resolve(
            [TableSpec(name=f't{k}', vocabulary_size=ROWS // shrink, dimension=WIDTH,
                       combiner='sum') for k in range(TABLES)],
            [FeatureSpec(name=f'f{k}', table=f't{k}') for k in range(TABLES)], Topology(),
            batch_size=batch, optimizer=Adagrad(learning_rate=.1), pipelined=pipelined)
        generator = np.random.default_rng(1)
        self._pool = [list(generator.integers(0, ROWS // shrink, (TABLES, batch * PER_SAMPLE)))
                      for _ in range(BATCHES)]
        with tf.Graph().as_default():
            step = tf.train.create_global_step()
            engine = choose_engine(plan, {table.name: table.name for table in plan.tables})
            backend = (PipelinedBackend if pipelined else Backend)(engine, step)
            self._ids = [tf.placeholder(tf.int64, [batch * PER_SAMPLE]) for _ in range(TABLES)]
            samples = tf.constant(np.repeat(np.arange(batch), PER_SAMPLE).astype(np.int32))
            self._enqueue = backend.enqueue({
                feature.name: IdBatch(samples, ids, batch)
                for feature, ids in zip(plan.features, self._ids)}, core=0)
            activations, receipt = backend.lookup(core=0)
            amount, has_next = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
            # A value of each: what is only waited for, grappler leaves out.
            result = tf.add_n([values[0, 0] for values in activations.values()])
            if dense is not None:
                one = dense(amount + 1e-30 * result)  # It begins with the activations.
                result = backend.update([receipt], [
                    {name: one * values for name, values in activations.items()}])
            self._session = session()
            self._session.run(tf.global_variables_initializer())
            self._step = self._session.make_callable(
                result, feed_list=[amount, backend.has_next if pipelined else has_next])
            self._feed(0)
            if pipelined:
                self._session.run(backend.begin())
                self._feed(1)

    def _feed(self, number):
        self._session.run(self._enqueue, dict(zip(self._ids, self._pool[number % BATCHES])))

    def time(self, amount, number):
        """Milliseconds of one step; the ids are in the queue before it begins."""
        began = time.perf_counter()
        self._step(amount, True)
        taken = 1e3 * (time.perf_counter() - began)
        self._feed(number)
        return taken


def amount_for(dense, milliseconds):
    """Returns the amount of a dense part that takes so many milliseconds."""
    amount = 1000.0
    for number in range(4):
        amount *= milliseconds / statistics.median(dense.time(amount, number) for _ in range(3))
    return amount


PARTS = {'compute': compute, 'wait': wait}


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('kinds', nargs='*', metavar='KIND', help='compute, wait; both if none')
    parser.add_argument('--steps', type=int, default=30)
    parser.add_argument('--shrink', type=int, default=1)
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    with evidence.recorded(parsed.json, 'pipeline') as figures:
        show(parsed, figures)


def show(parsed, figures):
    """Prints one line per kind of dense part."""
    print(f'{"":8}{"look-up":>11}{"dense":>11}{"one by one":>13}{"pipelined":>12}   '
          'ratio, saved, of what could be')
    lookup = Engine(None, parsed.shrink, pipelined=False)
    for kind in parsed.kinds or PARTS:
        part = PARTS[kind]
        dense = Dense(part)
        amount = amount_for(dense, statistics.median(
            lookup.time(0, number) for number in range(10)))
        runners = [lookup, dense, Engine(part, parsed.shrink, pipelined=False),
                   Engine(part, parsed.shrink, pipelined=True)]
        times = [[runner.time(amount, number) for runner in runners]
                 for number in range(parsed.steps + WARM_UP)]
        medians = [figures.add(f'{kind}, {name}', 'ms', column) for name, column in zip(
            ('look-up', 'dense', 'one by one', 'pipelined'), zip(*times[WARM_UP:]))]
        figures.add(f'{kind}, ratio', 'times one by one', (
            pipelined / plain for _, _, plain, pipelined in times[WARM_UP:]))
        saved, possible = medians[2] - medians[3], min(medians[:2])
        print(f'{kind:8}' + ''.join(f'{median:{width}.1f}' for median, width in zip(
            medians, (11, 11, 13, 12))) + f'   {medians[3] / medians[2]:.2f}, {saved:.1f} ms, '
            f'{saved / possible:.0%}', flush=True)


if __name__ == '__main__':
    main()
