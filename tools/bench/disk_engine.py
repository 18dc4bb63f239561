"""Builds an engine whose tables may be on a disk, and which can be saved, for `table_memory.py`.

    python disk_engine.py KIND ROWS BATCHES FOLDER

serves one as `ours.py` does, and answers four lines more: `save 1` by milliseconds, `digest 1` by
a sum over some rows and slots, `start 1` by the milliseconds until all had values, `rss 1` by the
highest resident memory of the process in GiB. KIND is `without` `table_memory`, `given`, with it
and room for all in memory, or `mapped`, on the disk. If FOLDER has a checkpoint, its values are
the first ones.
"""

import functools
import os
import sys
import time

import numpy as np
import ours
import sessions
import tensorflow.compat.v1 as tf
from memory import highest_rss
from workloads import equal, serve

from estimator_tpu_embedding.checkpoint import restore
from estimator_tpu_embedding.checkpoint.manifest import StoredTable
from estimator_tpu_embedding.checkpoint.options import CheckpointOptions
from estimator_tpu_embedding.checkpoint.recover import recover
from estimator_tpu_embedding.checkpoint.saver import CommittingSaver
from estimator_tpu_embedding.checkpoint.saver_builder import default_saver
from estimator_tpu_embedding.core.table_memory import TableMemory

WIDTH, BATCH, PER_SAMPLE = 128, 1024, 10
COMPARED = 10_000
RESIDENT = {'given': 2**60, 'mapped': 1}


class DiskEngine(sessions.Engine):
    """An engine of one table, which can be saved, and begins with what was saved."""

    def __init__(self, folder, rows, *given):
        """Builds it; for `given` see `sessions.Engine`."""
        self._directory = os.path.join(folder, 'saved')
        self._stored = {'t00': StoredTable(rows=rows, width=WIDTH, strategy='div', hosts=1,
                                           slots=('Adagrad',))}
        super().__init__(*given)

    def _give_first_values(self):
        self._saver = default_saver(1, 10_000)
        self._saver.build()
        ids = np.random.default_rng(2).integers(0, self._stored['t00'].rows, COMPARED)
        self._sum = tf.add_n([
            tf.reduce_sum(tf.cast(part.sparse_read(ids), tf.float64))
            for part in tf.global_variables() if part.op.name.startswith('t00')])
        began, opened = time.perf_counter(), recover(self._directory)
        if opened is None:
            super()._give_first_values()
        else:
            plan = restore.plan_for(opened, self._stored, CheckpointOptions(), trains=True,
                                    in_pieces=True)
            scaffold = restore.scaffold_for(tf.train.Scaffold(), opened.prefix, plan,
                                            lambda: self._saver)
            scaffold.saver.restore(self._session, opened.prefix)
        self._started = 1e3 * (time.perf_counter() - began)

    def window(self, kind, steps):
        if kind == 'start':
            return self._started
        if kind == 'digest':
            return self._session.run(self._sum)
        if kind == 'rss':
            return highest_rss() / 2**30
        if kind != 'save':
            return super().window(kind, steps)
        began = time.perf_counter()
        with self._session.graph.as_default():
            CommittingSaver(self._saver, self._stored, b'').save(
                self._session, os.path.join(self._directory, 'model.ckpt'), 1)
        return 1e3 * (time.perf_counter() - began)


def main():
    """Does what the command line says."""
    kind, rows, batches, folder = sys.argv[1:]
    os.makedirs(os.path.join(folder, 'saved'), exist_ok=True)
    workload = equal('disk', 1, int(rows), WIDTH, BATCH, PER_SAMPLE, 'sum')._replace(
        batches=int(batches))
    memory = TableMemory(folder, RESIDENT[kind]) if kind in RESIDENT else None
    serve(ours.engine(workload, 'native', memory, functools.partial(
        DiskEngine, folder, int(rows))), workload)


if __name__ == '__main__':
    main()
