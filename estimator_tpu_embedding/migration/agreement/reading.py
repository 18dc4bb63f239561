"""Reads what `records.py` has written down."""

from __future__ import annotations

import json

import numpy as np

from ...checkpoint.files import Storage
from ...errors import CheckpointError, Problem
from ...proto import files
from .records import INPUT, SUMMARY, Facts, Key

_MAX_HEAD = 2**20


class Records:
    """The records of a side that has ended.

    Attributes:
      steps: how many steps were recorded.
      has_others: whether a second engine updated its tables, too.
      facts: what the side declares; `None` if it made no step.
      keys: of all records but those of input.
      inputs: names of the input that was seen.
    """

    def __init__(self, storage: Storage):
        """Reads the list of records.

        Raises:
          OSError: if there is none.
        """
        with storage.open(SUMMARY) as file:
            summary = json.loads(file.read())
        self.steps, self.has_others = summary['steps'], summary['has_others']
        self.facts = summary['facts'] and Facts(**summary['facts'])
        self._storage = storage
        self._numbers = {Key(*key): number for number, key in summary['keys']}
        self.keys = [key for key in self._numbers if key.kind != INPUT]
        self.inputs = sorted({key.name for key in self._numbers if key.kind == INPUT})
        self._pipelines = 1 + max((key.part for key in self._numbers if key.kind == INPUT),
                                  default=0)

    def read(self, key: Key) -> list[np.ndarray]:
        """Returns the arrays of a record.

        For `IDS` they are samples int64, ids int64 and weights float32, all `[n]`, sorted. For
        activations and gradients it is one, float32. For rows they are ids int64 `[n]`, rows
        float32 `[n, D]`, and slots in the order of the facts.
        """
        with self._storage.open(str(self._numbers[key])) as file:
            head = json.loads(file.readline(_MAX_HEAD))
            content = files.read_at_most(file, files.size_of(file))
        arrays, at = [], 0
        for dtype, shape in head:
            count = int(np.prod(shape))
            arrays.append(np.frombuffer(content, dtype, count, at).reshape(shape))
            at += arrays[-1].nbytes
        return arrays

    def read_input(self, name: str, step: int) -> np.ndarray | None:
        """Returns the input of one name for one step: float64 `[samples, n]`; `None` if unknown.

        Input pipelines have the samples in the order of their cores, one element for all cores of a
        pipeline or one for each.
        """
        assert self.facts is not None
        first = Key(1, INPUT, name)
        if first not in self._numbers:
            return None
        rows = max(1, sum(len(one) for one in self.read(first)))
        each = max(1, self.facts.batch // (self._pipelines * rows))
        keys = [Key(element, INPUT, name, part) for part in range(self._pipelines)
                for element in range((step - 1) * each + 1, step * each + 1)]
        if not all(key in self._numbers for key in keys):
            return None
        found = np.concatenate([self.read(key)[0] for key in keys])
        return found if len(found) == self.facts.batch else None


def read_side(storage: Storage, where: str) -> Records:
    """Reads the records of a side.

    Raises:
      CheckpointError: E685 if they cannot be read.
    """
    try:
        return Records(storage)
    except (OSError, ValueError) as error:
        raise CheckpointError(Problem(
            'E685', where, 'its process must end as it does by itself', 'no list of records',
            'Do not call os._exit in it.')) from error
