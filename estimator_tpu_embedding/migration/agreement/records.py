"""Writes down what a training does, step by step: the evidence of `check`.

Each record is a file: a line of JSON, then arrays. All records of a side are in one directory, and
one more file lists them when the side has ended.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...checkpoint.files import Storage
from ...core.plan import Plan

Arrays = Sequence[np.ndarray]
IDS, INPUT, BEFORE, ACTIVATION, GRADIENT, AFTER, END = (
    'ids', 'input', 'rows before', 'activation', 'gradient', 'rows after', 'rows at the end')
KINDS = (IDS, INPUT, BEFORE, ACTIVATION, GRADIENT, AFTER, END)
"""What is recorded, in the order in which the values of a step depend on each other."""
CHUNK_BYTES = 2**22
"""The most bytes of rows, or of a slot, that are in one record, if a row is not larger."""
SUMMARY = 'summary'
"""The file that lists the records."""


class Key(NamedTuple):
    """Says what a record holds.

    Attributes:
      step: counted from 1 for the first step of the check; for `INPUT` the element of the dataset.
      kind: of `KINDS`.
      name: of the feature or table; for `INPUT` the name of a value, see `inputs.py`.
      part: counts the records of one table, kind and step; for `INPUT` it is the input pipeline.
    """

    step: int
    kind: str
    name: str
    part: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What a side declares.

    Attributes:
      batch: samples of all cores per step.
      features: table of each feature, and the shape of its activation over all cores, by name.
      tables: facts of each table by name: `rows`, `width`, `combiner`, `slots` by suffix, and
        `optimizer`, a dict of its options.
    """

    batch: int
    features: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, Mapping[str, Any]]


@dataclasses.dataclass(slots=True)
class _Engine:
    """An engine: its plan, and what was looked up and has not been updated."""

    plan: Plan
    batches: dict[tuple[bytes, ...], list[list[Arrays]]] = dataclasses.field(default_factory=dict)
    found: dict[tuple[bytes, ...], list[list[np.ndarray]]] = dataclasses.field(
        default_factory=dict)
    updates: int = 0


class Recorder:
    """Writes down the first steps of a training. See `hosts.observed.Observer` for its methods.

    Attributes:
      steps: how many steps were recorded.
      has_others: whether a second engine updated its tables, too, which is not recorded.
    """

    def __init__(self, storage: Storage, wanted: int):
        """Records.

        Args:
          storage: of an empty directory.
          wanted: how many steps to record, >= 1.
        """
        self.steps, self.has_others = 0, False
        self._storage, self._wanted = storage, wanted
        self._engines: list[_Engine] = []
        self._chosen: int | None = None
        self._keys: dict[int, Key] = {}
        self._numbers = itertools.count()  # Input is told by threads of its own.
        self._touched: list[np.ndarray] = []
        self._turns: dict[tuple[str, int], int] = {}
        self._asked: tuple[str, np.ndarray] = (BEFORE, np.zeros([0], np.int64))

    @property
    def is_done(self) -> bool:
        """Whether all wanted steps were recorded."""
        return self.steps >= self._wanted

    def declare(self, plan: Plan) -> int:
        """Takes note of an engine."""
        self._engines.append(_Engine(plan))
        return len(self._engines) - 1

    def input(self, pipeline: int, element: int, values: Mapping[str, np.ndarray]) -> None:
        """Records input beside the ids; see `inputs.Tell`."""
        for name, value in values.items():
            if not self.is_done and value.ndim:
                self._write(Key(element + 1, INPUT, name, pipeline),
                            [value.reshape(len(value), -1).astype(np.float64)])

    def packed(self, engine: int, packed: Arrays, samples: Arrays, ids: Arrays, weights: Arrays
               ) -> None:
        """Keeps the ids of a batch until its update."""
        if not self.is_done:
            kept: list[Arrays] = [
                [one.copy() for one in group] for group in (samples, ids, weights)]
            self._engines[engine].batches.setdefault(_key(packed), []).append(kept)

    def looked_up(self, engine: int, packed: Arrays, activations: Arrays) -> None:
        """Keeps the activations of a batch until its update."""
        if not self.is_done:
            self._engines[engine].found.setdefault(_key(packed), []).append(
                [one.copy() for one in activations])

    def begin(self, engine: int, packed: Sequence[Arrays], gradients: Sequence[Arrays]) -> None:
        """Records the batch of a step, its activations and their gradients."""
        self._turns = {}
        if self._chosen is None:
            self._chosen = engine
        self.has_others |= engine != self._chosen
        self._touched = []
        if self.is_done or engine != self._chosen:
            return
        self.steps += 1
        own = self._engines[engine]
        batches = [own.batches[_key(one)].pop(0) for one in packed]
        found = [own.found[_key(one)].pop(0) for one in packed]
        touched: dict[str, list[np.ndarray]] = {table.name: [] for table in own.plan.tables}
        for number, feature in enumerate(own.plan.features):
            of_cores = [[group[number] for group in batch] for batch in batches]
            ids = _sorted(of_cores, own.plan.num_samples(feature))
            touched[feature.table].append(ids[1])
            self._write(Key(self.steps, IDS, feature.name), ids)
            for kind, values in ((ACTIVATION, found), (GRADIENT, gradients)):
                self._write(Key(self.steps, kind, feature.name),
                            [np.concatenate([of_core[number] for of_core in values])])
        self._touched = [np.unique(np.concatenate(ids)) for ids in touched.values()]

    def ids_before(self, engine: int, table: int) -> np.ndarray:
        """Returns the next ids that the step looked up."""
        return self._next(BEFORE, engine, table)

    def ids_after(self, engine: int, table: int) -> np.ndarray:
        """Returns the next ids that the step looked up; after the last step the next of all."""
        ids = self._next(AFTER, engine, table)
        return ids if ids.size else self._next(END, engine, table)

    def rows(self, engine: int, table: int, values: Arrays) -> None:
        """Records the rows and slots of the ids that were returned last."""
        kind, ids = self._asked
        spec = self._engines[engine].plan.tables[table]
        self._write(Key(self.steps, kind, spec.name, self._turns[kind, table] - 1),
                    [ids, *values])

    def finish(self) -> None:
        """Writes down what there is; without it, the directory holds nothing that is read."""
        facts = _facts(self._engines[self._chosen].plan) if self._chosen is not None else None
        self._storage.create(SUMMARY, json.dumps({
            'steps': self.steps, 'has_others': self.has_others, 'keys': sorted(self._keys.items()),
            'facts': facts and dataclasses.asdict(facts)}).encode())

    def _next(self, kind: str, engine: int, table: int) -> np.ndarray:
        spec = self._engines[engine].plan.tables[table]
        count = max(1, CHUNK_BYTES // (4 * spec.dimension))
        turn = self._turns.get((kind, table), 0)
        self._turns[kind, table] = turn + 1
        wanted = self._touched[table] if self._touched else np.zeros([0], np.int64)
        if kind == END:
            last = spec.vocabulary_size if self._touched and self.is_done else 0
            ids = np.arange(min(turn * count, last), min((turn + 1) * count, last), dtype=np.int64)
        else:
            ids = wanted[turn * count:(turn + 1) * count]
        self._asked = kind, ids
        return ids

    def _write(self, key: Key, arrays: Arrays) -> None:
        head = json.dumps([[one.dtype.str, one.shape] for one in arrays]).encode()
        number = next(self._numbers)
        self._storage.create(str(number), b'\n'.join(
            [head, b''.join(one.tobytes() for one in arrays)]))
        self._keys[number] = key


def _key(arrays: Arrays) -> tuple[bytes, ...]:
    return tuple(one.tobytes() for one in arrays)


def _sorted(of_cores: Sequence[Arrays], num_samples: int) -> list[np.ndarray]:
    """Returns samples, ids and weights of all cores, sorted; samples are counted over the cores."""
    samples = np.concatenate([one.astype(np.int64) + core * num_samples
                              for core, (one, _, _) in enumerate(of_cores)])
    ids, weights = [np.concatenate(group) for group in list(zip(*of_cores))[1:]]
    order = np.lexsort([weights, ids, samples])
    return [samples[order], ids[order], weights[order]]


def _facts(plan: Plan) -> Facts:
    cores = plan.topology.num_cores
    features = {}
    for feature in plan.features:
        batch, *rest = plan.output_shape(feature)
        features[feature.name] = {'table': feature.table, 'shape': [batch * cores, *rest]}
    tables = {}
    for table in plan.tables:
        assert table.optimizer is not None, 'only trainings are recorded'
        options = {field.name: str(getattr(table.optimizer, field.name))
                   for field in dataclasses.fields(table.optimizer)}
        rate = plan.rate(table.name)
        options['learning_rate'] = str(getattr(rate, 'value', 'a function'))
        tables[table.name] = {
            'rows': table.vocabulary_size, 'width': table.dimension, 'combiner': table.combiner,
            'slots': [slot.suffix for slot in plan.slots(table.name)],
            'optimizer': {'kind': table.optimizer.field, **options}}
    return Facts(plan.global_batch_size, features, tables)
