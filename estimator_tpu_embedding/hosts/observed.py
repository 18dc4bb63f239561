"""Lets an observer see what the engine of a training does: ids, activations, gradients and rows.

`etpe migrate check` compares two jobs by it. Without an observer every job has the engine itself,
and nothing here runs.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from . import routes
from .backend import Activations, CoreBatch, Engine
from .placement import on
from .wrapper import ExecutorWrapper

Arrays = Sequence[np.ndarray]

_observers: list[Observer] = []


class Observer(Protocol):
    """Is told of the steps of a process. Arrays are lent for the time of a call.

    Packed ids identify a batch of a core: `packed` and `looked_up` come before `begin` for it.
    """

    def declare(self, plan: Plan) -> int:
        """Takes note of an engine; returns its number, the first argument of all other calls."""

    def packed(self, engine: int, packed: Arrays, samples: Arrays, ids: Arrays, weights: Arrays
               ) -> None:
        """Takes the ids of a batch of a core; the last three have a vector per feature."""

    def looked_up(self, engine: int, packed: Arrays, activations: Arrays) -> None:
        """Takes the activations of a batch of a core, in the order of features."""

    def begin(self, engine: int, packed: Sequence[Arrays], gradients: Sequence[Arrays]) -> None:
        """Begins the update of a step: packed ids, and gradients in the order of features, by core.
        """

    def ids_before(self, engine: int, table: int) -> np.ndarray:
        """Returns some ids, int64 `[n]`, whose rows are wanted before the update; `[0]`: none."""

    def ids_after(self, engine: int, table: int) -> np.ndarray:
        """Returns some ids, int64 `[n]`, whose rows are wanted after the update; `[0]`: none."""

    def rows(self, engine: int, table: int, values: Arrays) -> None:
        """Takes the rows of the ids that were returned last, then their slots in order."""


@contextlib.contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Lets an observer see the engines that are made in this process while the body runs."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def observed(engine: Engine) -> Engine:
    """Returns an engine; if there is an observer and the engine trains, one that tells it all."""
    if not _observers or engine.plan.mode != 'training':
        return engine
    return ObservedEngine(engine, _observers[-1])


class ObservedEngine(ExecutorWrapper):
    """Passes all on to another engine, and tells an observer. See `backend.Engine` for the verbs.

    Attributes:
      plan, kernels, kinds, tables: as in the wrapped engine.
    """

    def __init__(self, engine: Engine, observer: Observer):
        """Wraps `engine`, whose plan is one for training."""
        super().__init__(engine)
        self._engine = engine
        self._observer = observer
        self._number = observer.declare(engine.plan)
        self._names = [feature.name for feature in engine.plan.features]

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        packed = list(self._engine.pack(batch))
        own = [batch[name] for name in self._names]
        weights = [tf.ones_like(one.ids, tf.float32) if one.weights is None else one.weights
                   for one in own]
        told = self._tell(self._observer.packed, packed, [one.samples for one in own],
                          [one.ids for one in own], weights)
        with tf.control_dependencies([told]):
            return [tf.identity(one) for one in packed]

    def unpack(self, packed: Sequence[tf.Tensor]) -> dict[str, Any]:
        return self._engine.unpack(packed)

    def lookup(self, packed: Sequence[tf.Tensor]) -> Activations:
        found = self._engine.lookup(packed)
        told = self._tell(self._observer.looked_up, packed, [found[name] for name in self._names])
        with tf.control_dependencies([told]):
            return {name: tf.identity(value) for name, value in found.items()}

    def update(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[Activations],
               rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
        cores = len(packed)

        def begin(number: int, *groups: Arrays) -> None:
            self._observer.begin(number, groups[:cores], groups[cores:])

        told = self._tell(begin, *packed, *[
            [gradient[name] for name in self._names] for gradient in gradients])
        told = self._tell_rows(self._observer.ids_before, told)
        with tf.control_dependencies([told]):
            refused = self._engine.update(packed, gradients, rates, step)
        with tf.control_dependencies([refused]):
            told = self._tell_rows(self._observer.ids_after, tf.constant(0, tf.int64))
        with tf.control_dependencies([told]):
            return tf.identity(refused)

    def _tell(self, call: Callable[..., None], *groups: Sequence[tf.Tensor]) -> tf.Tensor:
        """Calls the observer with some groups of arrays when their tensors are there."""
        ends = np.cumsum([len(group) for group in groups])

        def told(*arrays: np.ndarray) -> np.ndarray:
            call(self._number, *[arrays[end - len(group):end]
                                 for end, group in zip(ends, groups)])
            return np.zeros([], np.int64)

        with on(self.placement.client):  # Where this function is.
            return tf.numpy_function(
                told, [tensor for group in groups for tensor in group], tf.int64)

    def _tell_rows(self, wanted: Callable[[int, int], np.ndarray], after: tf.Tensor) -> tf.Tensor:
        """Tells the rows and slots of the ids that the observer wants, some at a time.

        Args:
          wanted: returns the next ids.
          after: comes first.
        """
        for number, table in enumerate(self.plan.tables):
            hosted, partition = self.tables[table.name], self.plan.partition(table.name)

            def some(last: tf.Tensor, number: int = number, hosted: Any = hosted,
                     partition: Any = partition) -> tf.Tensor:
                with tf.control_dependencies([last]), on(self.placement.client):
                    ids = tf.ensure_shape(tf.numpy_function(functools.partial(
                        wanted, self._number, number), [], tf.int64), [None])
                told = self._tell(
                    functools.partial(_rows, self._observer, number),
                    [routes.rows_at(partition, parts, ids)
                     for parts in (hosted.rows, *hosted.slots.values())])
                with tf.control_dependencies([told]):
                    return tf.size(ids, out_type=tf.int64)

            with tf.control_dependencies([after]):
                first = tf.constant(1, tf.int64) + 0 * after
            after = tf.while_loop(lambda left: left > 0, some, [first], parallel_iterations=1)
        return after


def _rows(observer: Observer, table: int, engine: int, values: Arrays) -> None:
    if values[0].size:
        observer.rows(engine, table, values)
