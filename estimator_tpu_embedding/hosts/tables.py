"""Tables and slots as variables, one part per host.

A table `name` of 7 rows on 2 hosts is `name/part_0` (4 rows) and `name/part_1` (3 rows); its
slots are `name/Adagrad/part_0` and so on. TensorFlow saves the parts as slices of one tensor
`name` of the full shape, which is what a checkpoint of the original holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..core.specs import TableSpec


class HostedTable(NamedTuple):
    """The variables of one table.

    Attributes:
      spec: the table.
      rows: one variable per host that holds rows, `[rows_on(host), D]`.
      slots: per slot of the optimizer, one variable per such host.
    """

    spec: TableSpec
    rows: tuple[tf.Variable, ...]
    slots: dict[str, tuple[tf.Variable, ...]]


def create_tables(plan: Plan, variable_names: Mapping[str, str],
                  slot_names: Mapping[str, Sequence[str]] | None = None
                  ) -> dict[str, HostedTable]:
    """Creates the variables of every table in the default graph.

    Args:
      plan: which tables, on how many hosts.
      variable_names: for each table the name of its variable.
      slot_names: for each table those of its slots; by `None` they are below the variable's.

    Returns:
      By table name.
    """
    tables = {}
    for table in plan.tables:
        name = variable_names[table.name]
        parts = min(table.vocabulary_size, plan.topology.num_hosts)
        shape = (table.vocabulary_size, table.dimension)
        rows = _partitioned(name, shape, parts, _initializer(plan, table))
        slots = plan.slots(table.name)
        own_names = (slot_names[table.name] if slot_names is not None
                     else [f'{name}/{slot.suffix}' for slot in slots])
        slot_rows = {
            slot.suffix: _partitioned(slot_name, shape, parts,
                                      tf.constant_initializer(slot.initial_value))
            for slot, slot_name in zip(slots, own_names)}
        tables[table.name] = HostedTable(spec=table, rows=rows, slots=slot_rows)
    return tables


def _initializer(plan: Plan, table: TableSpec) -> Callable[..., Any]:
    """What gives the rows of one host their initial values."""
    initializer = table.initializer or tf.truncated_normal_initializer(
        stddev=1 / math.sqrt(table.dimension))
    matrix = np.asarray(getattr(initializer, 'value', 0.0))
    if matrix.shape != (table.vocabulary_size, table.dimension):
        return initializer
    # A constant of the whole table: TensorFlow would give it to every host as it is.
    partition = plan.partition(table.name)
    ids = {partition.offset_of(host): partition.ids_on(host)
           for host in range(plan.topology.num_hosts) if partition.rows_on(host)}

    def rows_of_host(shape: Any, dtype: Any = tf.float32, partition_info: Any = None
                     ) -> tf.Tensor:
        first_row = partition_info.var_offset[0] if partition_info is not None else 0
        return tf.constant(matrix[ids[first_row]], dtype)

    return rows_of_host


def _partitioned(name: str, shape: tuple[int, int], parts: int,
                 initializer: Callable[..., Any]) -> tuple[tf.Variable, ...]:
    """`parts` variables whose sizes differ by at most one row, larger ones first."""
    return tuple(tf.get_variable(
        name, shape=shape, dtype=tf.float32, initializer=initializer, trainable=False,
        use_resource=True, partitioner=tf.fixed_size_partitioner(parts)))
