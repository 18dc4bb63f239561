"""The lookups and updates of one `TPUEmbedding`, as operations of the functions that are traced."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import tensorflow as tf

from .. import _tf
from ..core.optimizers import DynamicRate
from ..core.plan import Plan
from ..core.specs import Kernels
from ..errors import CallError, Problem
from ..hosts.engine import Activations, CoreBatch, rates_at, require_rates
from ..hosts.engine_choice import open_engine
from ..hosts.pipelined import PendingUpdate
from ..hosts.step_clock import FunctionSteps
from ..hosts.table_parts import HostedTable
from ..native.eager_variable import EagerTableVariable
from ..ops import checks
from .batch_queues import INFERENCE, BatchQueues
from .replicas import is_outside_of_replicas
from .table_variables import HOST, PARAMETERS, on_host
from .traced_calls import CallNames, traced_function


class Runtime:
    """Looks up and updates while functions are traced. Its queues live as long as it does."""

    def __init__(self, plan: Plan, variables: Mapping[str, Mapping[str, EagerTableVariable]],
                 kernels: Kernels, batch_size: int, features: Sequence[str]):
        """Opens the engine, which owns the values of variables from its first use on.

        Args:
          plan: on one host with a core per replica.
          variables: by table, then `'parameters'` or the name of the slot.
          batch_size: samples of all replicas per step, for reports; 0 if that is not known.
          features: the names of all features, in the order of the user's.
        """
        self.plan = plan
        tables = {table.name: _hosted(plan, table.name, variables) for table in plan.tables}
        with on_host():
            self._engine = open_engine(plan, tables, kernels, self.flush)
            self._steps = FunctionSteps(batch_size, self._engine.kernels)
            self._pending = PendingUpdate(self._engine, [tf.int64, tf.float32], self._update_late)
        self.kernels, self.kinds = self._engine.kernels, self._engine.kinds
        self._features = features  # The plan has them in another order.
        self._names = CallNames()
        self._queues: dict[str | None, BatchQueues] = {}
        self._flush = tf.function(self._pending.make, autograph=False)
        self._rates_have_variables = False

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        """Packs the ids of one replica in the form in which they wait."""
        with tf.device(HOST):
            return list(self._engine.pack(batch))

    def enqueue(self, found: Sequence[Sequence[tf.Tensor]], replicas: Sequence[int],
                use: int | tf.Tensor, name: str | None) -> None:
        """Hands over the packed ids of some replicas, if nothing is wrong; see `BatchQueues.put`.

        `found` has for each of the replicas a result of `Batches.pack`.
        """
        with tf.device(HOST), tf.control_dependencies(
                [checks.require_silence(message) for message, *_ in found]):
            self._queues_of(name, replicas[0]).put([packed for _, *packed in found], replicas, use)

    def lookup(self, replica: int, name: str | None) -> Activations:
        """Looks up the oldest batch of a replica and a name."""
        self._interrupt()
        with tf.device(HOST):
            use, packed = self._queues_of(name, replica).take(replica)
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
        if not self._rates_have_variables:
            self._make_variables_of_rates()
        rates = rates_at(self.plan, tf.constant(0, tf.int64))
        return tf.stack([rates[table.name] for table in self.plan.tables])

    def update(self, gradients: Sequence[Sequence[tf.Tensor]], stacked: tf.Tensor,
               name: str | None) -> None:
        """Updates the rows that all replicas looked up last, or, if pipelined, a step later.

        `gradients` are those of each replica in the order of features, `stacked` is the result of
        `rates`.
        """
        self._interrupt()
        with tf.device(HOST):
            by_name: list[Activations] = [dict(zip(self._features, own)) for own in gradients]
            packed = self._queues_of(name, 0).take_looked_up()
            step = self._steps.trained.begin_step()
            rates = self._by_table(stacked)
            with tf.control_dependencies([require_rates(self.plan, rates, step)]):
                done = (self._pending.make() if self.plan.pipelined
                        else self._engine.update(packed, by_name, rates, step))
            with tf.control_dependencies([done]):
                ended = ([self._pending.put([step, stacked], packed, by_name)]
                         if self.plan.pipelined else [])
                with tf.control_dependencies(ended):
                    self._steps.trained.count_step()

    def flush(self) -> None:
        """Makes the update that waits for the next step, if any; a graph makes it when it runs."""
        self._steps.interrupt()
        if not self.plan.pipelined:
            return
        if not tf.executing_eagerly():
            with tf.device(HOST):
                self._pending.make()
        elif self._pending.waits():
            self._flush()

    def _make_variables_of_rates(self) -> None:
        """Calls the user's functions in vain, for the variables that they make when first called.

        A schedule of Keras makes the `iterations` of its optimizer. The first step may be in a
        loop, where TensorFlow can make no variable of replicas. What fails here is of no account:
        the step calls the functions again. Elsewhere they are not called in vain, because a call
        may change something in Python.
        """
        self._rates_have_variables = True
        in_part = traced_function() is not tf.compat.v1.get_default_graph()
        if in_part and any(isinstance(self.plan.rate(table.name), DynamicRate)
                           for table in self.plan.tables):
            with on_host(), _tf.discarded_graph(), contextlib.suppress(Exception):
                self.rates()

    def _interrupt(self) -> None:
        """Notes that a function is being traced, which is no step."""
        with on_host():
            self._steps.interrupt()

    def _queues_of(self, name: str | None, replica: int) -> BatchQueues:
        """Returns the queues of the calls of one name in a replica."""
        name = self._names.common(name, replica, outside=is_outside_of_replicas())
        if name not in self._queues:
            with on_host():
                self._queues[name] = BatchQueues(
                    self.plan.topology.num_cores, self._engine.kinds, self._steps.note_lookup)
        return self._queues[name]

    def _update_late(self, facts: list[tf.Tensor], packed: list[list[tf.Tensor]],
                     gradients: list[Activations]) -> tf.Tensor:
        step, stacked = facts
        rates = self._by_table(tf.ensure_shape(stacked, [len(self.plan.tables)]))
        return self._engine.update(packed, gradients, rates, step)

    def _by_table(self, stacked: tf.Tensor) -> dict[str, tf.Tensor]:
        return dict(zip([table.name for table in self.plan.tables], tf.unstack(stacked)))


def _hosted(plan: Plan, name: str, variables: Mapping[str, Mapping[str, EagerTableVariable]]
            ) -> HostedTable:
    """Returns a table and its slots, which come in the order of the core's."""
    own = dict(variables[name])
    rows = own.pop(PARAMETERS)
    return HostedTable(plan.table(name), (rows,), {
        slot.suffix: (variable,) for slot, variable in zip(plan.slots(name), own.values())})
