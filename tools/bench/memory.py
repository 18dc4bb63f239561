#!/usr/bin/env python3
"""Measures the memory of a job with a large table: the highest RSS of each phase.

    python3 tools/bench/memory.py [--rows 10000000] [--width 32] [--hosts 1 [HOSTS_LATER]]
        [--json FILE]

needs the package with its `cpu` extra, Linux, and a disk with room for two checkpoints. One
process trains a TPUEstimator with Adagrad from initial values, another goes on from its
checkpoint. Each begins with the same job and a table of 1,000 rows. The highest RSS of that job is
the base: TensorFlow itself and most memory of a batch.

A line shows, for one phase, the highest RSS, the RSS above the base, the ratio of that to the
bytes of table and slot, and seconds. TensorFlow gives no memory back, so a later phase shows the
memory of the earlier ones too.

| phase | from | to |
|---|---|---|
| init, restore | the call of `train` | all variables have values |
| save | a saver is called | the checkpoint is there; at steps 0, N and 2 N |
| train | a save ended | the next one begins |
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import evidence

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ['TF_USE_LEGACY_KERAS'] = '1'

SMALL, STEPS, PER_SAMPLE = 1000, 10, 20


def highest_rss():
    """Returns the highest RSS of this process, in bytes, since the counter was reset."""
    lines = pathlib.Path('/proc/self/status').read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith('VmHWM'))


class Phases:
    """The phases of a job that have ended, as (name, highest RSS, seconds)."""

    def __init__(self, first):
        """Begins with the phase `first`."""
        self.ended = []
        self._begin(first)

    def _begin(self, name):
        pathlib.Path('/proc/self/clear_refs').write_text('5')  # VmHWM begins anew.
        self._name, self._began = name, time.perf_counter()

    def end(self, following):
        """Ends a phase and begins another."""
        self.ended.append((self._name, highest_rss(), time.perf_counter() - self._began))
        self._begin(following)


def train(parsed, rows, model_dir, first):
    """Trains 2 N steps, or goes on for as many, and returns the phases."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    import estimator_tpu_embedding as ete

    class Listener(tf.train.CheckpointSaverListener):
        def before_save(self, session, step):
            phases.end('save')

        def after_save(self, session, step):
            phases.end('train')

    column = ete.embedding_column(
        tf.feature_column.categorical_column_with_identity('words', rows), parsed.width, 'mean')

    def model_fn(features, labels, mode, params):
        net = tf.keras.layers.DenseFeatures([column])(features)
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(net, 1) - labels))
        optimizer = ete.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
        return ete.TPUEstimatorSpec(mode=mode, loss=loss, train_op=tf.group(
            optimizer.minimize(loss, tf.train.get_global_step())))

    def input_fn(params):
        batch = params['batch_size']
        places = np.stack([np.repeat(np.arange(batch), PER_SAMPLE),
                           np.tile(np.arange(PER_SAMPLE), batch)], 1)

        def with_ids(number):
            ids = tf.random.stateless_uniform([batch * PER_SAMPLE], [number, 7], 0, rows,
                                              tf.int64)
            return ({'words': tf.SparseTensor(places, ids, [batch, PER_SAMPLE])},
                    tf.ones([batch]))

        return tf.data.Dataset.range(10**9).map(with_ids)

    phases = Phases(first)
    estimator = ete.TPUEstimator(
        model_fn=model_fn, train_batch_size=parsed.batch,
        config=ete.RunConfig(
            cluster=ete.TPUClusterResolver(hosts=parsed.hosts[0], cores=1),
            model_dir=str(model_dir), save_checkpoints_steps=STEPS, save_summary_steps=0,
            keep_checkpoint_max=1, tpu_config=ete.TPUConfig(
                iterations_per_loop=STEPS,
                per_host_input_for_training=ete.InputPipelineConfig.PER_HOST_V2)),
        embedding_config_spec=ete.EmbeddingConfigSpec(
            feature_columns=[column], optimization_parameters=ete.AdagradParameters(0.1)))
    estimator.train(input_fn, steps=2 * STEPS, saving_listeners=[Listener()])
    return phases


def child(parsed):
    """Runs the small job and the large one, and prints their phases as JSON."""
    first = 'restore' if os.listdir(parsed.child) else 'init'
    with tempfile.TemporaryDirectory() as directory:
        base = max(peak for _, peak, _ in train(parsed, SMALL, directory, first).ended)
    phases = train(parsed, parsed.rows, parsed.child, first)
    print(json.dumps({'base': base, 'phases': phases.ended}))


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('--rows', type=int, default=10_000_000)
    parser.add_argument('--width', type=int, default=32)
    parser.add_argument('--hosts', type=int, nargs='+', default=[1])
    parser.add_argument('--batch', type=int, default=1020, help='of all hosts, which divide it')
    parser.add_argument('--child', metavar='MODEL_DIR', help='one of the two processes')
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    if parsed.child:
        return child(parsed)
    with evidence.recorded(parsed.json, 'memory') as figures:
        show(parsed, figures)


def show(parsed, figures):
    """Runs both processes, and prints one line per phase."""
    tables = 2 * parsed.rows * parsed.width * 4
    print(f'table and slot: {tables / 2**30:.2f} GiB')
    with tempfile.TemporaryDirectory() as model_dir:
        for job, hosts in (('first', parsed.hosts[0]), ('second', parsed.hosts[-1])):
            done = subprocess.run(
                [sys.executable, __file__, f'--rows={parsed.rows}', f'--width={parsed.width}',
                 f'--hosts={hosts}', f'--batch={parsed.batch}', f'--child={model_dir}'],
                check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            print(f'{hosts} hosts; base: {found["base"] / 2**30:.2f} GiB')
            for number, (name, peak, seconds) in enumerate(found['phases']):
                more = peak - found['base']
                key = f'{job} job, phase {number}, {name}'
                figures.add(f'{key}, highest RSS', 'GiB', [peak / 2**30])
                figures.add(f'{key}, RSS above base', 'times tables', [more / tables])
                figures.add(f'{key}, time', 's', [seconds])
                print(f'{name:8}{peak / 2**30:6.2f} GiB{more / 2**30:7.2f} GiB'
                      f'{more / tables:6.2f} {seconds:6.2f} s', flush=True)


if __name__ == '__main__':
    main()
