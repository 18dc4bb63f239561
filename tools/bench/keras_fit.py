#!/usr/bin/env python3
"""Times `model.fit` with the Keras layer of TFRS beside a loop of TF2 that a user writes.

    python3 tools/bench/keras_fit.py [W1 W2 W3 W4] [--shrink 16] [--windows 12] [--steps 20]
                                     [--json FILE]

needs the package with its `cpu` extra, and tensorflow-recommenders. Both train under the emulated
TPUStrategy with one replica. They have the tables, the ids, the model and the optimizers of
`tf2.py`, whose loop is the other side here too.

A window is so many steps: an execution of `fit` with `steps_per_execution=--steps`, which Keras
advises for TPUs, or one call of a `tf.function` with `tf.range`. It begins when Keras calls
`on_train_batch_begin`, and ends at `on_train_batch_end`. Windows of the two take turns in one
process, and the first two pairs do not count. Prints the median milliseconds per step of both. The
ratio is a window of `fit` over the window of the loop before it, in the median.
"""

import argparse

import evidence
import tensorflow as tf
from tensorflow_recommenders.layers.embedding import TPUEmbedding
from tf2 import DENSE_RATE, UNITS, Loop, dataset_of, name_of, strategy_of  # First: it installs.
from turns import InTurns
from workloads import ACCUMULATOR, RATE, WORKLOADS

CASE = 'TPUStrategy, 1 replica'


class Fit(InTurns):
    """Trains with `fit`; a window is an execution."""

    def __init__(self, workload, strategy, steps):
        self._workload, self._strategy = workload, strategy
        super().__init__(steps)

    def train(self):
        """Trains until it is closed."""
        fit = self

        class Turns(tf.keras.callbacks.Callback):
            """Waits for its turn between two executions."""

            def on_train_batch_begin(self, batch, logs=None):
                """Gives the turn away, and begins when it is back."""
                fit.begin()

            def on_train_batch_end(self, batch, logs=None):
                """Looks at the clock."""
                fit.end()

        model = _model(self._workload, self._strategy, self._steps)
        batches = self._strategy.distribute_datasets_from_function(
            lambda context: dataset_of(self._workload, self._workload.batch),
            tf.distribute.InputOptions(experimental_fetch_to_device=False))
        model.fit(batches, steps_per_epoch=10**6 * self._steps, verbose=0, callbacks=[Turns()])


def _model(workload, strategy, steps):
    api = tf.tpu.experimental.embedding
    tables = [api.TableConfig(rows, width, combiner=workload.combiner, name=f't{number:02}')
              for number, (rows, width) in enumerate(workload.tables)]

    class Model(tf.keras.Model):
        """A hidden layer over the activations."""

        def __init__(self):
            super().__init__()
            self.embedding = TPUEmbedding(
                {name_of(number): api.FeatureConfig(tables[feature.table])
                 for number, feature in enumerate(workload.features)},
                api.Adagrad(RATE, ACCUMULATOR))
            self.hidden = tf.keras.layers.Dense(UNITS, 'relu')
            self.logit = tf.keras.layers.Dense(1)

        def call(self, inputs):
            """Returns logits."""
            return self.logit(self.hidden(tf.concat(tf.nest.flatten(self.embedding(inputs)), 1)))

    with strategy.scope():
        model = Model()
        model.compile(
            tf.keras.optimizers.legacy.SGD(DENSE_RATE),
            tf.keras.losses.BinaryCrossentropy(from_logits=True), steps_per_execution=steps)
    return model


def compare(workload, steps, windows):
    """Returns milliseconds per step of both, as pairs of windows that follow each other."""
    loop, fit = Loop(workload, strategy_of(CASE), steps), Fit(workload, strategy_of(CASE), steps)
    try:
        return [(loop.window(), fit.window()) for _ in range(windows + 2)][2:]
    finally:
        fit.close()


def show(parsed, figures):
    """Prints one line per workload."""
    for name in parsed.workloads or ['W1']:
        pairs = compare(WORKLOADS[name].shrunk(parsed.shrink), parsed.steps, parsed.windows)
        of_loop, of_fit = zip(*pairs)
        its = figures.add(f'{name}, loop', 'ms/step', of_loop)
        own = figures.add(f'{name}, fit', 'ms/step', of_fit)
        ratio = figures.add(f'{name}, ratio', 'times the loop', (
            fit / loop for loop, fit in pairs))
        print(f'{name}{its:9.2f} ms, fit{own:9.2f} ms, {ratio:.2f} times', flush=True)


def main():
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument('workloads', nargs='*', metavar='W', help='of W1 to W4; W1 if none')
    parser.add_argument('--windows', type=int, default=12)
    parser.add_argument('--steps', type=int, default=20)
    parser.add_argument('--shrink', type=int, default=16)
    evidence.add_argument(parser)
    parsed = parser.parse_args()
    with evidence.recorded(parsed.json, 'keras_fit') as figures:
        show(parsed, figures)


if __name__ == '__main__':
    main()
