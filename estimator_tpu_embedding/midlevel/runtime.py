"""What an object computes with: the engine of its plan, in functions."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from .. import _tf
from ..core.kernels import Kernels
from ..core.plan import Plan
from ..errors import CallError, Problem
from ..hosts import updates
from ..hosts.backend import Activations, CoreBatch, Engine
from ..hosts.choice import uses_native
from ..hosts.stock import StockEngine
from ..hosts.native import NativeEngine
from ..hosts.rates import rates_at, require_rates
from ..hosts.tables import HostedTable
from ..native import layout, library
from ..native.owned import OwnedVariable
from .pairing import INFERENCE, Pairing
from .tables import HOST, PARAMETERS, on_host


class Runtime:
    """Looks up and updates while functions are traced. What it makes lives as long as it does.

    Attributes:
      plan: what it executes, on one host with a core per replica.
      kernels: `'native'` or `'stock'`.
    """

    def __init__(self, plan: Plan, variables: Mapping[str, Mapping[str, OwnedVariable]],
                 kernels: Kernels):
        """Opens the engine; the values of variables are its from its first use on.

        Args:
          plan: what to execute.
          variables: by table, then `'parameters'` or the name of the slot.
          kernels: which to use.
        """
        self.plan = plan
        tables = {table.name: _hosted(plan, table.name, variables) for table in plan.tables}
        with on_host():
            self._engine = self._open(tables, kernels)
            self._updates = OwnedVariable(initial_value=tf.zeros([], tf.int64), trainable=False,
                                          name='updates', dtype=tf.int64)
            updates.count_by(self._updates)
            self._pending = tf.queue.FIFOQueue(1, [tf.int64, tf.float32, *(
                [*self._engine.kinds, *[tf.float32] * len(plan.features)]
                * plan.topology.num_cores)])
        self.kernels = self._engine.kernels
        self._pairings: dict[str | None, Pairing] = {}
        self._flush = tf.function(self._apply_what_waits, autograph=False)

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        """The ids of one replica, as they wait."""
        with tf.device(HOST):
            return list(self._engine.pack(batch))

    def enqueue(self, packed: Sequence[Sequence[tf.Tensor]], replicas: Sequence[int],
                use: int | tf.Tensor, name: str | None) -> None:
        """Hands over what is packed for each of some replicas; see `Pairing.put`."""
        with tf.device(HOST):
            self._pairing(name).put(packed, replicas, use)

    def lookup(self, replica: int, name: str | None) -> Activations:
        """Looks up the oldest batch of a replica and a name."""
        with tf.device(HOST):
            use, packed = self._pairing(name).take(replica)
            done = []
            if self.plan.pipelined:
                done.append(tf.cond(tf.equal(use, INFERENCE), self._apply_what_waits,
                                    lambda: tf.constant(0)))
            with tf.control_dependencies(done):
                return self._engine.lookup(packed)

    def rates(self) -> tf.Tensor:
        """The learning rates of all tables, float32 `[tables]`; asks functions of the user.

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
          stacked: what `rates` gave.
          name: of the look-up.
        """
        with tf.device(HOST):
            packed = self._pairing(name).take_looked_up()
            step = self._updates.assign_add(1)
            rates = dict(zip([table.name for table in self.plan.tables], tf.unstack(stacked)))
            with tf.control_dependencies([require_rates(self.plan, rates, step)]):
                if not self.plan.pipelined:
                    self._engine.update(packed, gradients, rates, step)
                    return
                done = self._apply_what_waits()
            with tf.control_dependencies([done]):
                self._pending.enqueue([
                    step, stacked,
                    *[tensor for batch, own in zip(packed, gradients) for tensor in [
                        *batch, *[own[feature.name] for feature in self.plan.features]]]])

    def flush(self) -> None:
        """Applies the gradients that wait for the next step, if any; in a graph when that runs."""
        if not self.plan.pipelined:
            return
        if not tf.executing_eagerly():
            with tf.device(HOST):
                self._apply_what_waits()
        elif self._pending.size():
            self._flush()

    def _pairing(self, name: str | None) -> Pairing:
        """That of the calls of one name."""
        if name not in self._pairings:
            with on_host():
                self._pairings[name] = Pairing(self.plan.topology.num_cores, self._engine.kinds)
        return self._pairings[name]

    def _open(self, tables: dict[str, HostedTable], kernels: Kernels) -> Engine:
        parts = [part for table in tables.values()
                 for parts in (table.rows, *table.slots.values()) for part in parts]
        flush = weakref.WeakMethod(self.flush)
        if not uses_native(kernels.choice):
            for number, part in enumerate(parts):
                part.attach(None, number, functools.partial(_before_read, None, flush))
            return StockEngine(self.plan, tables)
        handle = library.load().ete_open(**layout.attributes(self.plan, kernels.threads or 0))
        lease = _Lease(handle)
        for number, part in enumerate(parts):
            part.attach(handle, number, functools.partial(_before_read, lease, flush))
        return NativeEngine(self.plan, tables, handle, in_functions=True)

    def _apply_what_waits(self) -> tf.Tensor:
        """Applies the gradients of the step before, if there are any; gives 0."""
        return tf.cond(self._pending.size() > 0, self._apply_pending, lambda: tf.constant(0))

    def _apply_pending(self) -> tf.Tensor:
        step, rates, *tensors = self._pending.dequeue()
        features, at = self.plan.features, len(self._engine.kinds)
        packed, gradients = [], []
        for first in range(0, len(tensors), at + len(features)):
            of_core = tensors[first:first + at + len(features)]
            packed.append(of_core[:at])
            gradients.append({
                feature.name: tf.ensure_shape(values, self.plan.output_shape(feature))
                for feature, values in zip(features, of_core[at:])})
        by_table = tf.unstack(tf.ensure_shape(rates, [len(self.plan.tables)]))
        with tf.control_dependencies([self._engine.update(
                packed, gradients, dict(zip([table.name for table in self.plan.tables], by_table)),
                step)]):
            return tf.constant(0)


def _hosted(plan: Plan, name: str, variables: Mapping[str, Mapping[str, OwnedVariable]]
            ) -> HostedTable:
    """A table and its slots, which come in the order of the core's."""
    own = dict(variables[name])
    rows = own.pop(PARAMETERS)
    return HostedTable(plan.table(name), (rows,), {
        slot.suffix: (variable,) for slot, variable in zip(plan.slots(name), own.values())})


class _Lease:
    """Keeps an engine open for those who hold it: what computes, and variables that are read."""

    def __init__(self, handle: tf.Tensor):
        closer = weakref.finalize(self, _close, handle)
        closer.atexit = False  # TensorFlow may be gone then, and so is the memory soon.


def _close(handle: tf.Tensor) -> None:
    """Closes an engine at once, even where a function is being traced, which may hold locks."""
    with _tf.eager_mode():
        library.load().ete_close(handle)


def _before_read(lease: _Lease | None, flush: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Applies what waits, if the runtime still exists; gradients that wait end with it."""
    del lease  # Its holder needs it.
    function = flush()
    if function is not None:
        function()
