"""Times an engine in a TensorFlow session by windows of steps, and builds TensorFlow's own engine.

    python sessions.py WORKLOAD SHRINK {tuned|shipped}

times windows of TensorFlow's own engine for `engine.py`. It needs nothing of this package, and any
TensorFlow from 2.15 on. A line `KIND STEPS` on its input is answered by milliseconds per step, and
`error 0` by the error of a new engine's rows.
"""

import os
import sys
import threading
import time
from typing import Any, NamedTuple

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ['TF_USE_LEGACY_KERAS'] = '1'

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from workloads import ACCUMULATOR, RATE, START, WORKLOADS, serve  # noqa: E402

tf.logging.set_verbosity(tf.logging.ERROR)


class Built(NamedTuple):
    """Operations of an engine: its start, a whole step, and a step in two parts; its tables."""

    start: Any
    whole: Any
    enqueue: Any
    step: Any
    tables: Any


class Engine:
    """One engine in a graph and a session of its own."""

    def __init__(self, build, workload, config=None):
        """Builds it.

        Args:
          build: (workload, the ids of its features) -> Built. They come from a tf.data pipeline
            that is nothing but memory, since to feed arrays takes Python longer than some steps.
          workload: see `workloads.py`.
          config: of the session.
        """
        with tf.Graph().as_default():
            batches = tf.data.Dataset.from_tensor_slices(
                tuple(map(np.stack, zip(*workload.feeds())))).repeat()
            iterator = tf.data.make_initializable_iterator(batches)
            built = build(workload, iterator.get_next())
            self._session = tf.Session(config=config)
            self._give_first_values()
            self._session.run(iterator.initializer)
            self._session.run(built.start)
            self._whole = self._session.make_callable(built.whole)
            self._enqueue = self._session.make_callable(built.enqueue)
            self._step = self._session.make_callable(built.step)
            self._tables = [table.read_value() for table in built.tables]

    def _give_first_values(self):
        """Gives all variables values, when all operations but those of windows are built."""
        self._session.run(tf.global_variables_initializer())

    def window(self, kind, steps):
        """Returns milliseconds per step.

        Args:
          kind: `'whole'` enqueues ids and looks them up one after the other. `'ahead'` enqueues
            the ids of the next step in a thread, as a job does. The thread enqueues as many
            batches as there are steps, and the window ends when both are done.
          steps: of the window.
        """
        if kind == 'whole':
            began = time.perf_counter()
            for _ in range(steps):
                self._whole()
            return 1e3 * (time.perf_counter() - began) / steps
        self._enqueue()
        thread = threading.Thread(target=self._hand_over, args=[steps], daemon=True)
        began = time.perf_counter()
        thread.start()
        for _ in range(steps):
            self._step()
        thread.join()
        milliseconds = 1e3 * (time.perf_counter() - began) / steps
        self._step()
        return milliseconds

    def rows(self):
        """The rows of each table: float32."""
        return self._session.run(self._tables)

    def close(self):
        """Closes the session, and frees its memory, which is kept by what refers to it."""
        self._session.close()
        vars(self).clear()

    def _hand_over(self, steps):
        for _ in range(steps):
            self._enqueue()


def stock(workload, places):
    """Builds `embedding_lookup_sparse` with `AdagradOptimizer`; the loss is halved sums of
    squares.
    """
    optimizer = tf.train.AdagradOptimizer(RATE, ACCUMULATOR)
    queue = tf.queue.FIFOQueue(2, [tf.int64] * len(places), [each.shape for each in places])
    with tf.variable_scope('tables', initializer=tf.constant_initializer(START)):
        tables = [tf.get_variable(f't{k:02}', shape, use_resource=True)
                  for k, shape in enumerate(workload.tables)]

    def train(ids):
        loss = 0.0
        for values, feature in zip(tf.nest.flatten(ids), workload.features):
            samples = tf.constant(workload.samples(feature))
            column = tf.tile(tf.range(feature.per_sample, dtype=tf.int64), [workload.batch])
            sparse = tf.SparseTensor(tf.stack([tf.cast(samples, tf.int64), column], 1), values,
                                     [workload.batch, feature.per_sample])
            loss += tf.nn.l2_loss(tf.nn.embedding_lookup_sparse(
                tables[feature.table], sparse, None, combiner=workload.combiner))
        return optimizer.minimize(loss)

    return Built(tf.no_op(), train(places), queue.enqueue(places), train(queue.dequeue()), tables)


def config_of(kind):
    """Returns the config of a session: shipped, or tuned, which keeps it from reading whole
    tables.
    """
    config = tf.ConfigProto()
    if kind == 'tuned':
        rewrites = config.graph_options.rewrite_options
        rewrites.arithmetic_optimization = rewrites.OFF
    return config


if __name__ == '__main__':
    _, name, shrink, kind_of_session = sys.argv
    chosen = WORKLOADS[name].shrunk(int(shrink))
    serve(Engine(stock, chosen, config_of(kind_of_session)), chosen)
