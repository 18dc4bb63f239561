"""The profile of one table: counts of the ids that a job looks up, from a sample of its steps.

A profile has a bounded size, however large the table is. It counts each of the most frequent ids.
It counts all other ids in groups: by range of the vocabulary, and by remainder. From these counts
follows how many ids each host would hold under `div` and `mod`, for any number of hosts.
`core/tally.py` counts. This module needs no NumPy, so tools start fast.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from . import limits
from .partition import REMAINDERS, STRATEGIES, Partition
from .plan import Plan

HEAVY = 4096
"""The most ids whose look-ups are counted one by one."""
MAX_RANGES = 1024
MAX_BUCKETS = 33

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


class Subject(NamedTuple):
    """The subject of a profile: a table and the run that looked up in it.

    Attributes:
      table: name of the table.
      vocabulary_size: its rows, as declared.
      dimension: width of its rows.
      features: `(name, max_sequence_length)` of each feature that looks up in it.
      hosts: number of hosts.
      cores_per_host: number of cores of each.
      batch_size: samples of all cores per step.
      strategy: how the run spread rows; it changes none of the counts.
    """

    table: str
    vocabulary_size: int
    dimension: int
    features: tuple[tuple[str, int], ...]
    hosts: int
    cores_per_host: int
    batch_size: int
    strategy: str

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
        hosts=plan.topology.num_hosts, cores_per_host=plan.topology.cores_per_host,
        batch_size=plan.global_batch_size, strategy=plan.strategy)


class FeatureUse(NamedTuple):
    """The use of one feature by a job.

    Attributes:
      ids: number of ids looked up, without ids that were missing, dropped or cut off.
      most: the largest number of ids of one example.
      histogram: how many examples had 0, 1, 2 to 3, 4 to 7, ... ids.
    """

    ids: int = 0
    most: int = 0
    histogram: tuple[int, ...] = (0,) * MAX_BUCKETS


class HostLoad(NamedTuple):
    """The ids of the run by the host that holds them, under one strategy.

    Attributes:
      ids: number of ids, by host.
      unique_ids: distinct ids of each step, summed; so many rows are read.
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
      loads: the load of each host, by strategy.
    """

    subject: Subject
    first_step: int = 0
    last_step: int = 0
    steps: int = 0
    sampled_steps: int = 0
    features: tuple[FeatureUse, ...]
    unique_ids: int = 0
    heavy: dict[int, int] = dataclasses.field(default_factory=dict)
    undercount: int = 0
    ranges: tuple[int, ...]
    remainders: tuple[int, ...]
    loads: dict[str, HostLoad]

    @classmethod
    def empty(cls, subject: Subject) -> TableProfile:
        """Returns the profile of a run that made no step."""
        none = (0,) * subject.hosts
        return cls(subject=subject, features=(FeatureUse(),) * len(subject.features),
                   ranges=(0,) * min(subject.vocabulary_size, MAX_RANGES),
                   remainders=(0,) * min(subject.vocabulary_size, REMAINDERS),
                   loads={strategy: HostLoad(none, none) for strategy in STRATEGIES})

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

    def load(self, strategy: str, num_hosts: int) -> tuple[list[float], int]:
        """Returns how many of the ids each of `num_hosts` hosts would hold.

        Returns:
          `(load, uncertain)` as `Partition.spread` gives them. The load is exact, and `uncertain`
          0, for the number of hosts of the run and for up to 4,096 different ids. The same holds
          under `mod` if the number of hosts divides 3,840.
        """
        if num_hosts == self.subject.hosts:
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

    def is_possible(self) -> bool:
        """Whether counting may have given these numbers, all of which are >= 0."""
        about = self.subject
        whole = (self.first_step, self.last_step, self.steps, self.sampled_steps, self.unique_ids,
                 self.undercount)
        if sum(whole) < 0 or min(about.dimension, about.cores_per_host, about.batch_size) < 1 or (
                not 1 <= about.vocabulary_size <= limits.MAX_VOCABULARY_SIZE) or (
                not 1 <= about.hosts <= limits.MAX_HOSTS):
            return False
        if self._lengths() != TableProfile.empty(about)._lengths() or len(self.heavy) > HEAVY or (
                0 in self.heavy.values() or max(self.heavy, default=0) >= about.vocabulary_size):
            return False
        sums = [sum(self.ranges), sum(self.remainders),
                *(sum(load.ids) for load in self.loads.values())]
        return min(map(min, self._light())) >= 0 and sums == [self.ids] * len(sums)

    def _lengths(self) -> list[object]:
        return [len(self.ranges), len(self.remainders), sorted(
            (name, *map(len, load)) for name, load in self.loads.items()),
            [len(use.histogram) for use in self.features]]
