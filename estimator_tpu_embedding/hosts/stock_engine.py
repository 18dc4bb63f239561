"""The stock engine: looks up and updates rows on emulated hosts with TensorFlow's own operations.

It needs no compiled library. It serves any number of emulated hosts and cores in this process. It
is several times slower than the engine in `native_engine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from ..core.optimizers import Optimizer
from ..core.partition import Partition
from ..core.plan import Plan
from ..ops import combine, update_rules
from .engine import (
    Activations,
    CoreBatch,
    Engine,
    from_vectors,
    numbers_of_distinct,
    require_finite,
    to_vectors,
    vector_kinds,
)
from .table_parts import HostedTable


class _Sums(NamedTuple):
    """The summed gradients of the rows of one table.

    Attributes:
      ids: int64 `[n]`; distinct within one turn.
      gradients: float32 `[n, D]`.
      turns: int64 `[n]`, see `combine.turns`; `None` if all sums are applied at once.
    """

    ids: tf.Tensor
    gradients: tf.Tensor
    turns: tf.Tensor | None


class StockEngine(Engine):
    """Executes a plan with stock operations. See `engine.Engine` for the verbs."""

    kernels = 'stock'

    def __init__(self, plan: Plan, tables: dict[str, HostedTable], *,
                 skips_nonfinite: bool = False):
        self.plan = plan
        self.kinds = vector_kinds(plan)
        self.tables = tables
        self._skips_nonfinite = skips_nonfinite

    def open(self) -> tf.Operation:
        return tf.no_op()

    def load(self) -> tf.Operation:
        return tf.no_op()

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        return to_vectors(self.plan, batch)

    def rows_touched(self, packed: Sequence[Sequence[tf.Tensor]]) -> dict[str, tf.Tensor]:
        return numbers_of_distinct(self.plan, [
            {name: batch.ids for name, batch in from_vectors(self.plan, of_core).items()}
            for of_core in packed])

    def lookup(self, packed: Sequence[tf.Tensor]) -> Activations:
        batches = from_vectors(self.plan, packed)
        activations = {}
        for feature in self.plan.features:
            table, batch = self.tables[feature.table], batches[feature.name]
            looked_up = combine.rounded(_rows_at(
                self.plan.partition(feature.table), table.rows, batch.ids), table.spec.quantization)
            activations[feature.name] = tf.reshape(
                combine.combine(looked_up, batch, table.spec.combiner),
                self.plan.output_shape(feature))
        return activations

    def update(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[Activations],
               rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
        batches = [from_vectors(self.plan, of_core) for of_core in packed]
        wanted = {name: self._contributions(table, batches, gradients)
                  for name, table in self.tables.items()}
        # All tables are examined before any of them is written.
        bad = tf.stack([tf.reduce_sum(tf.cast(~tf.math.is_finite(one.gradients), tf.int32))
                        for one in wanted.values()])

        def write() -> tf.Tensor:
            with tf.control_dependencies([
                    self._update_table(self.tables[name], one, rates[name])
                    for name, one in wanted.items()]):
                return tf.constant(True)

        required = [] if self._skips_nonfinite else [require_finite(list(self.tables), bad, step)]
        with tf.control_dependencies(required):
            refused = bad > 0
            done = (tf.cond(tf.reduce_any(refused), lambda: tf.constant(False), write)
                    if self._skips_nonfinite else write())
        with tf.control_dependencies([done]):
            return tf.identity(refused)

    def _contributions(self, table: HostedTable, batches: Sequence[CoreBatch],
                       gradients: Sequence[Activations]) -> _Sums:
        """Sums the gradients of a table over all cores or, without accumulation, for each core."""
        if _optimizer_of(table).accumulate:
            return _Sums(*self._summed(table, batches, gradients), None)
        by_core = []
        for core, (batch, own) in enumerate(zip(batches, gradients)):
            ids, sums = self._summed(table, [batch], [own])
            by_core.append((ids, sums, combine.turns(
                ids, core, self.plan.topology.num_cores)))
        return _Sums(*[tf.concat(parts, 0) for parts in zip(*by_core)])

    def _summed(self, table: HostedTable, batches: Sequence[CoreBatch],
                gradients: Sequence[Activations]) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the distinct ids that some cores looked up in a table, and their gradients."""
        ids, contributions = [], []
        for feature in self.plan.features_of(table.spec.name):
            for of_core, gradient in zip(batches, gradients):
                batch = of_core[feature.name]
                ids.append(batch.ids)
                flat = tf.reshape(gradient[feature.name], [-1, table.spec.dimension])
                contributions.append(combine.spread(flat, batch, table.spec.combiner))
        return combine.sum_duplicates(tf.concat(ids, 0), tf.concat(contributions, 0))

    def _update_table(self, table: HostedTable, sums: _Sums, rate: tf.Tensor) -> tf.Operation:
        """Applies the optimizer to the rows of `sums`, turn by turn if there are turns."""
        ids, gradients, turns = sums
        if turns is None:
            return self._update_rows(table, ids, gradients, rate)

        def update_next(turn: tf.Tensor) -> tf.Tensor:
            where = tf.squeeze(tf.where(tf.equal(turns, turn)), 1)
            done = self._update_rows(table, tf.gather(ids, where), tf.gather(gradients, where),
                                     rate)
            with tf.control_dependencies([done]):
                return turn + 1

        cores = tf.constant(self.plan.topology.num_cores, tf.int64)
        return tf.while_loop(lambda turn: turn < cores, update_next, [tf.zeros([], tf.int64)],
                             parallel_iterations=1).op

    def _update_rows(self, table: HostedTable, ids: tf.Tensor, gradient: tf.Tensor,
                     rate: tf.Tensor) -> tf.Operation:
        """Applies the optimizer on every host to the rows of distinct `ids`."""
        optimizer = _optimizer_of(table)
        positions, local = _route(
            self.plan.partition(table.spec.name), len(table.rows), ids)
        writes = []
        for host, where in enumerate(positions):
            at, own = tf.gather(local, where), tf.gather(gradient, where)
            shards = [table.rows[host]] + [parts[host] for parts in table.slots.values()]
            if optimizer.updates_all_rows:
                values = [shard.read_value() for shard in shards]
                own = tf.scatter_nd(tf.expand_dims(at, 1), own, shards[0].shape.as_list())
            else:
                values = [tf.gather(shard, at) for shard in shards]
            new_rows, new_slots = update_rules.update_rows(
                optimizer, values[0], tuple(values[1:]), own, rate)
            writes += [
                shard.assign(value, read_value=False) if optimizer.updates_all_rows
                else tf.raw_ops.ResourceScatterUpdate(
                    resource=shard.handle, indices=at, updates=value)
                for shard, value in zip(shards, (new_rows, *new_slots))]
        return tf.group(*writes)


def _optimizer_of(table: HostedTable) -> Optimizer:
    assert table.spec.optimizer is not None, 'a plan for training has optimizers'
    return table.spec.optimizer


def _route(partition: Partition, parts: int, ids: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Returns for each host the positions of its ids, and for each id its row on its host."""
    hosts, local = partition.locate(ids, tf.maximum)
    positions = tf.dynamic_partition(tf.range(tf.size(ids)), tf.cast(hosts, tf.int32), parts)
    return positions, local


def _rows_at(partition: Partition, parts: Sequence[tf.Variable], ids: tf.Tensor) -> tf.Tensor:
    """Gathers the rows of ids from the parts of all hosts."""
    if len(parts) == 1:
        return tf.gather(parts[0], ids)
    positions, local = _route(partition, len(parts), ids)
    return tf.dynamic_stitch(positions, [
        tf.gather(part, tf.gather(local, where)) for part, where in zip(parts, positions)])
