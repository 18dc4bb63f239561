"""Tells which calls of a graph are followed by their counterpart, once the graph is traced."""

from __future__ import annotations

import collections
import dataclasses
import weakref
from collections.abc import Sequence

import tensorflow as tf

from ..native.owned import OwnedVariable, read
from .tables import on_host


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A call in a graph.

    Attributes:
      followed: int32, 1 if the counterpart follows, otherwise 0; final once the graph is traced.
      use: the use of the batch, `None` if it is known only when the graph is executed.
    """

    followed: OwnedVariable
    use: int | None


class Followed:
    """Tells which calls are followed by their counterpart in the same graph, by replica.

    The counterpart of `enqueue` is `dequeue`. The counterpart of `dequeue` is `apply_gradients`.
    """

    def __init__(self) -> None:
        self._open: weakref.WeakKeyDictionary[tf.Graph, dict[int, list[_Call]]] = (
            weakref.WeakKeyDictionary())
        self._all: list[_Call] = []  # Graphs do not keep variables.
        self._interrupted: set[int] = set()

    def add_counts(self, replicas: Sequence[int], numbers: tf.Tensor) -> tf.Tensor:
        """Adds to the number of each replica how many calls so far are followed in the graph."""
        calls = [self._of_graph()[replica] for replica in replicas]
        if not any(calls):
            return numbers
        return numbers + tf.stack([tf.add_n([tf.constant(0), *(
            read(call.followed) for call in own)]) for own in calls])

    def interrupt(self, replicas: Sequence[int]) -> None:
        """Treats calls outside as not followed, if a loop, a condition or a function calls too."""
        graph = getattr(tf.compat.v1.get_default_graph(), 'outer_graph', None)
        while graph is not None:
            for replica in replicas:
                self._interrupted.update(map(id, self._open.get(graph, {}).get(replica, ())))
            graph = getattr(graph, 'outer_graph', None)

    def add(self, replicas: Sequence[int], use: int | None) -> tf.Tensor:
        """Notes a call; returns `_Call.followed`."""
        call = _Call(state(0), use)
        for replica in replicas:
            self._of_graph()[replica].append(call)
        self._all.append(call)
        return read(call.followed)

    def remove(self, replica: int, *, newest: bool = False) -> tuple[bool, int | None]:
        """Notes that the counterpart of an open call was made.

        Returns:
          Whether there is such an open call, and its use.
        """
        calls = self._of_graph()[replica]
        call = calls.pop(-1 if newest else 0) if calls else None
        if call is None or id(call) in self._interrupted:
            return False, None
        with on_host():
            call.followed.assign(1)
        return True, call.use

    def is_open(self, replica: int, use: int) -> bool:
        """Returns whether a call of this use is open."""
        return any(call.use == use for call in self._of_graph()[replica])

    def _of_graph(self) -> dict[int, list[_Call]]:
        return self._open.setdefault(tf.compat.v1.get_default_graph(),
                                     collections.defaultdict(list))


def state(value: int | list[int]) -> OwnedVariable:
    """Creates a variable that outlives graphs and that no strategy replicates."""
    with on_host():
        return OwnedVariable(initial_value=value, trainable=False, dtype=tf.int32)
