"""The profile of one table: counts of the ids that a job looks up, from a sample of its steps.

A profile has a bounded size, however large the table is. It counts ids in groups: by range of the
vocabulary, and by remainder. From these counts follows how many ids each host would hold under
`div` and `mod`, for any number of hosts. Only a `Tally`, which counts, needs NumPy: so tools that
read profiles start fast.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from . import limits
from .partition import REMAINDERS, STRATEGIES, Partition
from .plan import Plan

if TYPE_CHECKING:
    import numpy as np

MAX_RANGES = 1024

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
      features: `(name, max_sequence_length)` of each feature that looks up in it.
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableProfile:
    """The counts of one table over all sampled steps, exact unless stated otherwise.

    Attributes:
      first_step: the global step at which the first run began.
      last_step: the global step of the last run when the profile was written.
      steps: number of steps; a step that ran again after a restart counts again.
      features: ids of each feature of the subject, without those missing, dropped or cut off.
      ranges: number of ids in each of equal ranges of the vocabulary.
      remainders: number of ids with each remainder of a division by `REMAINDERS`.
      loads: by strategy the number of ids on each host of the run.
    """

    subject: Subject
    first_step: int = 0
    last_step: int = 0
    steps: int = 0
    sampled_steps: int = 0
    features: tuple[int, ...]
    ranges: tuple[int, ...]
    remainders: tuple[int, ...]
    loads: dict[str, tuple[int, ...]]

    @classmethod
    def empty(cls, subject: Subject) -> TableProfile:
        """Returns the profile of a run that made no step."""
        return cls(subject=subject, features=(0,) * len(subject.features),
                   ranges=(0,) * min(subject.vocabulary_size, MAX_RANGES),
                   remainders=(0,) * min(subject.vocabulary_size, REMAINDERS),
                   loads={strategy: (0,) * subject.hosts for strategy in STRATEGIES})

    @property
    def ids(self) -> int:
        """The number of ids of all features."""
        return sum(self.features)

    @property
    def examples(self) -> int:
        """The number of samples of the steps that were counted."""
        return self.sampled_steps * self.subject.batch_size

    def load(self, strategy: str, num_hosts: int) -> tuple[list[float], int]:
        """Returns `(load, uncertain)` for so many hosts, as `Partition.spread` gives them.

        The load is exact for the number of hosts of the run, and under `mod` if the number of hosts
        divides 3,840.
        """
        if num_hosts == self.subject.hosts:
            return list(map(float, self.loads[strategy])), 0
        partition = self.subject.partition(strategy, num_hosts)
        return partition.spread(self.ranges, self.remainders)

    def is_possible(self) -> bool:
        """Whether counting may have given these numbers, all of which are >= 0."""
        about = self.subject
        whole = (self.first_step, self.last_step, self.steps, self.sampled_steps)
        if sum(whole) < 0 or min(about.dimension, about.cores_per_host, about.batch_size) < 1 or (
                not 1 <= about.vocabulary_size <= limits.MAX_VOCABULARY_SIZE) or (
                not 1 <= about.hosts <= limits.MAX_HOSTS):
            return False
        sums = [sum(self.ranges), sum(self.remainders), *map(sum, self.loads.values())]
        return self._lengths() == TableProfile.empty(about)._lengths() and (
            sums == [self.ids] * len(sums))

    def _lengths(self) -> list[object]:
        return [len(self.features), len(self.ranges), len(self.remainders), sorted(
            (name, len(load)) for name, load in self.loads.items())]


class Tally:
    """The growing counts of one table, on top of those that it began with.

    >>> import numpy as np
    >>> tally = Tally(TableProfile.empty(Subject('t', 5, 2, (('f', 0),), 2, 1, 2, 'div')))
    >>> tally.add({'f': [(np.array([0]), np.array([4])), (np.array([0, 0]), np.array([4, 1]))]})
    >>> tally.profile(first_step=0, last_step=1, steps=1).loads['div']
    (1, 2)
    """

    def __init__(self, begun: TableProfile):
        import numpy as np
        self.begun, self.subject = begun, begun.subject
        self.sampled_steps = begun.sampled_steps
        self._features = np.array(begun.features)
        self._ranges, self._remainders = np.array(begun.ranges), np.array(begun.remainders)
        self._loads = {strategy: np.array(load) for strategy, load in begun.loads.items()}

    def add(self, step: Mapping[str, Sequence[tuple[np.ndarray, np.ndarray]]]) -> None:
        """Counts one step: by feature the `(samples, ids)` of each core of all hosts."""
        import numpy as np
        of_features = [np.concatenate([ids for _, ids in step[name]]).astype(np.int64)
                       for name, _ in self.subject.features]
        self._features += list(map(len, of_features))
        ids, counts = np.unique(np.concatenate(of_features), return_counts=True)
        self.sampled_steps += 1
        np.add.at(self._ranges, ids * len(self._ranges) // self.subject.vocabulary_size, counts)
        np.add.at(self._remainders, ids % REMAINDERS, counts)
        for strategy, load in self._loads.items():
            partition = self.subject.partition(strategy, self.subject.hosts)
            hosts, _ = partition.locate(ids, np.maximum)
            np.add.at(load, hosts, counts)

    def profile(self, *, first_step: int, last_step: int, steps: int) -> TableProfile:
        """Returns the counts so far: of the run from `first_step` on, and those before."""
        begun = self.begun
        return dataclasses.replace(
            begun, first_step=min(first_step, begun.first_step) if begun.steps else first_step,
            last_step=max(last_step, begun.last_step), steps=begun.steps + steps,
            sampled_steps=self.sampled_steps, features=tuple(self._features.tolist()),
            ranges=tuple(self._ranges.tolist()), remainders=tuple(self._remainders.tolist()),
            loads={strategy: tuple(load.tolist()) for strategy, load in self._loads.items()})
