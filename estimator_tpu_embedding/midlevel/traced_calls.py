"""What is known, while functions are traced, of the calls that belong together in them.

A TPU runs the Python of a step once, here every replica does. A program that names its calls by a
counter names them differently in each replica. Each replica makes the same calls in the same order,
so its k-th new name stands for the k-th of replica 0 (`CallNames`).

The graph of a function also shows which calls have their counterpart in it (`OpenCalls`).
"""

from __future__ import annotations

import collections
import dataclasses
import weakref
from collections.abc import Sequence

import tensorflow as tf

from ..native.eager_variable import EagerTableVariable, read, small_variable
from .table_variables import on_host


class CallNames:
    """The names that replicas have used in each function, and what they stand for.

    >>> names = CallNames()
    >>> names.common('1', 0), names.common('2', 0)
    ('1', '2')
    >>> names.common('3', 1), names.common('4', 1), names.common('3', 1)
    ('1', '2', '1')
    """

    def __init__(self) -> None:
        # By function and replica: what each name that may be counted stands for.
        self._counted: weakref.WeakKeyDictionary[
            tf.Graph, collections.defaultdict[int, dict[str, str]]] = weakref.WeakKeyDictionary()
        # By function: names that were used outside of replicas, which stand for themselves.
        self._of_all: weakref.WeakKeyDictionary[tf.Graph, set[str]] = weakref.WeakKeyDictionary()

    def common(self, name: str | None, replica: int, *, outside: bool = False) -> str | None:
        """Returns the name by which replica 0 makes this call; `None` is the same in all.

        Replica 0 makes its k-th call first. Calls `outside` of replicas come once, perhaps not in
        the same order for each replica, so a new name there is the same in all.
        """
        if name is None:
            return None
        function = traced_function()
        counted = self._counted.setdefault(function, collections.defaultdict(dict))
        of_all = self._of_all.setdefault(function, set())
        own, of_first = counted[replica], list(counted[0])
        if name not in own and (outside or name in of_all):
            of_all.add(name)
            return name
        if name not in own:
            own[name] = of_first[len(own)] if replica and len(own) < len(of_first) else name
        return own[name]


def traced_function() -> tf.Graph:
    """Returns the graph of the outermost function that is being traced."""
    graph = tf.compat.v1.get_default_graph()
    while getattr(getattr(graph, 'outer_graph', None), 'building_function', False):
        graph = graph.outer_graph
    return graph


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A call in a graph.

    Attributes:
      followed: int32, 1 if the counterpart follows, otherwise 0; final once the graph is traced.
      use: the use of the batch, `None` if it is known only when the graph is executed.
    """

    followed: EagerTableVariable
    use: int | None


class OpenCalls:
    """The calls of each graph and replica whose counterpart has not followed yet, oldest first.

    The counterpart of `enqueue` is `dequeue`. The counterpart of `dequeue` is `apply_gradients`.
    """

    def __init__(self) -> None:
        self._open: weakref.WeakKeyDictionary[tf.Graph, dict[int, list[_Call]]] = (
            weakref.WeakKeyDictionary())
        self._all: list[_Call] = []  # Graphs do not keep variables.
        self._interrupted: set[int] = set()

    def add_counts(self, replicas: Sequence[int], numbers: tf.Tensor) -> tf.Tensor:
        """Adds to the number of each replica how many of its open calls will be followed."""
        calls = [self._of_graph()[replica] for replica in replicas]
        if not any(calls):
            return numbers
        return numbers + tf.stack([tf.add_n([tf.constant(0), *(
            read(call.followed) for call in own)]) for own in calls])

    def interrupt(self, replicas: Sequence[int]) -> None:
        """Takes the open calls of outer graphs for not followed.

        It is called where a loop, a condition or a function within those graphs makes a call: its
        batches come between, perhaps more than once.
        """
        graph = getattr(tf.compat.v1.get_default_graph(), 'outer_graph', None)
        while graph is not None:
            for replica in replicas:
                self._interrupted.update(map(id, self._open.get(graph, {}).get(replica, ())))
            graph = getattr(graph, 'outer_graph', None)

    def add(self, replicas: Sequence[int], use: int | None) -> tf.Tensor:
        """Opens a call of replicas; returns `_Call.followed`."""
        with on_host():
            call = _Call(small_variable(0, tf.int32), use)
        for replica in replicas:
            self._of_graph()[replica].append(call)
        self._all.append(call)
        return read(call.followed)

    def remove(self, replica: int, *, newest: bool = False) -> tuple[bool, int | None]:
        """Notes that the counterpart of an open call follows.

        Returns:
          Whether this graph has such a call, and the use of its batch.
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
