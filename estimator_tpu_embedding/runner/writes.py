"""Lets variables change once per step, by tower 0, whatever the number of towers.

On the hardware each replica changes a copy of its own, all in the same way. Towers share their
variables, so only the changes by tower 0 count. Operations that wait for the n-th change of a
variable in another tower wait for the n-th change in tower 0 instead.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable, Sequence

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import ConfigError, Problem
from ..hosts.operations import functions_of, functions_of_node

_TYPES = ('Assign', 'ResourceApply', 'ResourceSparseApply', 'ResourceScatter',
          'ResourceStridedSliceAssign')


def leave_to_first(towers: Sequence[Sequence[tf.Operation]],
                   initializers: Collection[tf.Operation]) -> set[tf.Operation]:
    """Lets the operations of the first tower alone change variables.

    Args:
      towers: the operations of each tower, in order. No session has run the graph since.
      initializers: of the first tower's variables; they do not count as changes.

    Returns:
      The changes by the other towers. Nothing waits for them any more.

    Raises:
      ConfigError: for a change within control flow, which cannot be found from outside.
    """
    first = _by_variable(each for each in towers[0] if each not in initializers)
    silenced: set[tf.Operation] = set()
    seen: set[str] = set()
    for operations in towers[1:]:
        _refuse_within_functions(operations, seen)
        for variable, writes in _by_variable(operations).items():
            for number, write in enumerate(writes):
                if _tf.is_in_control_flow(write):
                    raise _within(write.name)
                _tf.wait_instead(write, first.get(variable, [])[number:number + 1])
                silenced.add(write)
    return silenced


def _by_variable(operations: Iterable[tf.Operation]) -> dict[str, list[tf.Operation]]:
    """Returns the operations that change a variable, by the name of the variable, in order."""
    found = collections.defaultdict(list)
    for operation in operations:
        if operation.type.startswith(_TYPES) and operation.inputs and (
                operation.inputs[0].dtype == tf.resource):
            found[operation.inputs[0].op.name].append(operation)
    return found


def _refuse_within_functions(operations: Iterable[tf.Operation], seen: set[str]) -> None:
    """Raises ConfigError if an operation calls a function that changes a variable.

    Args:
      operations: of a tower.
      seen: the names of functions that change none; it gets those that are called here.
    """
    for operation in operations:
        if all(each.dtype != tf.resource for each in operation.inputs):
            continue
        pending = functions_of(operation)
        while pending:
            name = pending.pop()
            definition = None if name in seen else _tf.function_of(operation.graph, name)
            seen.add(name)
            for node in definition.node_def if definition is not None else ():
                if node.op.startswith(_TYPES):
                    raise _within(operation.name)
                pending += functions_of_node(node)


def _within(name: str) -> ConfigError:
    return ConfigError(Problem(
        'E459', 'model_fn', 'on several cores variables must be changed outside of tf.cond, '
        'tf.while_loop and tf.function: each core would change them again', f'"{name}"',
        'Change them always, by a value that is 0 where nothing is to change.'))
