"""Counts the ids of sampled steps into a `table_profile.TableProfile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .partition import REMAINDERS, STRATEGIES
from .table_profile import (
    HEAVY,
    MAX_BUCKETS,
    REGISTER_BITS,
    REGISTERS,
    FeatureUse,
    HostLoad,
    Subject,
    TableProfile,
)

CoreIds = tuple[np.ndarray, np.ndarray]
"""`(samples, ids)` of one feature on one core for one step, as in an `IdBatch`."""


class Tally:
    """The growing counts of one table.

    Attributes:
      subject: the table, and the run that looks up in it.
      sampled_steps: number of steps that were counted.

    >>> from .specs import Topology
    >>> subject = Subject(table='t', vocabulary_size=5, dimension=2, features=(('f', 0),),
    ...                   topology=Topology(num_hosts=2), batch_size=2, strategy='div')
    >>> tally = Tally(subject)
    >>> tally.add({'f': [(np.array([0]), np.array([4])), (np.array([0, 0]), np.array([4, 1]))]})
    >>> tally.profile(first_step=0, last_step=1, steps=1).loads['div']
    HostLoad(ids=(1, 2), unique_ids=(1, 1))
    """

    def __init__(self, subject: Subject):
        """Begins without any step."""
        self.subject = subject
        self.sampled_steps = 0
        self._features = {name: _Use() for name, _ in subject.features}
        self._unique_ids = 0
        self._heavy = _no_ids(), _no_ids()
        self._undercount = 0
        self._ranges = np.zeros(subject.num_ranges, np.int64)
        self._remainders = np.zeros(subject.num_remainders, np.int64)
        self._registers = np.zeros(REGISTERS, np.uint8)
        hosts = subject.topology.num_hosts
        self._loads = {strategy: np.zeros([2, hosts], np.int64) for strategy in STRATEGIES}

    def add(self, step: Mapping[str, Sequence[CoreIds]]) -> None:
        """Counts one step.

        Args:
          step: by feature of the subject, the ids of each core of all hosts.
        """
        per_core = self.subject.batch_size // self.subject.topology.num_cores
        for name, length in self.subject.features:
            for samples, ids in step[name]:
                self._features[name].add(np.bincount(
                    samples // max(length, 1), minlength=per_core))
        ids, counts = np.unique(np.concatenate([
            ids for name, _ in self.subject.features for _, ids in step[name]]).astype(np.int64),
            return_counts=True)
        self.sampled_steps += 1
        self._unique_ids += len(ids)
        np.add.at(self._ranges, ids * len(self._ranges) // self.subject.vocabulary_size, counts)
        np.add.at(self._remainders, ids % REMAINDERS, counts)
        for strategy, load in self._loads.items():
            partition = self.subject.partition(strategy, self.subject.topology.num_hosts)
            hosts, _ = partition.locate(ids, np.maximum)
            np.add.at(load[0], hosts, counts)
            np.add.at(load[1], hosts, 1)
        registers, ranks = _hashed(ids)
        np.maximum.at(self._registers, registers, ranks)
        self._add_heavy(ids, counts)

    def merge(self, profile: TableProfile) -> None:
        """Adds earlier counts of the same subject."""
        self.sampled_steps += profile.sampled_steps
        for (name, _), use in zip(self.subject.features, profile.features):
            self._features[name].merge(use)
        self._unique_ids += profile.unique_ids
        self._ranges += profile.ranges
        self._remainders += profile.remainders
        np.maximum(self._registers, np.frombuffer(profile.registers, np.uint8),
                   out=self._registers)
        for strategy, load in profile.loads.items():
            self._loads[strategy] += [load.ids, load.unique_ids]
        self._undercount += profile.undercount
        self._add_heavy(np.array(list(profile.heavy), np.int64),
                        np.array(list(profile.heavy.values()), np.int64))

    def profile(self, *, first_step: int, last_step: int, steps: int) -> TableProfile:
        """Returns the counts so far; the arguments become attributes of the profile."""
        return TableProfile(
            subject=self.subject, first_step=first_step, last_step=last_step, steps=steps,
            sampled_steps=self.sampled_steps,
            features=tuple(use.result() for use in self._features.values()),
            unique_ids=self._unique_ids,
            heavy=dict(zip(*(array.tolist() for array in self._heavy))),
            undercount=self._undercount, ranges=tuple(self._ranges.tolist()),
            remainders=tuple(self._remainders.tolist()), registers=self._registers.tobytes(),
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
        self._heavy = every, sums


class _Use:
    """The counts of one feature."""

    def __init__(self) -> None:
        self._ids = self._most = 0
        self._histogram = np.zeros(MAX_BUCKETS, np.int64)

    def add(self, ids_of_examples: np.ndarray) -> None:
        self._ids += int(ids_of_examples.sum())
        self._most = max(self._most, int(ids_of_examples.max(initial=0)))
        buckets = np.frexp(ids_of_examples.astype(np.float64))[1]  # Bits of a whole number.
        self._histogram += np.bincount(buckets, minlength=MAX_BUCKETS)

    def merge(self, use: FeatureUse) -> None:
        self._ids += use.ids
        self._most = max(self._most, use.most)
        self._histogram[:len(use.histogram)] += np.array(use.histogram, np.int64)

    def result(self) -> FeatureUse:
        return FeatureUse(self._ids, self._most,
                          tuple(np.trim_zeros(self._histogram, 'b').tolist()))


def _no_ids() -> np.ndarray:
    return np.zeros(0, np.int64)


def _hashed(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the HyperLogLog register of each id, and its rank.

    A register keeps its largest rank.
    """
    mixed = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)  # SplitMix64; it wraps.
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    rest = mixed & np.uint64(2**REGISTER_BITS - 1)
    ranks = REGISTER_BITS + 1 - np.frexp(rest.astype(np.float64))[1]
    return (mixed >> np.uint64(REGISTER_BITS)).astype(np.int64), ranks.astype(np.uint8)
