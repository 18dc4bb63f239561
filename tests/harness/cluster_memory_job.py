"""Trains a large table on own workers, and says how much memory each process takes.

`python -m harness.cluster_memory_job DIRECTORY FIRST ROWS WIDTH HOSTS` prints a line of JSON. By
phase it has the highest RSS of the client and of each worker, in bytes, beyond that of the same job
with a small table. The workers have the rows, and an accumulator of the same size. FIRST says where
the first values come from. They are `drawn` on the workers, or `given` by a matrix of the client,
which takes no memory.
"""

import json
import pathlib
import sys

import numpy as np

import estimator_tpu_embedding as ete

ete.install()

import tensorflow.compat.v1 as tf  # noqa: E402
from harness import jobs  # noqa: E402

from estimator_tpu_embedding import defaults  # noqa: E402
from estimator_tpu_embedding.cluster.cluster import current  # noqa: E402
from estimator_tpu_embedding.cluster.worker_choice import ClusterChoice  # noqa: E402
from estimator_tpu_embedding.core.specs import System  # noqa: E402
from estimator_tpu_embedding.defaults import Defaults  # noqa: E402

BATCH = 64


class Peaks:
    """The highest RSS of some processes in each phase."""

    def __init__(self, pids):
        self._folders = [pathlib.Path('/proc/self'), *[
            pathlib.Path(f'/proc/{pid}') for pid in pids]]
        self.by_phase = {}
        self._begin()

    def _begin(self):
        for folder in self._folders:
            (folder / 'clear_refs').write_text('5')  # VmHWM begins anew at what there is.

    def note(self, phase):
        """Ends a phase."""
        found = [next(1024 * int(line.split()[1]) for line in
                      (folder / 'status').read_text().splitlines() if line.startswith('VmHWM'))
                 for folder in self._folders]
        before = self.by_phase.get(phase, found)
        self.by_phase[phase] = list(map(max, before, found))
        self._begin()


class Watch(tf.train.SessionRunHook):
    """Ends the phases of a training."""

    def __init__(self, peaks, begins_with):
        self._peaks, self._first = peaks, begins_with

    def after_create_session(self, session, coord):
        self._peaks.note(self._first)

    def after_run(self, run_context, run_values):
        self._peaks.note('train')


def job(directory, first, rows, width, strategy):
    initializer = None if first == 'drawn' else tf.constant_initializer(
        np.broadcast_to(np.float32(2.**-10), (rows, width)))
    columns = [jobs.embedding('f', rows, width, initializer=initializer)]
    return ete.TPUEstimator(
        model_fn=jobs.linear_model_fn(columns), train_batch_size=BATCH, eval_batch_size=BATCH,
        config=ete.RunConfig(
            model_dir=directory, tpu_config=ete.TPUConfig(iterations_per_loop=2),
            save_checkpoints_steps=2, log_step_count_steps=None, tf_random_seed=1),
        embedding_config_spec=ete.EmbeddingConfigSpec(
            columns, ete.AdagradParameters(.1), partition_strategy=strategy))


def run(directory, first, rows, width, pids):
    """Trains, saves, restores, trains, moves rows and evaluates; returns the peaks by phase."""
    def input_fn(params):
        generator = np.random.default_rng(1)
        return tf.data.Dataset.from_tensor_slices((
            {'f': generator.integers(1, rows, [BATCH * 16, 4])},
            np.ones([BATCH * 16], np.float32))).repeat().batch(
                params['batch_size'], drop_remainder=True)

    made, moved = (job(f'{directory}/{first}{rows}', first, rows, width, strategy)
                   for strategy in ('mod', 'div'))
    peaks = Peaks(pids)
    made.train(input_fn, [Watch(peaks, 'create')], max_steps=4)
    peaks.note('save')
    made.train(input_fn, [Watch(peaks, 'restore')], max_steps=8)
    peaks.note('save')
    moved.train(input_fn, [Watch(peaks, 'move')], max_steps=10)
    peaks.note('save')
    moved.evaluate(input_fn, steps=2)
    peaks.note('evaluate')
    return peaks.by_phase


def main():
    """See above."""
    directory, first = sys.argv[1:3]
    rows, width, hosts = map(int, sys.argv[3:])
    choice = ClusterChoice(processes=hosts, expose=True)
    defaults.set_current(Defaults(cluster=choice, system=System.sized(hosts, None)))
    cluster = current(choice)
    cluster.prepare()
    base = run(directory, first, 2 * hosts, width, cluster.pids())
    large = run(directory, first, rows, width, cluster.pids())
    print(json.dumps({phase: [one - other for one, other in zip(large[phase], base[phase])]
                      for phase in large}), flush=True)


if __name__ == '__main__':
    main()
