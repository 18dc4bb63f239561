"""The lookups and updates of one `TPUEmbedding`, as operations of the functions that are traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from ..core.kernels import Kernels
from ..core.plan import Plan
from ..errors import CallError, Problem
from ..hosts import update_counts
from ..hosts.backend import Activations, CoreBatch
from ..hosts.choice import open_engine
from ..hosts.pending import PendingUpdate
from ..hosts.rates import rates_at, require_rates
from ..hosts.tables import HostedTable
from ..native.owned import OwnedVariable
from . import calls
from .pairing import INFERENCE, Pairing
from .tables import HOST, PARAMETERS, on_host


class Runtime:
    """Looks up and updates while functions are traced. Its queues live as long as it does.

    Attributes:
      plan: the plan, on one host with a core per replica.
      kernels: `'native'` or `'stock'`.
    """

    def __init__(self, plan: Plan, variables: Mapping[str, Mapping[str, OwnedVariable]],
                 kernels: Kernels):
        """Opens the engine, which owns the values of variables from its first use on.

        Args:
          plan: the plan.
          variables: by table, then `'parameters'` or the name of the slot.
          kernels: which engine, and its threads.
        """
        self.plan = plan
        tables = {table.name: _hosted(plan, table.name, variables) for table in plan.tables}
        with on_host():
            self._engine = open_engine(plan, tables, kernels, self.flush)
            self._updates = OwnedVariable(initial_value=tf.zeros([], tf.int64), trainable=False,
                                          name='updates', dtype=tf.int64)
            update_counts.count_by(self._updates)
            self._pending = PendingUpdate(self._engine, [tf.int64, tf.float32], self._update_late)
        self.kernels = self._engine.kernels
        self._names = calls.CallNames()
        self._pairings: dict[str | None, Pairing] = {}
        self._flush = tf.function(self._pending.make, autograph=False)

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        """Packs the ids of one replica in the form in which they wait."""
        with tf.device(HOST):
            return list(self._engine.pack(batch))

    def enqueue(self, packed: Sequence[Sequence[tf.Tensor]], replicas: Sequence[int],
                use: int | tf.Tensor, name: str | None) -> None:
        """Hands over the packed ids of each of some replicas; see `Pairing.put`."""
        with tf.device(HOST):
            self._pairing(name, replicas).put(packed, replicas, use)

    def lookup(self, replica: int, name: str | None) -> Activations:
        """Looks up the oldest batch of a replica and a name."""
        with tf.device(HOST):
            use, packed = self._pairing(name, [replica]).take(replica)
            done = []
            if self.plan.pipelined:
                done.append(tf.cond(tf.equal(use, INFERENCE), self._pending.make,
                                    lambda: tf.constant(0)))
            with tf.control_dependencies(done):
                return self._engine.lookup(packed)

    def rates(self) -> tf.Tensor:
        """Returns the learning rates of all tables, float32 `[tables]`; calls the user's functions.

        Raises:
          CallError: if a table has no optimizer.
        """
        if self.plan.mode != 'training':
            raise CallError(Problem(
                'E558', 'apply_gradients', 'every table must have an optimizer', 'a table without',
                'Give TPUEmbedding an optimizer.'))
        rates = rates_at(self.plan, tf.constant(0, tf.int64))
        return tf.stack([rates[table.name] for table in self.plan.tables])

    def update(self, gradients: Sequence[Activations], stacked: tf.Tensor,
               name: str | None) -> None:
        """Updates the rows that all replicas looked up last, or, if pipelined, a step later.

        Args:
          gradients: by replica.
          stacked: the result of `rates`.
          name: of the lookup.
        """
        with tf.device(HOST):
            packed = self._pairing(name, [0]).take_looked_up()
            step = self._updates.assign_add(1)
            rates = self._by_table(stacked)
            with tf.control_dependencies([require_rates(self.plan, rates, step)]):
                if not self.plan.pipelined:
                    self._engine.update(packed, gradients, rates, step)
                    return
                done = self._pending.make()
            with tf.control_dependencies([done]):
                self._pending.put([step, stacked], packed, gradients)

    def flush(self) -> None:
        """Makes the update that waits for the next step, if any; a graph makes it when it runs."""
        if not self.plan.pipelined:
            return
        if not tf.executing_eagerly():
            with tf.device(HOST):
                self._pending.make()
        elif self._pending.waits():
            self._flush()

    def _pairing(self, name: str | None, replicas: Sequence[int]) -> Pairing:
        """Returns the pairing of the calls of one name in some replicas."""
        name = self._names.common(
            name, replicas[0], outside=calls.is_outside_of_replicas())
        if name not in self._pairings:
            with on_host():
                self._pairings[name] = Pairing(self.plan.topology.num_cores, self._engine.kinds)
        return self._pairings[name]

    def _update_late(self, facts: list[tf.Tensor], packed: list[list[tf.Tensor]],
                     gradients: list[Activations]) -> tf.Tensor:
        step, stacked = facts
        rates = self._by_table(tf.ensure_shape(stacked, [len(self.plan.tables)]))
        return self._engine.update(packed, gradients, rates, step)

    def _by_table(self, stacked: tf.Tensor) -> dict[str, tf.Tensor]:
        return dict(zip([table.name for table in self.plan.tables], tf.unstack(stacked)))


def _hosted(plan: Plan, name: str, variables: Mapping[str, Mapping[str, OwnedVariable]]
            ) -> HostedTable:
    """Returns a table and its slots, which come in the order of the core's."""
    own = dict(variables[name])
    rows = own.pop(PARAMETERS)
    return HostedTable(plan.table(name), (rows,), {
        slot.suffix: (variable,) for slot, variable in zip(plan.slots(name), own.values())})
