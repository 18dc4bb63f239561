"""Remembers in which functions the variables of an engine are views of its memory, while traced.

To attach variables takes several operations per variable, and a step has a lookup per replica and
an update. Between them, most functions write no table. Whether one does is seen from the operations
that take the handles of variables: calls, loops and conditions that write take them too. Python
functions in a graph may write any variable. Nobody sees what a dataset or a call within a call
writes by Python.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow.compat.v1 as tf

_HARMLESS = ('ReadVariableOp', 'DisableCopyOnRead', 'VariableShape', 'EteLookup', 'EteUpdate')
"""The operations that read tables, or write the memory of the engine."""

_PYTHON = ('EagerPyFunc', 'PyFunc')
"""The operations that call Python functions, which take no handles."""


class _Place(NamedTuple):
    attached: str
    takers: int


class AttachedIn:
    """The last place of each function at which all variables of an engine were attached."""

    def __init__(self, handles: Sequence[tf.Tensor]):
        """Remembers nothing yet.

        Args:
          handles: of all variables, eager tensors.
        """
        self._handles = handles
        # By name, because a tensor would keep its graph.
        self._places: weakref.WeakKeyDictionary[tf.Graph, _Place] = weakref.WeakKeyDictionary()

    def note(self, attached: tf.Tensor) -> None:
        """Notes that variables are attached here in the function that is being traced.

        Args:
          attached: the engine's handle, which fails to evaluate unless they are.
        """
        graph = tf.get_default_graph()
        takers = self._takers(graph)
        # Nobody sees who takes another name of a handle.
        if not any(output.dtype == tf.resource for taker in takers for output in taker.outputs):
            self._places[graph] = _Place(attached.name, len(takers))

    def find(self) -> tf.Tensor | None:
        """Returns what was noted last in this function, if nothing since can have written."""
        graph = tf.get_default_graph()
        place = self._places.get(graph)
        if place is None or len(self._takers(graph)) > place.takers:
            return None
        return graph.get_tensor_by_name(place.attached)

    def _takers(self, graph: tf.Graph) -> list[tf.Operation]:
        """Returns the operations of a function that may write a variable."""
        return [*(operation for handle in self._handles
                  for operation in graph.capture(handle).consumers()
                  if operation.type not in _HARMLESS),
                *(operation for operation in graph.get_operations()
                  if operation.type in _PYTHON)]
