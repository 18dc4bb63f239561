"""The variables of towers: tower 0 makes and changes them, and the others share them.

On the hardware each replica changes a copy of its own, all in the same way. Towers share their
variables, so only the changes by tower 0 count. Operations that wait for the n-th change of a
variable in another tower wait for the n-th change in tower 0 instead.
"""

from __future__ import annotations

import collections
import sys
import traceback
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import ConfigError, Problem
from ..hosts.operation_devices import nodes_called_by

_CONSTANT = ('Const', 'VarHandleOp')


class _Made(NamedTuple):
    """A variable of tower 0: its number among them, its collections, and the lines that made it."""

    variable: tf.Variable
    number: int
    keys: tuple[str, ...]
    lines: Hashable


class SharedVariables:
    """Hands the variables of tower 0 to the other towers.

    Another tower gets a variable when it makes one alike, or when it uses one that the model
    kept from tower 0, such as that of a shared column or of a layer that outlives `model_fn`. In
    both cases the variable enters the collections of the tower, in the order of tower 0.
    """

    def __init__(self, count: int):
        self._made: collections.defaultdict[Any, list[_Made]] = collections.defaultdict(list)
        self._of_handle: dict[tf.Operation, _Made] = {}
        self._numbers: dict[int, int] = {}
        self._held: list[set[int]] = [set() for _ in range(count)]

    def initializers(self) -> set[tf.Operation]:
        """Returns the operations that give the variables of tower 0 their first values."""
        return {each.variable.initializer for each in self._of_handle.values()}

    def creator(self, core: int) -> Callable[..., tf.Variable]:
        """Returns the variable creator of one tower."""

        def create(next_creator: Callable[..., tf.Variable], **kwargs: Any) -> tf.Variable:
            kwargs['use_resource'] = True  # As on the hardware, whatever the default is.
            key = (kwargs.get('name'), str(kwargs.get('shape')), str(kwargs.get('dtype')))
            lines = _calling_lines()
            if core:
                return self._hand_out(core, key, lines)
            variable = next_creator(**kwargs)
            keys = kwargs.get('collections')
            of_variable = {tf.GraphKeys.GLOBAL_VARIABLES} if keys is None else set(keys)
            if variable.trainable:
                of_variable.add(tf.GraphKeys.TRAINABLE_VARIABLES)
            made = _Made(variable, len(self._numbers), tuple(sorted(of_variable)), lines)
            self._made[key].append(made)
            self._of_handle[variable.handle.op] = made
            self._numbers[id(variable)] = made.number
            return variable

        return create

    def take_kept(self, core: int, inputs: Iterable[tf.Tensor], losses: Iterable[tf.Tensor]
                  ) -> None:
        """Gives tower `core` the variables that its next operation uses, but that it did not make.

        The tower also gets those of tower 0's regularization `losses` that belong to them.
        """
        for tensor in inputs:
            made = self._of_handle.get(tensor.op) if tensor.dtype == tf.resource else None
            if made is not None and made.number not in self._held[core]:
                self._hold(core, made)
                own = tf.get_collection_ref(tf.GraphKeys.REGULARIZATION_LOSSES)
                own += [loss for loss in losses if tensor.op in _handles(loss)
                        and not any(loss is each for each in own)]

    def _hand_out(self, core: int, key: Any, lines: Hashable) -> tf.Variable:
        free = [each for each in self._made.get(key, []) if each.number not in self._held[core]]
        if not free:
            name, shape, dtype = key
            raise ConfigError(Problem(
                'E452', 'model_fn', 'it must create the same variables on every core',
                f'variable "{name}" of shape {shape} and dtype {dtype} on core {core}, which core '
                '0 did not create', 'Do not make variables or their names depend on the core.'))
        # Another one alike may be kept by the model, which makes it for core 0 alone.
        found = next((each for each in free if each.lines == lines), free[0])
        self._hold(core, found)
        return found.variable

    def _hold(self, core: int, made: _Made) -> None:
        self._held[core].add(made.number)
        for key in made.keys:
            items = tf.get_collection_ref(key)
            position = len(items)
            while position and self._numbers.get(id(items[position - 1]), -1) > made.number:
                position -= 1
            items.insert(position, made.variable)


def _calling_lines() -> Hashable:
    """Returns the lines of code that call this function's caller, which creates a variable."""
    return tuple((frame.f_code, line) for frame, line in traceback.walk_stack(sys._getframe(2)))


def _handles(loss: tf.Tensor) -> set[tf.Operation]:
    """Returns the handles of the variables of a loss; none if it depends on something else."""
    seen, pending = {loss.op}, [loss.op]
    while pending:
        operation = pending.pop()
        if not operation.inputs and operation.type not in _CONSTANT:
            return set()
        new = {tensor.op for tensor in operation.inputs} - seen
        seen |= new
        pending += new
    return {operation for operation in seen if operation.type == 'VarHandleOp'}


_TYPES = ('Assign', 'ResourceApply', 'ResourceSparseApply', 'ResourceScatter',
          'ResourceStridedSliceAssign')


def leave_to_first(towers: Sequence[Sequence[tf.Operation]],
                   initializers: Collection[tf.Operation]) -> set[tf.Operation]:
    """Lets the operations of the first tower alone change variables; no session has run them yet.

    The `initializers` of the first tower's variables do not count as changes. Nothing waits any
    more for the changes by the other towers, which are returned.

    Raises:
      ConfigError: for a change within control flow, which cannot be found from outside.
    """
    first = _by_variable(each for each in towers[0] if each not in initializers)
    silenced: set[tf.Operation] = set()
    seen: set[str] = set()
    for operations in towers[1:]:
        for operation in operations:
            if function_that_changes(operation, seen):
                raise _within(operation.name)
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
        if changes_a_variable(operation):
            found[operation.inputs[0].op.name].append(operation)
    return found


def changes_a_variable(operation: tf.Operation) -> bool:
    """Whether an operation itself changes a variable."""
    return operation.type.startswith(_TYPES) and bool(operation.inputs) and (
        operation.inputs[0].dtype == tf.resource)


def function_that_changes(operation: tf.Operation, seen: set[str]) -> bool:
    """Whether a function that `operation` calls changes a variable; `seen` has harmless ones."""
    return any(each.dtype == tf.resource for each in operation.inputs) and any(
        node.op.startswith(_TYPES) for node in nodes_called_by(operation, seen))


def _within(name: str) -> ConfigError:
    return ConfigError(Problem(
        'E459', 'model_fn', 'on several cores variables must be changed outside of tf.cond, '
        'tf.while_loop and tf.function: each core would change them again', f'"{name}"',
        'Change them always, by a value that is 0 where nothing is to change.'))
