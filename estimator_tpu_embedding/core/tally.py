"""Counts the ids of sampled steps into a `table_profile.TableProfile`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from .partition import REMAINDERS
from .table_profile import HEAVY, MAX_BUCKETS, HostLoad, TableProfile

CoreIds = tuple[np.ndarray, np.ndarray]
"""`(samples, ids)` of one feature on one core for one step, as in an `IdBatch`."""


class Tally:
    """The growing counts of one table.

    Attributes:
      begun: the counts that it began with: `TableProfile.empty`, or what earlier runs counted.
      subject: the table, and the run that looks up in it.
      sampled_steps: number of steps that were counted.

    >>> from .table_profile import Subject
    >>> tally = Tally(TableProfile.empty(Subject('t', 5, 2, (('f', 0),), 2, 1, 2, 'div')))
    >>> tally.add({'f': [(np.array([0]), np.array([4])), (np.array([0, 0]), np.array([4, 1]))]})
    >>> tally.profile(first_step=0, last_step=1, steps=1).loads['div']
    HostLoad(ids=(1, 2), unique_ids=(1, 1))
    """

    def __init__(self, begun: TableProfile):
        """Begins with the counts of `begun`."""
        self.begun, self.subject = begun, begun.subject
        self.sampled_steps, self._unique_ids = begun.sampled_steps, begun.unique_ids
        self._features = list(begun.features)
        self._histograms = [np.array(use.histogram) for use in begun.features]
        self._heavy = np.array([*begun.heavy.items()], np.int64).reshape(-1, 2).T
        self._undercount = begun.undercount
        self._ranges, self._remainders = np.array(begun.ranges), np.array(begun.remainders)
        self._loads = {strategy: np.array(load) for strategy, load in begun.loads.items()}

    def add(self, step: Mapping[str, Sequence[CoreIds]]) -> None:
        """Counts one step.

        Args:
          step: by feature of the subject, the ids of each core of all hosts.
        """
        per_core = self.subject.batch_size // (self.subject.hosts * self.subject.cores_per_host)
        for number, (name, length) in enumerate(self.subject.features):
            for samples, ids in step[name]:
                of_examples = np.bincount(samples // max(length, 1), minlength=per_core)
                buckets = np.frexp(of_examples.astype(np.float64))[1]  # Bits of a whole number.
                self._histograms[number] += np.bincount(buckets, minlength=MAX_BUCKETS)
                use = self._features[number]
                self._features[number] = use._replace(
                    ids=use.ids + len(ids), most=max(use.most, int(of_examples.max(initial=0))))
        ids, counts = np.unique(np.concatenate([
            ids for name, _ in self.subject.features for _, ids in step[name]]).astype(np.int64),
            return_counts=True)
        self.sampled_steps += 1
        self._unique_ids += len(ids)
        np.add.at(self._ranges, ids * len(self._ranges) // self.subject.vocabulary_size, counts)
        np.add.at(self._remainders, ids % REMAINDERS, counts)
        for strategy, load in self._loads.items():
            partition = self.subject.partition(strategy, self.subject.hosts)
            hosts, _ = partition.locate(ids, np.maximum)
            np.add.at(load[0], hosts, counts)
            np.add.at(load[1], hosts, 1)
        self._add_heavy(ids, counts)

    def profile(self, *, first_step: int, last_step: int, steps: int) -> TableProfile:
        """Returns the counts so far, with those that it began with.

        Args:
          first_step: the global step at which this run began.
          last_step: its global step now.
          steps: that it has made.
        """
        begun = self.begun
        return dataclasses.replace(
            begun, first_step=min(first_step, begun.first_step) if begun.steps else first_step,
            last_step=max(last_step, begun.last_step), steps=begun.steps + steps,
            sampled_steps=self.sampled_steps, unique_ids=self._unique_ids,
            features=tuple(use._replace(histogram=tuple(histogram.tolist()))
                           for use, histogram in zip(self._features, self._histograms)),
            heavy=dict(zip(*self._heavy.tolist())), undercount=self._undercount,
            ranges=tuple(self._ranges.tolist()), remainders=tuple(self._remainders.tolist()),
            loads={strategy: HostLoad(*map(tuple, load.tolist()))
                   for strategy, load in self._loads.items()})

    def _add_heavy(self, ids: np.ndarray, counts: np.ndarray) -> None:
        """Adds counts of single ids, and keeps the largest (the algorithm of Misra and Gries).

        If there are too many ids, the largest count that is left out is subtracted from all that
        stay. So 4,097 ids lose each count at once, which bounds the loss.
        """
        every, where = np.unique(np.concatenate([self._heavy[0], ids]), return_inverse=True)
        sums = np.zeros(len(every), np.int64)
        np.add.at(sums, where, np.concatenate([self._heavy[1], counts]))
        if len(every) > HEAVY:
            cut = int(np.partition(sums, -HEAVY - 1)[-HEAVY - 1])
            self._undercount += cut
            stay = sums > cut
            every, sums = every[stay], sums[stay] - cut
        self._heavy = np.stack([every, sums])
