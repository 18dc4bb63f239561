"""Copies the operations of tower 0 for the other cores, in place of further calls of model_fn.

TensorFlow's importer makes an operation many times faster than a model in Python does. What depends
on the batch of a core is copied, and so is what gives another value each time, such as random
numbers. Everything else is the same for all cores, and they share that of tower 0.

Towers are copied only from where the loss has been differentiated, and only if TensorFlow can copy
all operations up to there: see `TowerCopies.can_begin`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..hosts.operation_devices import nodes_called_by
from .tower_variables import changes_a_variable, function_that_changes

_SHARED = ('VarHandleOp', 'HashTableV2')
"""Resources that all cores may share, since they only read them."""
_UNFIT = ('Enter', 'Exit', 'Merge', 'NextIteration', 'Switch', 'EagerPyFunc')
"""Python knows more of these than their graph says, and needs it to differentiate them."""
_SEED_STRIDE, _SEEDS = 1_000_003, 2**31 - 1
"""Between the seeds of two cores, and how many seeds there are."""


class TowerCopies:
    """The copies of the operations that tower 0 makes from now on in the default graph."""

    def __init__(self, inputs: Sequence[Any]):
        """Takes for each core what its model gets: structures of tensors, alike for all cores."""
        self._graph = tf.get_default_graph()
        first, *others = [tf.nest.flatten(each, expand_composites=True) for each in inputs]
        self._tensors = [{own.name: its for own, its in zip(first, other) if own is not its}
                         for other in others]
        self._scopes = [self._graph.unique_name(f'core_{core}') for core in range(1, len(inputs))]
        self._operations = [dict[tf.Operation, tf.Operation]() for _ in others]
        self._own = dict[tf.Operation, int]()  # By operation to copy, in order of creation.
        self._known = self._graph.version

    def can_begin(self) -> bool:
        """Whether all that tower 0 has made so far can be copied.

        Resources of a tower, such as queues, cannot, and neither can loops of TensorFlow 1, Python
        functions with gradients, and functions that change variables or draw by a seed: a copy
        calls the same function.
        """
        harmless, seen = set[str](), set[str]()
        return not any(
            operation.type in _UNFIT
            or any(output.dtype == tf.resource for output in operation.outputs)
            or function_that_changes(operation, harmless)
            or any(map(_is_seeded, nodes_called_by(operation, seen)))
            for operation in self._found())

    def of(self, value: Any) -> list[Any]:
        """Returns for each core but the first a copy of a structure, whose tensors are of tower 0.

        What is no tensor stays.
        """
        leaves = tf.nest.flatten(value, expand_composites=True)
        self._found()
        wanted = self._missing(leaf for leaf in leaves if isinstance(leaf, tf.Tensor))
        if wanted:
            for number in range(len(self._tensors)):
                self._import(wanted, number)
        return [tf.nest.pack_sequence_as(value, [
            found.get(leaf.name, leaf) if isinstance(leaf, tf.Tensor) else leaf
            for leaf in leaves], expand_composites=True) for found in self._tensors]

    def pass_over(self) -> None:
        """Lets all cores share what was made since the last call of another method."""
        self._known = self._graph.version

    def _found(self) -> Iterable[tf.Operation]:
        """Looks at the operations that are new, and returns all that each core needs for itself."""
        per_core = self._tensors[0]
        for position, operation in enumerate(
                self._graph.get_operations()[self._known:], self._known):
            if operation.type in _SHARED or changes_a_variable(operation):
                continue
            if (operation.op_def.is_stateful and not _only_reads(operation)
                    or any(one.name in per_core or one.op in self._own for one in operation.inputs)
                    or any(one in self._own for one in operation.control_inputs)):
                self._own[operation] = position
        self._known = self._graph.version
        return self._own

    def _missing(self, tensors: Iterable[tf.Tensor]) -> list[tf.Operation]:
        """Returns the operations that tensors depend on and that are still to be copied."""
        found, pending = set[tf.Operation](), [tensor.op for tensor in tensors]
        while pending:
            operation = pending.pop()
            if (operation in self._own and operation not in found
                    and operation not in self._operations[0]):
                found.add(operation)
                pending += [*[one.op for one in operation.inputs], *operation.control_inputs]
        return sorted(found, key=self._own.__getitem__)

    def _import(self, wanted: Sequence[tf.Operation], number: int) -> None:
        """Copies operations for one core."""
        names = {operation.name for operation in wanted}
        nodes = tf.GraphDef(versions=self._graph.graph_def_versions)
        for operation in wanted:
            node = nodes.node.add()
            node.CopyFrom(operation.node_def)
            if '_class' in node.attr:  # It may be together with what is not copied.
                del node.attr['_class']
            waits = [one for one in node.input if not one.startswith('^') or one[1:] in names]
            node.input[:] = waits
            if _is_seeded(node):
                node.attr['seed2'].i = (
                    node.attr['seed2'].i + (number + 1) * _SEED_STRIDE) % _SEEDS
        tensors, operations = self._tensors[number], self._operations[number]
        scope = f'{self._scopes[number]}/'  # The same for all copies of a core.
        tf.import_graph_def(nodes, {
            one.name: tensors.get(one.name, one) for operation in wanted
            for one in operation.inputs if one.op.name not in names}, name=scope)
        for operation in wanted:
            operations[operation] = copied = self._graph.get_operation_by_name(
                scope + operation.name)
            tensors |= {own.name: its for own, its in zip(operation.outputs, copied.outputs)}
        for operation in wanted:
            _tf.wait_for(operations[operation], [
                operations.get(one, one) for one in operation.control_inputs
                if one.name not in names])


def _is_seeded(node: tf.NodeDef) -> bool:
    """Whether a random operation draws the same at every start."""
    return 'seed2' in node.attr and bool(node.attr['seed'].i or node.attr['seed2'].i)


def _only_reads(operation: tf.Operation) -> bool:
    """Whether a stateful operation gives the same to all cores in a step."""
    return operation.type in ('ReadVariableOp', 'ResourceGather', 'LookupTableFindV2')
