"""Counts the bytes that hosts must exchange in a step, in two ways. It needs no TensorFlow.

Each host holds a share of the rows of every table, and looks up ids of its own samples. Ids, and
what belongs to them, travel between all pairs of hosts:

* by *sums*: a host sends an owner each id and its sample. The owner adds the rows of a sample up
  and sends one sum per sample that has an id there. A gradient per sum goes the other way.
* by *rows*: a host sends an owner each distinct id of a feature, and its number. The owner sends
  these rows. A gradient per row goes the other way, summed over the host's samples.

The engine takes the way with fewer sums or rows, for each feature, owner and step. Both ways take
the same number of messages. A number takes 4 bytes.

The engine takes the way with fewer groups for each feature, owner and step: sums of samples, or
distinct rows (`hosts/per_host.py`). It looks for equal ids in one feature, not in all of a table.
It sends a group with each row too, 4 bytes more per row than the model says.

The ids are those of `workloads.py`, drawn independently, and the owner of an id is any host with
the same probability. So the counts of the model are expected values. The bytes are those that one
host sends. It receives as many.

With `exact_bytes` the bytes of the engine are counted for ids that are given.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np
from workloads import WORKLOADS, Feature, Workload, probabilities

from estimator_tpu_embedding.core.partition import Partition

HOSTS = range(2, 65)
BYTES = 4
"""Of a number, whether of a row, a sample or an activation."""

CENSUS = Workload('census', ((32, 8), (8, 4), (16, 4), (7, 4), (6, 4)), (
    Feature(0, 1), Feature(0, 1), *(Feature(table, 1) for table in range(1, 5))), 512, 'mean')
"""The tables and features of `tools/examples/census_tpu_job.py`; its words are taken as Zipf."""

ALL = {**WORKLOADS, 'census': CENSUS}


class Link(NamedTuple):
    """What messages between two hosts cost, as measured.

    Attributes:
      seconds_per_message: of one number.
      bytes_per_second: of long messages.
    """

    seconds_per_message: float
    bytes_per_second: float


class Sent(NamedTuple):
    """Bytes that one host sends in a step."""

    ids: float
    values: float
    gradients: float

    @property
    def total(self):
        """All of them."""
        return self.ids + self.values + self.gradients


@functools.cache
def distinct(rows, draws):
    """Returns how many different ids so many draws from a table give, on average.

    >>> distinct(1, 5)
    1.0
    """
    return float(-np.expm1(draws * _logarithms(rows)).sum())


def samples_there(samples, per_sample, hosts):
    """Returns how many of a host's samples have an id at one certain owner, on average.

    >>> samples_there(8, 2, 2)  # A quarter of them has both ids at the other host.
    6.0
    """
    return samples * (1 - (1 - 1 / hosts)**per_sample)


def by_sums(workload, hosts, samples):
    """Returns what a host with so many samples sends, if sums travel.

    >>> one = Workload('', ((1000, 2),), (Feature(0, 1),), 4, 'sum')
    >>> by_sums(one, hosts=2, samples=4)  # 2 of 4 ids are at the other host.
    Sent(ids=16.0, values=16.0, gradients=16.0)
    """
    return _sum_of(workload, lambda feature: (
        samples * feature.per_sample * (hosts - 1) / hosts,
        (hosts - 1) * samples_there(samples, feature.per_sample, hosts)))


def by_rows(workload, hosts, samples):
    """Returns what a host with so many samples sends, if distinct rows travel.

    >>> one = Workload('', ((1, 2),), (Feature(0, 1),), 4, 'sum')
    >>> by_rows(one, hosts=2, samples=4)  # The only row is at the other host every other time.
    Sent(ids=4.0, values=4.0, gradients=4.0)
    """
    def counts(feature):
        rows = distinct(workload.tables[feature.table][0], samples * feature.per_sample)
        return (rows * (hosts - 1) / hosts,) * 2

    return _sum_of(workload, counts)


def by_fewer(workload, hosts, samples):
    """Returns what a host with so many samples sends, if each feature takes the better way."""
    alone = [workload._replace(features=(feature,)) for feature in workload.features]
    return Sent(*map(sum, zip(*(min(
        [way(one, hosts, samples) for way in (by_sums, by_rows)],
        key=lambda sent: sent.values) for one in alone))))


def _sum_of(workload, counts):
    """Adds bytes of features up; counts is (feature) -> how many ids, and how many values."""
    found = [(*counts(feature), workload.tables[feature.table][1])
             for feature in workload.features]
    values = sum(BYTES * width * values for _, values, width in found)
    return Sent(sum(2 * BYTES * ids for ids, _, _ in found), values, values)


def first_by_rows(workload, samples_at):
    """Returns the fewest hosts of 2 to 64 from which on rows are fewer bytes than sums, or `None`.

    Args:
      workload: the tables and features.
      samples_at: (number of hosts) -> samples of one host.
    """
    found = None
    for hosts in reversed(HOSTS):
        samples = samples_at(hosts)
        if by_rows(workload, hosts, samples).total >= by_sums(workload, hosts, samples).total:
            break
        found = hosts
    return found


def growths(workload):
    """Returns two ways in which a job grows: by name, (number of hosts) -> samples of one host."""
    return {'batch of the job stays': lambda hosts: workload.batch / hosts,
            'batch of a host stays': lambda hosts: workload.batch}


def exact_bytes(workload, hosts, strategy):
    """Returns the bytes that each host sends in a step, and those that it receives.

    Each feature takes the better way, as the engine does.

    Args:
      workload: its feeds are the ids; host h has the h-th part of each batch.
      hosts: their number, of which the batch is a multiple.
      strategy: `'div'` or `'mod'`, which says where rows are.

    Returns:
      Two float64 arrays `[hosts]`, means of all batches.
    """
    feeds = workload.feeds()
    sent, received = np.zeros(hosts), np.zeros(hosts)
    for batch in feeds:
        for ids, feature in zip(batch, workload.features):
            rows, width = workload.tables[feature.table]
            ids = ids.reshape([hosts, -1, feature.per_sample])
            owners = Partition(strategy=strategy, vocabulary_size=rows, num_hosts=hosts).locate(
                ids, np.maximum)[0]
            for core, owner in itertools.permutations(range(hosts), 2):
                there = owners[core] == owner
                samples, distinct_ids = there.any(1).sum(), np.unique(ids[core][there]).size
                values = BYTES * width * min(samples, distinct_ids)
                request = values + 2 * BYTES * (
                    distinct_ids if distinct_ids < samples else there.sum())
                sent[core] += request
                received[owner] += request
                sent[owner] += values
                received[core] += values
    return sent / len(feeds), received / len(feeds)


WAYS = {'sums': by_sums, 'rows': by_rows, 'fewer': by_fewer}


def milliseconds(sent, hosts, link):
    """Returns how long a host's messages of a step take, one after the other.

    >>> milliseconds(Sent(0, 500, 500), hosts=3, link=Link(1e-3, 1e6))  # 2 * 3 messages, 1 kB.
    7.0
    """
    messages = len(Sent._fields) * (hosts - 1)
    return 1e3 * (messages * link.seconds_per_message + sent.total / link.bytes_per_second)


def add_to(figures, workloads, link=None, hosts=(2, 4, 8, 16, 64)):
    """Adds bytes of both ways to figures, and prints a line per workload and growth.

    Args:
      figures: see `evidence.py`.
      workloads: each with any batch.
      link: gives milliseconds of the engine's way too, if it is known.
      hosts: the numbers of hosts to show.
    """
    print(f'{"model: MB per step that a host sends by sums, rows, fewer":58}'
          + ''.join(f'{count:>15} hosts' for count in hosts) + '   rows are fewer')
    for workload in workloads:
        for growth, samples_at in growths(workload).items():
            line = f'{workload.name}, {growth}'
            cells = []
            for count in hosts:
                for name, way in WAYS.items():
                    sent = way(workload, count, samples_at(count))
                    key = f'model, {line}, {count} hosts, by {name}'
                    cells.append(f'{figures.add(key, "MB/step", [sent.total / 1e6]):7.2f}')
                    if link is not None and way is by_fewer:
                        figures.add(f'{key}, messages', 'ms/step',
                                    [milliseconds(sent, count, link)])
            first = first_by_rows(workload, samples_at)
            if first is not None:
                figures.add(f'model, {line}, rows are fewer from', 'hosts', [first])
            print(f'{line:58}{"".join(cells)}   '
                  + ('never' if first is None else f'from {first} hosts on'), flush=True)


@functools.cache
def _logarithms(rows):
    """Of the probability that a draw is another id, for each id."""
    return np.log1p(-np.minimum(probabilities(rows), 1 - 1e-15))
