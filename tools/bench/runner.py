#!/usr/bin/env python3
"""Times the runner: per step, in memory, and until the first step. One host, one core.

    python3 tools/bench/runner.py [--rounds 30]
    python3 tools/bench/runner.py --loops 2000
    python3 tools/bench/runner.py --features 25,50,100,200 [--shared] [--hosts H --cores C]

needs the package with its `cpu` extra, and Linux. Each takes `--json FILE` too.

Without a flag it prints milliseconds per step of `TPUEstimator.train`, 100 steps per loop, beside
a loop written by hand over the graph of the same job. That loop has an infeed thread too, but no
deadlines, hooks, counts of ids or looks at the loss. It runs once with `session.run`, and once
with the private callable that the runner uses. The three take turns, loop by loop, in one process,
so that other load disturbs all of them alike. A loop of the runner lasts from one `after_run` of a
hook to the next, so it includes all work between loops.

`--loops` trains so many loops of 10 steps with log lines and summaries, and shows the RSS after
each tenth of them.

`--features` shows seconds from the call of `train`, per number of embedding columns, each in a
process of its own: until the graph is built, until the session is there, until the first step has
ended, and the CPU seconds of all that. `ratio` divides these by the number of columns and by the
same quotient of the first line: 1.00 is linear.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import evidence  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

import estimator_tpu_embedding as ete  # noqa: E402
from estimator_tpu_embedding import _tf  # noqa: E402
from estimator_tpu_embedding.runner.step_graph import build_step  # noqa: E402

STEPS = 100
ROWS = 10_000
# Columns, width, samples per core, units of the hidden layer.
WORKLOADS = {'small': (2, 8, 64, 8), 'medium': (8, 16, 512, 64), 'large': (26, 16, 2048, 128)}


def columns_of(count, width, shared):
    """`count` embedding columns, each with a table of its own, or one for all."""
    categorical = [tf.feature_column.categorical_column_with_identity(f'f{k:03}', ROWS)
                   for k in range(count)]
    if shared:
        return ete.shared_embedding_columns(categorical, width, 'mean')
    return [ete.embedding_column(one, width, 'mean') for one in categorical]


def estimator_of(workload, model_dir, iterations, hosts=1, cores=1, shared=False):
    """A TPUEstimator with a hidden layer over its columns."""
    count, width, batch, units = workload
    columns = columns_of(count, width, shared)

    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures(columns)(features)
        net = tf.keras.layers.Dense(1)(tf.keras.layers.Dense(units, 'relu')(net))
        loss = tf.losses.mean_squared_error(labels, net)
        optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.01))
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=optimizer.minimize(
            loss, tf.train.get_global_step()))

    return ete.TPUEstimator(
        model_fn=model_fn, train_batch_size=batch * hosts * cores,
        config=ete.RunConfig(
            cluster=ete.TPUClusterResolver(hosts=hosts, cores=cores), model_dir=model_dir,
            tpu_config=ete.TPUConfig(
                iterations_per_loop=iterations,
                per_host_input_for_training=ete.InputPipelineConfig.PER_HOST_V2)),
        embedding_config_spec=ete.EmbeddingConfigSpec(
            feature_columns=columns, optimization_parameters=ete.AdagradParameters(0.1)))


def input_fn_of(workload):
    """An input_fn that repeats one batch of a single id per sample, so it takes next to no time."""
    count, _, batch, _ = workload

    def input_fn(params):
        ids = np.random.default_rng(1).integers(0, ROWS, [count, batch])
        element = ({f'f{k:03}': ids[k] for k in range(count)}, np.ones([batch, 1], np.float32))
        return tf.data.Dataset.from_tensors(element).repeat()

    return input_fn


class HandWritten:
    """Trains the step graph of an estimator in a session of its own, with as little as possible."""

    def __init__(self, estimator, input_fn):
        with tf.Graph().as_default():
            job = estimator._job('train', input_fn)
            self._graph = graph = build_step(job)
            self._session = tf.Session(config=job.session_config)
            self._session.run(tf.global_variables_initializer())
            self._session.run([graph.input.start,
                               *(feed.source.initializer for feed in graph.input.feeds)])
            self._step = _tf.fast_callable(self._session, [graph.step.is_step], [graph.step.loss],
                                           [graph.step.operation])
            self._enqueue = self._session.make_callable(graph.input.feeds[0].step)
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self):
        try:
            while True:
                self._enqueue()
        except (tf.errors.CancelledError, tf.errors.AbortedError):
            pass  # close()

    def run(self):
        """One step."""
        graph = self._graph
        self._session.run([graph.step.loss, graph.step.operation],
                          {graph.step.is_step: True})

    def call(self):
        """One step, with a callable."""
        self._step(np.array(True))

    def close(self):
        """Ends the thread."""
        self._session.run(self._graph.input.close)
        self._thread.join()
        self._session.close()


def milliseconds(began):
    """Returns milliseconds per step of a loop that began then."""
    return 1e3 * (time.perf_counter() - began) / STEPS


class TakeTurns(tf.train.SessionRunHook):
    """Times loops of a run, and after each the same number of steps in other ways.

    Attributes:
      times: milliseconds per step, first of the run; one tuple per loop.
    """

    def __init__(self, *others):
        self.times = []
        self._others = others
        self._began = time.perf_counter()

    def after_run(self, run_context, run_values):
        times = [milliseconds(self._began)]
        for step in self._others:
            began = time.perf_counter()
            for _ in range(STEPS):
                step()
            times.append(milliseconds(began))
        self.times.append(times)
        self._began = time.perf_counter()


def show_overhead(rounds, figures):
    """Prints one line per workload."""
    print(f'{"":8}{"train":>12}{"run":>12}{"callable":>12}   train takes times as long as these')
    for name, workload in WORKLOADS.items():
        with tempfile.TemporaryDirectory() as model_dir:
            estimator = estimator_of(workload, model_dir, STEPS)
            other = HandWritten(estimator, input_fn_of(workload))
            turns = TakeTurns(other.run, other.call)
            estimator.train(input_fn_of(workload), steps=(rounds + 2) * STEPS, hooks=[turns])
            other.close()
        times = turns.times[2:]  # The first loops contain the start.
        ways = ('train', 'run', 'callable')
        medians = [figures.add(f'{name}, {way}', 'ms/step', column)
                   for way, column in zip(ways, zip(*times))]
        ratios = [figures.add(f'{name}, train over {ways[k]}', 'ratio', (
            each[0] / each[k] for each in times)) for k in (1, 2)]
        print(f'{name:8}' + ''.join(f'{median:9.3f} ms' for median in medians)
              + '   ' + ', '.join(f'{ratio:.3f}' for ratio in ratios), flush=True)


class Memory(tf.train.SessionRunHook):
    """Reads RSS after every so many loops.

    Attributes:
      mebibytes: one number per reading.
    """

    def __init__(self, every):
        self.mebibytes = []
        self._every = every
        self._loops = 0

    def after_run(self, run_context, run_values):
        self._loops += 1
        if self._loops % self._every == 0:
            lines = pathlib.Path('/proc/self/status').read_text().splitlines()
            self.mebibytes += [int(line.split()[1]) / 1024 for line in lines
                               if line.startswith('VmRSS')]


def show_memory(loops, figures):
    """Prints one line."""
    workload, steps = WORKLOADS['small'], 10
    with tempfile.TemporaryDirectory() as model_dir:
        memory = Memory(loops // 10)
        estimator_of(workload, model_dir, steps).train(
            input_fn_of(workload), steps=loops * steps, hooks=[memory])
    for number, mebibytes in enumerate(memory.mebibytes, 1):
        figures.add(f'RSS after {number} of 10 parts', 'MiB', [mebibytes])
    print('MiB:', *(f'{each:.1f}' for each in memory.mebibytes))


class Start(tf.train.SessionRunHook):
    """Times the parts of the start of a run.

    Attributes:
      seconds: from its making until the graph, the session and the first step, and CPU seconds.
    """

    def __init__(self):
        self.seconds = []
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def begin(self):
        self.seconds.append(time.perf_counter() - self._began)

    def after_create_session(self, session, coord):
        self.begin()

    def after_run(self, run_context, run_values):
        self.begin()
        self.seconds.append(time.process_time() - self._cpu)


def start(count, hosts, cores, shared):
    """Trains one step in this process and prints the seconds as JSON."""
    workload = (count, 8, 64, 8)
    with tempfile.TemporaryDirectory() as model_dir:
        estimator = estimator_of(workload, model_dir, 1, hosts, cores, shared)
        hook = Start()
        estimator.train(input_fn_of(workload), steps=1, hooks=[hook])
    print(json.dumps(hook.seconds))


def show_start(figures, counts, *rest):
    """Prints one line per number of columns."""
    print(f'{"columns":>8}{"graph":>9}{"session":>9}{"step":>9}{"CPU":>9}   ratio: step, CPU')
    first = None
    for count in counts:
        done = subprocess.run([sys.executable, __file__, '--child', json.dumps([count, *rest])],
                              check=True, stdout=subprocess.PIPE, text=True)
        seconds = json.loads(done.stdout.splitlines()[-1])
        for part, taken in zip(('graph', 'session', 'step', 'CPU'), seconds):
            figures.add(f'{count} columns, {part}', 's', [taken])
        each = [seconds[2] / count, seconds[3] / count]
        first = first or each
        print(f'{count:8}' + ''.join(f'{one:7.2f} s' for one in seconds) + '   '
              + ', '.join(f'{own / base:.2f}' for own, base in zip(each, first)), flush=True)


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('--rounds', type=int, default=30, help='loops of each, taking turns')
    parser.add_argument('--loops', type=int)
    parser.add_argument('--features', metavar='N,N,...')
    parser.add_argument('--shared', action='store_true', help='one table for all columns')
    parser.add_argument('--hosts', type=int, default=1)
    parser.add_argument('--cores', type=int, default=1, help='per host')
    parser.add_argument('--child', help='one of the processes')
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    tf.logging.set_verbosity(tf.logging.ERROR)
    if parsed.child:
        start(*json.loads(parsed.child))
        return
    with evidence.recorded(parsed.json, 'runner') as figures:
        if parsed.features:
            show_start(figures, [int(one) for one in parsed.features.split(',')], parsed.hosts,
                       parsed.cores, parsed.shared)
        elif parsed.loops:
            show_memory(parsed.loops, figures)
        else:
            show_overhead(parsed.rounds, figures)


if __name__ == '__main__':
    main()
