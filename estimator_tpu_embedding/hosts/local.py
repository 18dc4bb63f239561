"""Any number of emulated hosts and cores in this process, in stock TensorFlow ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow.compat.v1 as tf

from ..core.optimizer import Optimizer
from ..core.plan import Plan
from ..ops import combine, rows, rules
from ..ops.ids import IdBatch
from .backend import Activations, CoreBatch
from .queues import kinds_of, pack, unpack
from .rates import require_finite
from .tables import HostedTable


class LocalEngine:
    """The engine of a plan inside this process. See `backend.Engine` for the verbs.

    Attributes:
      plan: what it executes.
      kernels: `'stock'`.
      kinds: those of flat vectors of ids, see `queues.pack`.
      tables: the variables, by table name.
    """

    kernels = 'stock'

    def __init__(self, plan: Plan, tables: dict[str, HostedTable], *,
                 skips_nonfinite: bool = False):
        """Executes a plan in the default graph.

        Args:
          plan: what to execute.
          tables: its tables, in that graph.
          skips_nonfinite: gradients that are not finite make an update one that changes nothing,
            instead of an error.
        """
        self.plan = plan
        self.kinds = kinds_of(plan)
        self.tables = tables
        self._skips_nonfinite = skips_nonfinite

    def open(self) -> tf.Operation:
        return tf.no_op()

    def load(self) -> tf.Operation:
        return tf.no_op()

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        return pack(self.plan, batch)

    def unpack(self, packed: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
        return unpack(self.plan, packed)

    def look_up(self, packed: Sequence[tf.Tensor]) -> Activations:
        batches = unpack(self.plan, packed)
        activations = {}
        for feature in self.plan.features:
            table, batch = self.tables[feature.table], batches[feature.name]
            looked_up = rows.rounded(self._rows_of(table, batch.ids), table.spec.quantization)
            activations[feature.name] = tf.reshape(
                combine.combine(looked_up, batch, table.spec.combiner),
                self.plan.output_shape(feature))
        return activations

    def apply(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[Activations],
              rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
        batches = [unpack(self.plan, of_core) for of_core in packed]
        wanted = {name: self._contributions(table, batches, gradients)
                  for name, table in self.tables.items()}
        bad = tf.stack([_count_nonfinite(gradient) for _, gradient in wanted.values()])
        required = [] if self._skips_nonfinite else [require_finite(list(wanted), bad, step)]

        def write() -> tf.Tensor:
            with tf.control_dependencies([
                    self._update_table(self.tables[name], ids, gradient, rates[name])
                    for name, (ids, gradient) in wanted.items()]):
                return tf.constant(True)

        # Of all tables, before any of them is written.
        with tf.control_dependencies(required):
            refused = bad > 0
            done = (tf.cond(tf.reduce_any(refused), lambda: tf.constant(False), write)
                    if self._skips_nonfinite else write())
        with tf.control_dependencies([done]):
            return tf.identity(refused)

    def _rows_of(self, table: HostedTable, ids: tf.Tensor) -> tf.Tensor:
        """Gathers `[n, D]` from whichever hosts hold the ids."""
        if len(table.rows) == 1:
            return rows.read(table.rows[0], ids)
        positions, local = self._route(table, ids)
        return tf.dynamic_stitch(positions, [
            rows.read(shard, tf.gather(local, where))
            for shard, where in zip(table.rows, positions)])

    def _route(self, table: HostedTable, ids: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
        """For each host the positions of its ids, and for each id its row there."""
        hosts, local = self.plan.partition(table.spec.name).locate(ids, tf.maximum)
        positions = tf.dynamic_partition(
            tf.range(tf.size(ids)), tf.cast(hosts, tf.int32), len(table.rows))
        return positions, local

    def _contributions(self, table: HostedTable, batches: Sequence[CoreBatch],
                       gradients: Sequence[Activations]) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids whose rows a table updates, and the gradient for each.

        With accumulation they are distinct. Without it, they are feature by feature in the order
        of samples, so what becomes of a row does not depend on the topology.
        """
        ids, contributions = [], []
        for feature in self.plan.features_of(table.spec.name):
            for of_core, gradient in zip(batches, gradients):
                batch = of_core[feature.name]
                ids.append(batch.ids)
                flat = tf.reshape(gradient[feature.name], [-1, table.spec.dimension])
                contributions.append(combine.spread(flat, batch, table.spec.combiner))
        occurrences = tf.concat(ids, 0), tf.concat(contributions, 0)
        return rows.sum_duplicates(*occurrences) if _accumulates(table) else occurrences

    def _update_table(self, table: HostedTable, ids: tf.Tensor, gradient: tf.Tensor,
                      rate: tf.Tensor) -> tf.Operation:
        """Applies the optimizer to the rows of ids, which are distinct if it accumulates."""
        optimizer = table.spec.optimizer
        assert optimizer is not None, 'a plan for training has optimizers'
        if _accumulates(table):
            return self._update_rows(table, optimizer, ids, gradient, rate)
        numbers = rows.occurrence_numbers(ids)

        def update_next(number: tf.Tensor) -> tf.Tensor:
            where = tf.squeeze(tf.where(tf.equal(numbers, number)), 1)
            done = self._update_rows(table, optimizer, tf.gather(ids, where),
                                     tf.gather(gradient, where), rate)
            with tf.control_dependencies([done]):
                return number + 1

        most = tf.reduce_max(tf.concat([numbers, [-1]], 0))
        return tf.while_loop(lambda number: number <= most, update_next, [0],
                             parallel_iterations=1).op

    def _update_rows(self, table: HostedTable, optimizer: Optimizer, ids: tf.Tensor,
                     gradient: tf.Tensor, rate: tf.Tensor) -> tf.Operation:
        """Applies the optimizer on every host to the rows of distinct `ids`."""
        positions, local = self._route(table, ids)
        writes = []
        for host, where in enumerate(positions):
            at, own = tf.gather(local, where), tf.gather(gradient, where)
            shards = [table.rows[host]] + [parts[host] for parts in table.slots.values()]
            if optimizer.updates_all_rows:
                values = [rows.read_all(shard) for shard in shards]
                own = rows.spread_over_all(shards[0], at, own)
            else:
                values = [rows.read(shard, at) for shard in shards]
            new_rows, new_slots = rules.update_rows(
                optimizer, values[0], tuple(values[1:]), own, rate)
            writes += [rows.write_all(shard, value) if optimizer.updates_all_rows
                       else rows.write(shard, at, value)
                       for shard, value in zip(shards, (new_rows, *new_slots))]
        return tf.group(*writes)


def _accumulates(table: HostedTable) -> bool:
    return table.spec.optimizer is not None and table.spec.optimizer.accumulate


def _count_nonfinite(gradient: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(~tf.math.is_finite(gradient), tf.int32))
