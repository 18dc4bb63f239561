"""Creates the variables of tables and slots, one part per host.

A table `name` of 7 rows on 2 hosts is `name/part_0` (4 rows) and `name/part_1` (3 rows); its
slots are `name/Adagrad/part_0` and so on. TensorFlow saves the parts as slices of one tensor
`name` of the full shape, as in a checkpoint of the original.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from ..core.optimizers import SlotSpec
from ..core.plan import Plan
from ..core.specs import TableSpec
from ..errors import Problem
from .placement import Placement, on

LARGE_BYTES = 2**20
"""Larger parts are initialised so that no second copy of their first values stays in memory."""

SLICE_BYTES = 2**24
"""Bytes of a constant of the whole table that are copied at a time."""


class HostedTable(NamedTuple):
    """The variables of one table.

    Attributes:
      spec: the table.
      rows: one variable per host that holds rows, float32 `[rows_on(host), D]`.
      slots: per slot of the optimizer, one variable per such host.
    """

    spec: TableSpec
    rows: tuple[tf.Variable, ...]
    slots: dict[str, tuple[tf.Variable, ...]]


def create_tables(plan: Plan, variable_names: Mapping[str, str],
                  slot_names: Mapping[str, Sequence[str]] | None = None,
                  placement: Placement | None = None) -> dict[str, HostedTable]:
    """Creates the variables of every table in the default graph, on the devices of `placement`.

    Args:
      variable_names: for each table the name of its variable.
      slot_names: for each table the names of its slots; if it is `None` they are below the
        variable's.
    """
    client, tables = '' if placement is None else placement.client, {}
    with _placed(hosts_of_parts(plan), placement):
        for table in plan.tables:
            name, slots = variable_names[table.name], plan.slots(table.name)
            own_names = (slot_names[table.name] if slot_names is not None
                         else [f'{name}/{slot.suffix}' for slot in slots])
            tables[table.name] = HostedTable(
                table, _partitioned(plan, table, name, _initializer(plan, table, client)),
                _create_slots(plan, table, slots, own_names))
    return tables


def hosts_of_parts(plan: Plan) -> Iterator[int]:
    """Yields the host of each variable of the tables of a plan, in the order of `parts_of`."""
    for table in plan.tables:
        for _ in range(1 + len(plan.slots(table.name))):
            yield from range(min(table.vocabulary_size, plan.topology.num_hosts))


def tables_at(plan: Plan, tables: Mapping[str, HostedTable], host: int) -> dict[str, HostedTable]:
    """Returns the variables of one host, as the tables of its own plan."""
    return {table.name: HostedTable(
        table, (tables[table.name].rows[host],),
        {suffix: (parts[host],) for suffix, parts in tables[table.name].slots.items()})
        for table in plan.tables}


def _placed(hosts: Iterator[int], placement: Placement | None
            ) -> contextlib.AbstractContextManager[object]:
    """Returns a context in which variables are made on their hosts, which are given in order."""
    if placement is None or not placement.is_remote:
        return contextlib.nullcontext()

    def creator(next_creator: Callable[..., tf.Variable], **kwargs: Any) -> tf.Variable:
        with on(placement.host(next(hosts))):
            return next_creator(**kwargs)

    return tf.variable_creator_scope(creator)


def parts_of(tables: Mapping[str, HostedTable]) -> list[Any]:
    """Returns all variables of tables, in the order of the parts of the native engine."""
    return [part for table in tables.values()
            for parts in (table.rows, *table.slots.values()) for part in parts]


def create_slots_apart(plan: Plan, table: TableSpec, names: Sequence[str],
                       placement: Placement | None) -> dict[str, tuple[tf.Variable, ...]]:
    """Creates all slots of one table, by suffix, for checkpoints and not for the engine."""
    assert table.optimizer is not None
    parts = range(min(table.vocabulary_size, plan.topology.num_hosts))
    with _placed(itertools.cycle(parts), placement):
        return _create_slots(plan, table, table.optimizer.slots, names)


def _create_slots(plan: Plan, table: TableSpec, slots: Sequence[SlotSpec], names: Sequence[str]
                  ) -> dict[str, tuple[tf.Variable, ...]]:
    return {slot.suffix: _partitioned(
        plan, table, name, tf.constant_initializer(slot.initial_value))
        for slot, name in zip(slots, names)}


def _initializer(plan: Plan, table: TableSpec, client: str) -> Callable[..., Any]:
    """Returns the initializer of the rows of one host; its Python is on the device `client`."""
    initializer: Any = table.initializer or tf.truncated_normal_initializer(
        stddev=1 / math.sqrt(table.dimension))
    if inspect.isclass(initializer):  # As `tf.get_variable` calls it.
        tf.logging.warning('%s', Problem(
            'W430', f'table "{table.name}"', 'initializer is a class, which is called without '
            'arguments', initializer.__name__, 'If that is meant, write '
            f'initializer={initializer.__name__}(); else give it its arguments there.'))
        initializer = initializer()
    matrix = np.asarray(getattr(initializer, 'value', 0.0))
    if matrix.shape != (table.vocabulary_size, table.dimension):
        return initializer
    # A constant of the whole table: TensorFlow would give all of it to each host.
    partition = plan.partition(table.name)
    hosts = {partition.offset_of(host): host for host in range(plan.topology.num_hosts)
             if partition.rows_on(host)}

    def rows_of_host(shape: Any, dtype: Any = tf.float32, partition_info: Any = None
                     ) -> tf.Tensor:
        first_row = partition_info.var_offset[0] if partition_info is not None else 0
        host = hosts[first_row]
        if not _is_large(shape):
            return tf.constant(matrix[partition.ids_on(host)], dtype)
        return _in_slices(
            shape, lambda start, end: matrix[partition.ids_on(host)[start:end]], client)

    return rows_of_host


def _is_large(shape: Sequence[int]) -> bool:
    return 4 * math.prod(shape) > LARGE_BYTES


def _known_when_run(number: int | Sequence[int]) -> tf.Tensor:
    """Returns an int32 tensor that stops TensorFlow from folding its consumers into constants.

    A session would keep such constants in memory.
    """
    return tf.raw_ops.Empty(shape=np.shape(number), dtype=tf.int32, init=True) + number


def _in_slices(shape: Sequence[int], rows_between: Callable[[int, int], np.ndarray],
               client: str) -> tf.Tensor:
    """Fills a float32 tensor in place, so that at most one slice exists twice.

    Args:
      shape: `[rows, width]`.
      rows_between: returns the rows from one number up to another.
      client: the device of the process that has this function.
    """
    rows, width = shape
    step = max(1, SLICE_BYTES // (4 * width))
    whole = tf.raw_ops.Empty(shape=shape, dtype=tf.float32)
    for start in range(0, rows, step):
        end = min(start + step, rows)
        # Without the dependency all slices would exist at once.
        with tf.control_dependencies([whole]), on(client):
            values = tf.numpy_function(
                lambda start=start, end=end: rows_between(start, end).astype(
                    np.float32, copy=False),
                [], tf.float32)
        whole = tf.raw_ops.InplaceUpdate(
            x=whole, i=tf.range(_known_when_run(start), end), v=values)
    return whole


def _never_kept(initializer: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps an initializer so that a large part filled with one number gets its own buffer.

    A session keeps its constants, and TensorFlow turns a fill of a known shape into a constant. A
    variable that begins with a constant is copied when it is first read or written by row.
    """
    knows_part = 'partition_info' in inspect.signature(initializer).parameters

    def initial(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> Any:
        value = (initializer(shape, dtype=dtype, partition_info=partition_info) if knows_part
                 else initializer(shape, dtype=dtype))
        number = _only_number_in(value, shape) if _is_large(shape) else None
        if number is None:
            return value
        filled = tf.fill(_known_when_run(shape), number)
        filled.set_shape(shape)
        return filled

    return initial


def _only_number_in(value: Any, shape: Sequence[int]) -> tf.Tensor | None:
    """Returns the one number in a tensor of a shape, if its operation shows it, or `None`."""
    if (not isinstance(value, tf.Tensor) or not value.shape.is_fully_defined()
            or value.shape.as_list() != list(shape)):
        return None
    if value.op.type == 'Fill':
        return value.op.inputs[1]
    if value.op.type == 'Const' and len(value.op.get_attr('value').float_val) == 1:
        return tf.constant(value.op.get_attr('value').float_val[0], value.dtype)
    return None


def _partitioned(plan: Plan, table: TableSpec, name: str, initializer: Callable[..., Any]
                 ) -> tuple[tf.Variable, ...]:
    """Creates a variable per host whose sizes differ by at most one row, larger ones first."""
    parts = min(table.vocabulary_size, plan.topology.num_hosts)
    return tuple(tf.get_variable(
        name, shape=(table.vocabulary_size, table.dimension), dtype=tf.float32,
        initializer=_never_kept(initializer), trainable=False, use_resource=True,
        partitioner=tf.fixed_size_partitioner(parts)))
