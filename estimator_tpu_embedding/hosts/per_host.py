"""An engine made of one owner per host: cores and owners exchange ids, sums and gradients.

The hosts may be tasks of a cluster. A core splits its ids by owners. Each owner sums the rows that
it holds, and the core adds the sums in the order of hosts. Gradients go the other way. No owner
writes before all have examined their gradients, so all refuse a step or none does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..native import library
from ..ops import packing
from . import exchange
from .backend import Activations, CoreBatch, require_finite
from .native_engine import NativeEngine
from .placement import Placement, on
from .table_parts import HostedTable


class Examined(NamedTuple):
    """The gradients of an update, examined before anything is written.

    Attributes:
      nonfinite: int32 `[tables]`, how many elements of each table's gradients are not finite.
      write: the learning rates by table -> a bool scalar; evaluating it makes the update.
    """

    nonfinite: tf.Tensor
    write: Callable[[Mapping[str, tf.Tensor]], tf.Tensor]


class Owner:
    """Holds the rows of one host, on its device: an engine that messages of `exchange` reach.

    It looks up the ids of a message, and sends sums back. For an update it gets gradients of the
    same groups. It refuses a message that is none, whatever is in it.
    """

    def __init__(self, engine: NativeEngine):
        self.plan = engine.plan
        self.kinds = [tf.int32, tf.int32]  # Grouped ids; how many samples each feature has.
        self.open, self.load = engine.open, engine.load
        self._engine = engine

    def pack(self, message: tf.Tensor) -> list[tf.Tensor]:
        """Returns the ids of a message in the form of this owner."""
        return list(library.load().ete_group_message(engine=self._engine.handle, message=message))

    def rows_touched(self, packed: Sequence[Sequence[tf.Tensor]]) -> dict[str, tf.Tensor]:
        """Returns for each table how many of this owner's rows all cores looked up."""
        return self._engine.rows_touched([[grouped] for grouped, _ in packed])

    def lookup(self, packed: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns the sums of the ids that `pack` gave."""
        grouped, lengths = packed
        sums = library.load().ete_lookup_parts(
            engine=self._engine.now_attached(), grouped=grouped, lengths=lengths, handles=[])
        sums.set_shape([None])  # So that it can be packed with others.
        return sums

    def examine(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[tf.Tensor],
                step: tf.Tensor) -> Examined:
        """Examines the gradients of all cores before anything is written."""
        names = [table.name for table in self.plan.tables]
        parts = {'grouped': [grouped for grouped, _ in packed],
                 'lengths': [lengths for _, lengths in packed], 'parts': list(gradients)}

        def write(rates: Mapping[str, tf.Tensor]) -> tf.Tensor:
            done = library.load().ete_update_parts(
                engine=self._engine.now_attached(), rates=tf.stack([rates[name] for name in names]),
                counted=[0], handles=[], **parts)  # Who calls this has seen all counts.
            with tf.control_dependencies([done]):
                attached = self._engine.require_attached(step)
            with tf.control_dependencies([attached]):
                return tf.constant(True)

        nonfinite = library.load().ete_count_parts(engine=self._engine.handle, **parts)
        return Examined(tf.ensure_shape(nonfinite, [len(names)]), write)


class PerHostEngine:
    """Executes a plan by owners. See `backend.Engine` for the verbs.

    The packed tensors are what a core keeps, then what each owner keeps; see `places`.
    """

    kernels = 'native'

    def __init__(self, plan: Plan, tables: dict[str, HostedTable], owners: Mapping[int, Owner],
                 placement: Placement, *, skips_nonfinite: bool = False):
        """Executes a plan in the default graph by the owner of each host that holds rows."""
        self.plan, self.tables, self.placement = plan, tables, placement
        self._exchange = exchange.Exchange.of(plan)
        self._owners = dict(sorted(owners.items()))
        self._skips_nonfinite = skips_nonfinite
        self._kept = len(owners) + 1
        self.kinds = [tf.int32] * len(owners) + [tf.float32] + [
            kind for owner in self._owners.values() for kind in owner.kinds]

    def open(self) -> tf.Operation:
        return tf.group(*[owner.open() for owner in self._owners.values()])

    def load(self) -> tf.Operation:
        return tf.group(*[owner.load() for owner in self._owners.values()])

    def places(self, core: int) -> list[str]:
        """Returns the device of each packed tensor of a core: the core's or an owner's."""
        return [self.placement.core(core)] * self._kept + [
            self.placement.host(host) for host, owner in self._owners.items()
            for _ in owner.kinds]

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        split = exchange.split(self._exchange, batch)
        packed = [*split.links, split.scales]
        for (host, owner), message in zip(self._owners.items(), split.messages):
            with on(self.placement.host(host)):
                packed += owner.pack(message)
        return packed

    def rows_touched(self, packed: Sequence[Sequence[tf.Tensor]]) -> dict[str, tf.Tensor]:
        found: dict[str, list[tf.Tensor]] = {table.name: [] for table in self.plan.tables}
        by_core = [self._parts_of(of_core)[2] for of_core in packed]
        for (host, owner), parts in zip(self._owners.items(), zip(*by_core)):
            with on(self.placement.host(host)):
                for name, count in owner.rows_touched(parts).items():
                    found[name].append(count)
        return {name: tf.add_n(counts) for name, counts in found.items()}

    def lookup(self, packed: Sequence[tf.Tensor]) -> Activations:
        links, scales, parts = self._parts_of(packed)
        sums = []
        for (host, owner), own in zip(self._owners.items(), parts):
            with on(self.placement.host(host)):
                sums.append(owner.lookup(own))
        merged = exchange.merge(self._exchange, sums, links, scales)
        return {feature.name: merged[feature.name] for feature in self.plan.features}

    def update(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[Activations],
               rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
        spread, kept = [], []
        for core, (of_core, gradient) in enumerate(zip(packed, gradients)):
            links, scales, parts = self._parts_of(of_core)
            with on(self.placement.core(core)):
                spread.append(exchange.spread(self._exchange, gradient, links, scales))
            kept.append(parts)
        examined, own_rates = {}, {}
        for number, (host, owner) in enumerate(self._owners.items()):
            own_rates[host], own_step = self._sent(host, rates, step)
            with on(self.placement.host(host)):
                # Copies here: what a condition reads from elsewhere crosses once more for it.
                examined[host] = owner.examine([parts[number] for parts in kept], [
                    tf.identity(parts[number]) for parts in spread], own_step)
        bad = self._counted({host: one.nonfinite for host, one in examined.items()})
        names = [table.name for table in self.plan.tables]
        required = [] if self._skips_nonfinite else [require_finite(names, bad, step)]
        with tf.control_dependencies(required):
            accepted = tf.reduce_all(tf.equal(bad, 0))
        done = [self._written(host, one, own_rates[host], accepted)
                for host, one in examined.items()]
        with tf.control_dependencies(done):
            return bad > 0

    def _written(self, host: int, examined: Examined, rates: Mapping[str, tf.Tensor],
                 accepted: tf.Tensor) -> tf.Tensor:
        """Lets an owner write if all have accepted; returns whether it did."""
        with on(self.placement.host(host)):
            return tf.cond(tf.identity(accepted), lambda: examined.write(rates),
                           lambda: tf.constant(False))

    def _sent(self, host: int, rates: Mapping[str, tf.Tensor], step: tf.Tensor
              ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Sends an owner the rates of its tables and the step, in one message."""
        names = [table.name for table in self._owners[host].plan.tables]
        # A step that has waited in a queue has lost its shape.
        facts = [tf.ensure_shape(tf.cast(step, tf.int64), []), *[rates[name] for name in names]]
        message = packing.pack(facts)
        with on(self.placement.host(host)):
            own_step, *arrived = packing.unpack(tf.identity(message), facts)
            return dict(zip(names, arrived)), own_step

    def _parts_of(self, packed: Sequence[tf.Tensor]
                  ) -> tuple[list[tf.Tensor], tf.Tensor, list[list[tf.Tensor]]]:
        """Returns the links, the scales, and what each owner keeps."""
        *links, scales = packed[:self._kept]
        rest = iter(packed[self._kept:])
        return links, scales, [[next(rest) for _ in owner.kinds]
                               for owner in self._owners.values()]

    def _counted(self, by_host: Mapping[int, tf.Tensor]) -> tf.Tensor:
        """Adds up counts per table of owners: int32, one per table of the plan."""
        totals = tf.zeros([len(self.plan.tables)], tf.int32)
        for host, counts in by_host.items():
            numbers = [self.plan.table_index(table.name)
                       for table in self._owners[host].plan.tables]
            totals = tf.tensor_scatter_nd_add(totals, [[number] for number in numbers], counts)
        return totals
