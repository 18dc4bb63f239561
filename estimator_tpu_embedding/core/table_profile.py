"""The profile of one table: counts of the ids that a job looks up, from a sample of its steps.

A profile has a bounded size, however large the table is. It counts each of the most frequent ids.
It counts all other ids in groups: by range of the vocabulary, and by remainder. From these counts
follows how many ids each host would hold under `div` and `mod`, for any number of hosts.
`core/tally.py` counts. This module needs no NumPy, so tools start fast.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from . import limits
from .names import name_problems
from .partition import REMAINDERS, STRATEGIES, Partition
from .plan import Plan
from .specs import Topology, is_count

HEAVY = 4096
"""The most ids whose look-ups are counted one by one."""
MAX_RANGES = 1024
REGISTERS = 2048
REGISTER_BITS = 53
"""Bits of a 64-bit hash that are left when 11 of them have chosen one of the 2,048 registers."""
MAX_BUCKETS = 33

_MAX_COUNT = 2**62
_SAMPLED_OF_2_32 = 2**32 // 32
_GOLDEN = 0x9E3779B9


def is_sampled(step: int) -> bool:
    """Whether a step is one of the 3.1 % whose ids are counted.

    Sampled steps are 21, 34 or 55 steps apart, along the golden ratio. So they fall evenly into
    any period that the data may have. If the data repeated after 32 batches, every 32nd step
    would see one of them only.

    >>> [step for step in range(150) if is_sampled(step)]
    [0, 34, 68, 89, 123]
    """
    return step * _GOLDEN % 2**32 < _SAMPLED_OF_2_32


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a profile: a table and the run that looked up in it.

    Attributes:
      table: name of the table.
      vocabulary_size: its rows, as declared.
      dimension: width of its rows.
      features: `(name, max_sequence_length)` of each feature that looks up in it.
      topology: hosts and cores.
      batch_size: samples of all cores per step.
      strategy: how the run spread rows; it changes none of the counts.
    """

    table: str
    vocabulary_size: int
    dimension: int
    features: tuple[tuple[str, int], ...]
    topology: Topology
    batch_size: int
    strategy: str

    @property
    def num_ranges(self) -> int:
        """The number of equal ranges into which the vocabulary is cut for counting."""
        return min(self.vocabulary_size, MAX_RANGES)

    @property
    def num_remainders(self) -> int:
        """The number of remainders that ids can have."""
        return min(self.vocabulary_size, REMAINDERS)

    def partition(self, strategy: str, num_hosts: int) -> Partition:
        """Returns the map between ids and rows under a strategy on so many hosts."""
        return Partition(strategy=strategy, vocabulary_size=self.vocabulary_size,
                         num_hosts=num_hosts)


def subject_of(plan: Plan, table: str) -> Subject:
    """Returns the subject of a profile of a table of `plan`."""
    spec = plan.table(table)
    return Subject(
        table=table, vocabulary_size=spec.vocabulary_size, dimension=spec.dimension,
        features=tuple((feature.name, feature.max_sequence_length)
                       for feature in plan.features_of(table)),
        topology=plan.topology, batch_size=plan.global_batch_size, strategy=plan.strategy)


@dataclasses.dataclass(frozen=True, slots=True)
class FeatureUse:
    """The use of one feature by a job.

    Attributes:
      ids: number of ids looked up, without ids that were missing, dropped or cut off.
      most: the largest number of ids of one example.
      histogram: how many examples had 0, 1, 2 to 3, 4 to 7, ... ids; no zeros at its end.
    """

    ids: int
    most: int
    histogram: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class HostLoad:
    """The exact load of each host of the run under one strategy.

    Attributes:
      ids: by host, the number of ids looked up there.
      unique_ids: by host, the distinct ids of each sampled step, summed: the rows read.
    """

    ids: tuple[int, ...]
    unique_ids: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableProfile:
    """The counts of one table over all sampled steps, exact unless stated otherwise.

    Attributes:
      subject: what was profiled.
      first_step: the global step at which the first run began.
      last_step: the global step of the last run when the profile was written.
      steps: number of steps; a step that ran again after a restart counts again.
      sampled_steps: number of steps whose ids were counted.
      features: in the order of the subject's features.
      unique_ids: distinct ids of each sampled step, summed.
      heavy: least number of look-ups of each of the most frequent ids. The true number is up to
        `undercount` higher. Any other id was looked up at most `undercount` times.
      undercount: at most 1 / 4,097 of all ids. While no more than 4,096 different ids were
        looked up it is 0: then `heavy` is complete and exact.
      ranges: number of ids in each of equal ranges of the vocabulary.
      remainders: number of ids with each remainder of a division by `REMAINDERS`.
      registers: HyperLogLog sketch of the set of all ids.
      loads: the load of each host, by strategy.
    """

    subject: Subject
    first_step: int
    last_step: int
    steps: int
    sampled_steps: int
    features: tuple[FeatureUse, ...]
    unique_ids: int
    heavy: dict[int, int]
    undercount: int
    ranges: tuple[int, ...]
    remainders: tuple[int, ...]
    registers: bytes
    loads: dict[str, HostLoad]

    @property
    def ids(self) -> int:
        """The number of ids of all features."""
        return sum(feature.ids for feature in self.features)

    @property
    def examples(self) -> int:
        """The number of samples of the steps that were counted."""
        return self.sampled_steps * self.subject.batch_size

    def heaviest(self, count: int) -> list[tuple[int, int]]:
        """Pairs of a frequent id and its least number of look-ups, most frequent first."""
        return sorted(self.heavy.items(), key=lambda pair: (-pair[1], pair[0]))[:count]

    def distinct(self) -> int:
        """Returns how many different ids were looked up.

        The number is exact up to 4,096. Above, it is an estimate with a standard error of 2.3 %.
        """
        if not self.undercount:
            return len(self.heavy)
        empty = self.registers.count(0)
        estimate = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS**2 / sum(
            2.0**-rank for rank in self.registers)
        if estimate <= 2.5 * REGISTERS and empty:
            estimate = REGISTERS * math.log(REGISTERS / empty)
        return min(round(estimate), self.subject.vocabulary_size, self.ids)

    def load(self, strategy: str, num_hosts: int) -> tuple[list[float], int]:
        """Returns how many of the ids each of `num_hosts` hosts would hold.

        Returns:
          `(load, uncertain)` as `Partition.spread` gives them. The load is exact, and `uncertain`
          0, for the number of hosts of the run and for up to 4,096 different ids. The same holds
          under `mod` if the number of hosts divides 3,840.
        """
        if num_hosts == self.subject.topology.num_hosts:
            return list(map(float, self.loads[strategy].ids)), 0
        partition = self.subject.partition(strategy, num_hosts)
        load, uncertain = partition.spread(*self._light())
        for id, count in self.heavy.items():
            load[partition.locate(id, max)[0]] += count
        return load, uncertain

    def _light(self) -> tuple[list[int], list[int]]:
        """Returns `ranges` and `remainders` without the ids that are in `heavy`."""
        ranges, remainders = list(self.ranges), list(self.remainders)
        for id, count in self.heavy.items():
            ranges[id * len(ranges) // self.subject.vocabulary_size] -= count
            remainders[id % REMAINDERS] -= count
        return ranges, remainders

    def faults(self) -> Iterator[str]:
        """Yields each contradiction, which no counted profile has.

        Each check relies on the earlier ones.
        """
        yield from _faults_of_subject(self.subject)
        yield from self._faults_of_sizes()
        total = self.ids
        for what, counted in (('ranges', self.ranges), ('remainders', self.remainders), *(
                (f'load under {name}', load.ids) for name, load in self.loads.items())):
            if sum(counted) != total:
                yield f'{what} sum to {sum(counted)} of {total} ids'
        for name, load in self.loads.items():
            if sum(load.unique_ids) != self.unique_ids or self.unique_ids > total:
                yield f'unique ids under {name} do not sum to {self.unique_ids}'
        for feature in self.features:
            if sum(feature.histogram) != self.examples or feature.most > feature.ids:
                yield 'the histogram of a feature has other examples than its steps'
        if any(not 0 <= id < self.subject.vocabulary_size for id in self.heavy):
            yield 'a heavy id is not in the vocabulary'
        if min(map(min, self._light())) < 0 or self.undercount * (HEAVY + 1) > total or (
                not self.undercount and sum(self.heavy.values()) != total):
            yield 'the heavy ids do not fit the counts of all'

    def _faults_of_sizes(self) -> Iterator[str]:
        subject = self.subject
        numbers = [self.first_step, self.last_step, self.steps, self.sampled_steps, self.ids,
                   self.unique_ids, self.undercount, self.examples]
        if not all(is_count(number, 0, _MAX_COUNT) for number in numbers) or (
                self.first_step > self.last_step):
            yield 'a count or step is out of range'
        lengths = [len(self.ranges), len(self.remainders), len(self.registers), len(self.features),
                   *(len(counts) for load in self.loads.values()
                     for counts in (load.ids, load.unique_ids))]
        if lengths != [subject.num_ranges, subject.num_remainders, REGISTERS,
                       len(subject.features), *[subject.topology.num_hosts] * 2 * len(STRATEGIES)]:
            yield 'a list has another length than its table and run ask for'
        if len(self.heavy) > HEAVY or 0 in self.heavy.values() or (
                max(self.registers, default=0) > REGISTER_BITS + 1) or any(
                len(feature.histogram) > MAX_BUCKETS for feature in self.features):
            yield 'a list holds more than it can'


def _faults_of_subject(subject: Subject) -> Iterator[str]:
    names = [name for name, _ in subject.features]
    for kind, name in [('table', subject.table), *(('feature', name) for name in names)]:
        yield from map(str, name_problems(kind, name))
    yield from map(str, subject.topology.problems())
    if not is_count(subject.vocabulary_size, 1, limits.MAX_VOCABULARY_SIZE) or (
            not is_count(subject.dimension, 1, limits.MAX_DIMENSION)) or (
            not is_count(subject.batch_size, 1, _MAX_COUNT)):
        yield 'the size of the table or of a batch is out of range'
    if subject.strategy not in STRATEGIES:
        yield 'the strategy is not known'
    if not names or names != sorted(set(names)) or any(
            not is_count(length, 0, limits.MAX_VOCABULARY_SIZE)
            for _, length in subject.features):
        yield 'the features are not distinct, sorted and at least one'
