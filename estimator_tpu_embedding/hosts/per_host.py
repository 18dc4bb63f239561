"""An engine made of one owner per host: cores and owners exchange ids, sums and gradients.

The hosts may be tasks of a cluster, and each owns its rows. A core splits its ids by owners. Each
owner sums the rows that it holds, and the core adds the sums in the order of hosts. Gradients go
the other way. No owner writes before all have examined their gradients, so all refuse a step or
none does.

Features travel in *exchange order*: sorted by the width of their rows, otherwise in the order of
the plan. An owner sums the ids of a *group*. That is a sample, or a distinct row if rows are fewer,
for each feature, owner and step by itself. For example, 2 samples with the ids [5, 7] and [5] are
2 samples and 2 rows, so they go by sample. With [5] and [5] they are 2 samples and 1 row, so they
go by row. `native/src/message.h` has the form of a message to an owner. `native/src/exchange.h` has
that of what the core keeps: the *links* between groups and samples, and the *scales* of samples.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..native import library
from ..native.plan_attributes import layout_attributes
from ..ops import packing
from ..ops.ids import IdBatch
from .engine import Activations, CoreBatch, require_finite
from .native_engine import NativeEngine
from .placement import Placement, on
from .table_parts import HostedTable


class Split(NamedTuple):
    """The ids of one core and step, split by owners.

    Attributes:
      messages: to each owner, int32.
      links: of each owner, int32.
      scales: of the samples, float32.
    """

    messages: list[tf.Tensor]
    links: list[tf.Tensor]
    scales: tf.Tensor


def split(plan: Plan, batch: Mapping[str, IdBatch], num_owners: int) -> Split:
    """Splits the ids of one core; refuses ids beyond a table."""
    features = plan.features_by_width()
    own = [batch[feature.name] for feature in features]
    messages, links, scales = library.load().ete_split(
        samples=[one.samples for one in own], ids=[one.ids for one in own],
        weights=[tf.ones_like(one.ids, tf.float32) if one.weights is None else one.weights
                 for feature, one in zip(features, own) if feature.weight_feature],
        H=num_owners, **layout_attributes(plan, features))
    return Split([_vector(each) for each in messages], [_vector(each) for each in links],
                 _vector(scales))


def merge(plan: Plan, sums: Sequence[tf.Tensor], links: Sequence[tf.Tensor], scales: tf.Tensor
          ) -> dict[str, tf.Tensor]:
    """Returns the activations of a core: the sums of owners, added in their order, then scaled."""
    features = plan.features_by_width()
    merged = library.load().ete_merge(
        sums=sums, links=links, scales=scales, F=len(features), **layout_attributes(plan, features))
    return {feature.name: tf.reshape(one, plan.output_shape(feature))
            for feature, one in zip(features, merged)}


def spread(plan: Plan, gradients: Mapping[str, tf.Tensor], links: Sequence[tf.Tensor],
           scales: tf.Tensor) -> list[tf.Tensor]:
    """Returns for each owner the gradients of the activations of a core, scaled and flat."""
    features = plan.features_by_width()
    return [_vector(each) for each in library.load().ete_spread(
        gradients=[gradients[feature.name] for feature in features],
        links=links, scales=scales, **layout_attributes(plan, features))]


def _vector(tensor: tf.Tensor) -> tf.Tensor:
    """Tells TensorFlow that a tensor is a vector, so that it can be packed with others."""
    tensor.set_shape([None])
    return tensor


class PerHostEngine:
    """Executes a plan by an engine per host, the owners. See `engine.Engine` for the verbs.

    The packed tensors are what a core keeps, then what each owner keeps; see `places`. An owner
    keeps the grouped ids of its message, and how many samples each feature has. It refuses a
    message that is none, whatever is in it.
    """

    kernels = 'native'

    def __init__(self, plan: Plan, tables: dict[str, HostedTable],
                 owners: Mapping[int, NativeEngine], placement: Placement, *,
                 skips_nonfinite: bool = False):
        """Executes a plan in the default graph by the owner of each host that holds rows."""
        self.plan, self.tables, self.placement = plan, tables, placement
        self._owners = dict(sorted(owners.items()))
        self._skips_nonfinite = skips_nonfinite
        self._kept = len(owners) + 1
        self.kinds = [tf.int32] * len(owners) + [tf.float32] + [tf.int32, tf.int32] * len(owners)

    def open(self) -> tf.Operation:
        return tf.group(*[owner.open() for owner in self._owners.values()])

    def load(self) -> tf.Operation:
        return tf.group(*[owner.load() for owner in self._owners.values()])

    def places(self, core: int) -> list[str]:
        """Returns the device of each packed tensor of a core: the core's or an owner's."""
        return [self.placement.core(core)] * self._kept + [
            self.placement.host(host) for host in self._owners for _ in range(2)]

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        messages, links, scales = split(self.plan, batch, len(self._owners))
        packed = [*links, scales]
        for (host, owner), message in zip(self._owners.items(), messages):
            with on(self.placement.host(host)):
                packed += library.load().ete_group_message(engine=owner.handle, message=message)
        return packed

    def rows_touched(self, packed: Sequence[Sequence[tf.Tensor]]) -> dict[str, tf.Tensor]:
        found: dict[str, list[tf.Tensor]] = {table.name: [] for table in self.plan.tables}
        by_core = [self._parts_of(of_core)[2] for of_core in packed]
        for (host, owner), parts in zip(self._owners.items(), zip(*by_core)):
            with on(self.placement.host(host)):
                for name, count in owner.rows_touched([[grouped] for grouped, _ in parts]).items():
                    found[name].append(count)
        return {name: tf.add_n(counts) for name, counts in found.items()}

    def lookup(self, packed: Sequence[tf.Tensor]) -> Activations:
        links, scales, parts = self._parts_of(packed)
        sums = []
        for (host, owner), (grouped, lengths) in zip(self._owners.items(), parts):
            with on(self.placement.host(host)):
                sums.append(_vector(library.load().ete_lookup_parts(
                    engine=owner.now_attached(), grouped=grouped, lengths=lengths, handles=[])))
        merged = merge(self.plan, sums, links, scales)
        return {feature.name: merged[feature.name] for feature in self.plan.features}

    def update(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[Activations],
               rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
        sent, kept = [], []
        for core, (of_core, gradient) in enumerate(zip(packed, gradients)):
            links, scales, parts = self._parts_of(of_core)
            with on(self.placement.core(core)):
                sent.append(spread(self.plan, gradient, links, scales))
            kept.append(parts)
        counts, updates = {}, {}
        for number, (host, owner) in enumerate(self._owners.items()):
            own_rates, own_step = self._sent(host, rates, step)
            with on(self.placement.host(host)):
                grouped, lengths = zip(*[parts[number] for parts in kept])
                # Copies here: what a condition reads from elsewhere crosses once more for it.
                own = {'grouped': grouped, 'lengths': lengths,
                       'parts': [tf.identity(parts[number]) for parts in sent]}
                counts[host] = tf.ensure_shape(library.load().ete_count_parts(
                    engine=owner.handle, **own), [len(owner.plan.tables)])
                updates[host] = functools.partial(_write, owner, own, own_rates, own_step)
        bad = self._counted(counts)
        names = [table.name for table in self.plan.tables]
        required = [] if self._skips_nonfinite else [require_finite(names, bad, step)]
        with tf.control_dependencies(required):
            accepted = tf.reduce_all(tf.equal(bad, 0))
        done = []
        for host, write in updates.items():
            with on(self.placement.host(host)):
                done.append(tf.cond(tf.identity(accepted), write, lambda: tf.constant(False)))
        with tf.control_dependencies(done):
            return bad > 0

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
                  ) -> tuple[list[tf.Tensor], tf.Tensor, list[tuple[tf.Tensor, tf.Tensor]]]:
        """Returns the links, the scales, and what each owner keeps."""
        *links, scales = packed[:self._kept]
        rest = iter(packed[self._kept:])
        return links, scales, list(zip(rest, rest))

    def _counted(self, by_host: Mapping[int, tf.Tensor]) -> tf.Tensor:
        """Adds up counts per table of owners: int32, one per table of the plan."""
        totals = tf.zeros([len(self.plan.tables)], tf.int32)
        for host, counts in by_host.items():
            numbers = [self.plan.table_index(table.name)
                       for table in self._owners[host].plan.tables]
            totals = tf.tensor_scatter_nd_add(totals, [[number] for number in numbers], counts)
        return totals


def _write(owner: NativeEngine, own: Mapping[str, Sequence[tf.Tensor]],
           rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
    """Changes rows of an owner; evaluating the result, `True`, does so. All counts were seen."""
    done = library.load().ete_update_parts(
        engine=owner.now_attached(), counted=[0], handles=[],
        rates=tf.stack([rates[table.name] for table in owner.plan.tables]), **own)
    with tf.control_dependencies([done]):
        attached = owner.require_attached(step)
    with tf.control_dependencies([attached]):
        return tf.constant(True)
