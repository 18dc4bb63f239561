"""Counts the ids of sampled steps into a `table_profile.TableProfile`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from .partition import REMAINDERS
from .table_profile import TableProfile

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
    (1, 2)
    """

    def __init__(self, begun: TableProfile):
        """Begins with the counts of `begun`."""
        self.begun, self.subject = begun, begun.subject
        self.sampled_steps = begun.sampled_steps
        self._features = np.array(begun.features)
        self._ranges, self._remainders = np.array(begun.ranges), np.array(begun.remainders)
        self._loads = {strategy: np.array(load) for strategy, load in begun.loads.items()}

    def add(self, step: Mapping[str, Sequence[CoreIds]]) -> None:
        """Counts one step.

        Args:
          step: by feature of the subject, the ids of each core of all hosts.
        """
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
            sampled_steps=self.sampled_steps, features=tuple(self._features.tolist()),
            ranges=tuple(self._ranges.tolist()), remainders=tuple(self._remainders.tolist()),
            loads={strategy: tuple(load.tolist()) for strategy, load in self._loads.items()})
