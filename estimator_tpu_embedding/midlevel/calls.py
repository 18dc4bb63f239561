"""Where the calls of a look-up may be made, and which of them are linked by their names.

A TPU runs the Python of a step once, here every replica does. A program that names its calls by a
counter names them differently in each replica. Each replica makes the same calls in the same order,
so its k-th new name stands for the k-th of replica 0.
"""

from __future__ import annotations

import collections
import dataclasses
import weakref

import tensorflow as tf

from .. import _process, _tf
from ..errors import CallError, NotInFunctionError, Problem


def require_function(method: str) -> None:
    """Requires that a function is being traced, which is to be executed in this process.

    Raises:
      NotInFunctionError: in eager mode.
      CallError: a RuntimeError, in a function that XLA compiles.
    """
    _process.require_threads(method)
    if not tf.inside_function():
        raise NotInFunctionError(Problem(
            'E551', method, 'it must be called while a tf.function is traced', 'an eager call',
            'Put the step into a tf.function, and leave tf.config.run_functions_eagerly off.'))
    if _tf.is_compiled_by_xla(tf.compat.v1.get_default_graph()):
        raise CallError(Problem(
            'E542', method, 'XLA cannot compile the queues and tables of the host',
            'a function with jit_compile=True', 'Leave jit_compile out of tf.function, and out of '
            'compile of a Keras model; a TPU compiles what surrounds the look-ups by itself.'))


def unbuilt(method: str) -> CallError:
    """Returns the error of a call before the shapes of features are known."""
    return CallError(Problem(
        'E553', method, f'{method} called on unbuilt TPUEmbedding object. Please either call '
        'enqueue first or manually call the build method', remedy='Where build() is called, it '
        'needs the shapes of the inputs too.'))


def is_rehearsal() -> bool:
    """Whether Keras calls a layer only to learn the shapes of its outputs.

    It does so for functional models, with placeholders of the shapes of its `Input`s, in a graph
    of this name that is never executed.
    """
    name = getattr(tf.compat.v1.get_default_graph(), 'name', None)
    return isinstance(name, str) and name.endswith('_scratch_graph')


def is_outside_of_replicas() -> bool:
    """Whether this code runs once for all replicas, and not within `strategy.run`."""
    return not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context()


@dataclasses.dataclass(frozen=True, slots=True)
class _OfFunction:
    """The names in one function.

    Attributes:
      by_replica: by replica, what each of its names that may be counted stands for.
      of_all: the names that were used outside of replicas; these stand for themselves.
    """

    by_replica: collections.defaultdict[int, dict[str, str]] = dataclasses.field(
        default_factory=lambda: collections.defaultdict(dict))
    of_all: set[str] = dataclasses.field(default_factory=set)


class CallNames:
    """The names that replicas have used in each function, and what they stand for.

    >>> names = CallNames()
    >>> names.common('1', 0), names.common('2', 0)
    ('1', '2')
    >>> names.common('3', 1), names.common('4', 1), names.common('3', 1)
    ('1', '2', '1')
    """

    def __init__(self) -> None:
        self._by_graph: weakref.WeakKeyDictionary[tf.Graph, _OfFunction] = (
            weakref.WeakKeyDictionary())

    def common(self, name: str | None, replica: int, *, outside: bool = False) -> str | None:
        """Returns the name by which replica 0 makes this call.

        Args:
          name: the name in this replica, or `None`, which is the same in all.
          replica: the number of the replica. Replica 0 makes its k-th call first.
          outside: whether the call is made outside of replicas. Such calls come once, perhaps not
            in the same order for each replica, so a new name there is the same in all.
        """
        if name is None:
            return None
        known = self._by_graph.setdefault(traced_function(), _OfFunction())
        own, of_first = known.by_replica[replica], list(known.by_replica[0])
        if name not in own and (outside or name in known.of_all):
            known.of_all.add(name)
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
