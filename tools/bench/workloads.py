"""Defines the tables and the ids of the benchmarks of embedding engines. NumPy only.

| workload | tables | rows x width | features | batch | ids per sample | combiner |
|---|---|---|---|---|---|---|
| W1 | 8 | 1M x 64 | 8 | 4096 | 10 | sum |
| W2 | 26 | 100k x 16 | 26 | 8192 | 1 | sum |
| W3 | 1 | 10M x 32 | 1 | 16384 | 20 | mean |
| W4 | 40 | 100k x (see below) | 200 | 1024 | 1, 1, 1, 1, 5 | mean |

The tables of W4 are 1, 2, 4, 8, 16, 32, 64 and 128 wide, five of each, and each has five features.

Ids are Zipf(1.05): the probability of id k is in proportion to 1 / (k + 1)**1.05. A permutation
per table then spreads the ids over its rows.
"""

import functools
import sys
from typing import NamedTuple

import numpy as np

RATE, ACCUMULATOR, START = 0.1, 0.1, 0.05
"""Of Adagrad, and the first value of all rows."""

CHECKED = 3
"""Steps after which rows are compared with those of NumPy."""


class Feature(NamedTuple):
    """Ids of one table, by its number."""

    table: int
    per_sample: int


class Workload(NamedTuple):
    """Tables, features and batch of a benchmark; `tables` are pairs of rows and width.

    `batches` come in turn.
    """

    name: str
    tables: tuple
    features: tuple
    batch: int
    combiner: str
    batches: int = 4

    def shrunk(self, by):
        """The same with rows and batch divided; the batch stays a multiple of 4, for 4 hosts."""
        return self._replace(
            tables=tuple((max(rows // by, 1), width) for rows, width in self.tables),
            batch=max(self.batch // by // 4, 1) * 4)

    def feeds(self):
        """The ids of each batch: by feature int64 `[batch * per_sample]`, sample by sample."""
        generator = np.random.default_rng(1)
        places = [generator.permutation(rows) for rows, _ in self.tables]
        return [[places[feature.table][_zipf(
            generator, self.tables[feature.table][0], self.batch * feature.per_sample)]
            for feature in self.features] for _ in range(self.batches)]

    def samples(self, feature):
        """The sample of each id of a feature: int32."""
        return np.repeat(np.arange(self.batch, dtype=np.int32), feature.per_sample)

    def rows_after(self, steps):
        """The rows of each table after steps with a loss of halved sums of squares: float64."""
        feeds = self.feeds()
        rows = [np.full(shape, START) for shape in self.tables]
        slots = [np.full(shape, ACCUMULATOR) for shape in self.tables]
        for step in range(steps):
            sums = [np.zeros(shape) for shape in self.tables]
            for ids, (table, per_sample) in zip(feeds[step % self.batches], self.features):
                share = 1 / per_sample if self.combiner == 'mean' else 1
                activations = share * rows[table][ids.reshape(-1, per_sample)].sum(1)
                np.add.at(sums[table], ids, np.repeat(share * activations, per_sample, axis=0))
            for row, slot, gradient in zip(rows, slots, sums):
                slot += gradient**2
                row -= RATE * gradient / np.sqrt(slot)
        return rows

    def least_seconds(self, feeds, read, changed, copied):
        """Returns how long a step with Adagrad takes at least, mean of the batches.

        Each distinct row is read once. Then it and its slot are changed once. Activations are
        written, gradients are read, and ids are read.

        Args:
          feeds: see `feeds`.
          read, changed: by width, how many rows per second are reached at random places.
          copied: bytes per second that are read or written one after the other.
        """
        total = 0.
        for batch in feeds:
            for at, (_, width) in enumerate(self.tables):
                own = [ids for ids, feature in zip(batch, self.features) if feature.table == at]
                rows = np.unique(np.concatenate(own)).size
                total += rows / read[width] + 2 * rows / changed[width]
            for ids, feature in zip(batch, self.features):
                total += (2 * 4 * self.tables[feature.table][1] * self.batch + ids.nbytes) / copied
        return total / len(feeds)


def probabilities(rows):
    """The probability of each id, of the most frequent first: float64 `[rows]`."""
    weights = 1 / np.arange(1, rows + 1)**1.05
    return weights / weights.sum()


@functools.cache
def _sums(rows):
    return np.cumsum(1 / np.arange(1, rows + 1)**1.05)


def _zipf(generator, rows, count):
    sums = _sums(rows)
    return np.minimum(np.searchsorted(sums, sums[-1] * generator.random(count)), rows - 1)


def equal(name, tables, rows, width, batch, per_sample, combiner):
    """A workload of equal tables with one feature each."""
    return Workload(name, ((rows, width),) * tables,
                    tuple(Feature(table, per_sample) for table in range(tables)), batch, combiner)


WORKLOADS = {each.name: each for each in (
    equal('W1', 8, 10**6, 64, 4096, 10, 'sum'), equal('W2', 26, 10**5, 16, 8192, 1, 'sum'),
    equal('W3', 1, 10**7, 32, 16384, 20, 'mean'),
    Workload('W4', tuple((10**5, 2**(k // 5)) for k in range(40)),
             tuple(Feature(k // 5, 5 if k % 5 == 4 else 1) for k in range(200)), 1024, 'mean'))}


def error_of(engine, workload):
    """Trains a new engine, and returns the largest error of a row, over the largest change."""
    engine.window('whole', CHECKED)
    wanted = workload.rows_after(CHECKED)
    error = max(np.abs(own - right).max() for own, right in zip(engine.rows(), wanted))
    return error / max(np.abs(right - START).max() for right in wanted)


def serve(engine, workload):
    """Answers lines of the input until it ends."""
    print('ready', flush=True)
    for line in sys.stdin:
        kind, steps = line.split()
        print(error_of(engine, workload) if kind == 'error' else engine.window(kind, int(steps)),
              flush=True)
