"""The native engine: looks up and updates rows on emulated hosts with the kernels of `native/`.

It serves any number of emulated hosts and cores in this process, or the rows of one host that is a
process of its own. The engine owns the memory of all
rows and slots, and the variables are views of it, so they show what the engine writes. An
assignment gives a variable a buffer of TensorFlow's instead. The engine takes its values over at
the beginning of the next run that looks up or updates.
"""

from __future__ import annotations

import collections
import itertools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.plan import Plan
from ..core.specs import FeatureSpec, Kernels
from ..errors import ConfigError, Problem
from ..native import library
from ..native.graph_variable import TableVariable, in_place
from ..native.plan_attributes import attributes, tables_of_parts
from ..ops import checks
from ..ops.checks import not_inlined
from .engine import Activations, CoreBatch, Engine, at_step, numbers_of_distinct, require_finite
from .operation_devices import PYTHON
from .placement import Placement, on
from .table_parts import HostedTable, create_tables, hosts_of_parts, parts_of, tables_at


class NativeEngine(Engine):
    """Executes a plan with native kernels. See `engine.Engine` for the verbs.

    The ids of one core and step are one int32 vector, grouped by sample and row.

    Attributes:
      handle: of the compiled engine, int64 scalar.
    """

    kernels = 'native'

    def __init__(self, plan: Plan, tables: dict[str, HostedTable], engine: tf.Tensor, *,
                 in_functions: bool = False, skips_nonfinite: bool = False):
        """Executes a plan.

        Args:
          tables: its tables, whose variables are or become views of the engine's memory.
          engine: the handle of the engine.
          in_functions: whether the verbs are called in functions, which may be executed many
            times each. Otherwise all is in the default graph.
          skips_nonfinite: see `engine_choice.choose_engine`.
        """
        self.plan = plan
        self.kinds = [tf.int32]
        self.tables = tables
        self._operations: Any = library.load()
        self.handle = engine
        self._parts = parts_of(tables)
        self._skips_nonfinite = skips_nonfinite
        # In a function, operations that take the same handles are executed in the order of the
        # program.
        self._handles = [part.handle for part in self._parts] if in_functions else []
        self._attached: tf.Tensor | None = None
        self._attached_in: AttachedIn | None = None
        self._take_all = self._take_parts
        if in_functions:
            self._attached_in = AttachedIn(self._handles)
            self._take_all = not_inlined(self._take_parts)
        else:
            with tf.init_scope(), tf.name_scope('attach'):
                self._attached = self._attach()

    def open(self) -> tf.Operation:
        return self.handle.op

    def load(self) -> tf.Operation:
        return self.now_attached().op

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        own = [batch[feature.name] for feature in self.plan.features]
        weights = [one.weights for one in own]
        return [self._operations.ete_group(
            engine=self.handle, samples=[one.samples for one in own],
            ids=[one.ids for one in own], weights=[one for one in weights if one is not None],
            weighted=[int(one is not None) for one in weights])]

    def rows_touched(self, packed: Sequence[Sequence[tf.Tensor]]) -> dict[str, tf.Tensor]:
        names = [feature.name for feature in self.plan.features]
        weighted = sum(bool(feature.weight_feature) for feature in self.plan.features)
        return numbers_of_distinct(self.plan, [dict(zip(names, self._operations.ete_ungroup(
            engine=self.handle, grouped=grouped, F=len(names), W=weighted).ids))
            for grouped, in packed])

    def lookup(self, packed: Sequence[tf.Tensor]) -> Activations:
        features = self.plan.features
        found = self._operations.ete_lookup(
            engine=self.now_attached(), grouped=packed[0], handles=self._handles,
            F=len(features))
        return {feature.name: self._shaped(feature, rows)
                for feature, rows in zip(features, found)}

    def update(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[Activations],
               rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
        names = [table.name for table in self.plan.tables]
        bad = tf.ensure_shape(self._operations.ete_update(
            engine=self.now_attached(), grouped=[grouped for grouped, in packed],
            gradients=[gradient[feature.name] for gradient in gradients
                       for feature in self.plan.features],
            rates=tf.stack([rates[name] for name in names]), handles=self._handles),
            [len(names)])
        with tf.control_dependencies([bad]):
            # In a function nothing writes a variable between the two.
            required = [] if self._attached is None else [self.require_attached(step)]
            if not self._skips_nonfinite:
                required.append(require_finite(names, bad, step))
        with tf.control_dependencies(required):
            return bad > 0

    def _shaped(self, feature: FeatureSpec, rows: tf.Tensor) -> tf.Tensor:
        """Gives the rows of a core's samples the shape of a feature's activation."""
        shape = self.plan.output_shape(feature)
        if len(shape) != 2:
            return tf.reshape(rows, shape)
        rows.set_shape(shape)  # The kernel makes it; no node of the graph is needed.
        return rows

    def now_attached(self) -> tf.Tensor:
        """Returns the engine's handle, once every variable is a view of its memory, at this place.

        A graph has this once, so a run that looks up for many cores checks once. A function has
        it again only where it may have written a variable in between.
        """
        if self._attached_in is None:
            return self._attached
        found = self._attached_in.find()
        if found is None:
            found = self._attach()
            self._attached_in.note(found)
        return found

    def _attach(self) -> tf.Tensor:
        detached = self._operations.ete_detached(
            engine=self.handle, values=[in_place(part.handle) for part in self._parts])
        done = tf.cond(detached >= 0, self._take_all, lambda: tf.constant(True))
        with tf.control_dependencies([done]):
            return tf.identity(self.handle)

    def _take_parts(self) -> tf.Tensor:
        """Takes the values of all variables over.

        The parts are taken over one after another, so at most one of them exists twice. The engine
        knows the value before the variable gets its view. So all reads give that value, and a run
        that ends halfway loses nothing.
        """
        last: list[tf.Operation] = []
        for number, part in enumerate(self._parts):
            with tf.control_dependencies(last):
                value = in_place(part.handle)
                view = self._operations.ete_view(
                    engine=self.handle, value=value, part=number)
                assigned = tf.raw_ops.AssignVariableOp(resource=part.handle, value=view)
            # Afterwards, because then only `value` holds the former buffer.
            with tf.control_dependencies([assigned]):
                last = [self._operations.ete_take(
                    engine=self.handle, value=value, part=number).op]
        with tf.control_dependencies(last):
            return tf.constant(True)

    def require_attached(self, step: tf.Tensor) -> tf.Operation:
        """Fails if a variable was assigned during the step, so that the update did not see it."""
        detached = self._operations.ete_detached(engine=self.handle, values=[
            tf.raw_ops.ReadVariableOp(resource=part.handle, dtype=tf.float32)
            for part in self._parts])
        names = tf.constant([f'table "{name}"' for name in tables_of_parts(self.plan)])
        return checks.require(detached < 0, Problem(
            'E476', '', 'its variable must not be written while a step runs',
            remedy='Assign to it between two steps, in a run of its own.'),
            got=at_step(step, tf.constant('another value')), where=names[tf.maximum(detached, 0)])


def make_engine(plan: Plan, variable_names: Mapping[str, str],
                slot_names: Mapping[str, Sequence[str]] | None, *, skips_nonfinite: bool = False,
                kernels: Kernels = Kernels()) -> NativeEngine:
    """Creates the tables of a plan and one engine for all hosts.

    Args:
      variable_names, slot_names, skips_nonfinite: see `engine_choice.choose_engine`.
      kernels: the threads of the engine, and where it has its tables.
    """
    engine = _engine(plan, kernels, 'embedding_engine')
    tables = _create_views(plan, variable_names, slot_names, dict.fromkeys(
        range(plan.topology.num_hosts), engine), in_pieces=kernels.memory is not None)
    return NativeEngine(plan, tables, engine, skips_nonfinite=skips_nonfinite)


def make_engines(plan: Plan, variable_names: Mapping[str, str],
                 slot_names: Mapping[str, Sequence[str]] | None, placement: Placement, *,
                 kernels: Kernels = Kernels()
                 ) -> tuple[dict[str, HostedTable], dict[int, NativeEngine]]:
    """Creates the tables of a plan and an engine for each host that holds rows, on its device."""
    owners, made = plan.plans_of_owners(), {}
    for host, own in owners.items():
        with on(placement.host(host)):
            made[host] = _engine(own, kernels, f'embedding_engine_{host}')
    tables = _create_views(plan, variable_names, slot_names, made, placement,
                           in_pieces=kernels.memory is not None)
    engines = {}
    for host, own in owners.items():
        with on(placement.host(host)):
            # All hosts agree on gradients before; see `per_host.py`.
            engines[host] = NativeEngine(own, tables_at(own, tables, host), made[host],
                                         skips_nonfinite=True)
    return tables, engines


def _engine(plan: Plan, kernels: Kernels, name: str) -> tf.Tensor:
    # One node, outside of loops and functions: each session has one engine.
    with tf.init_scope():
        return library.load().ete_engine(
            name=name, **attributes(plan, kernels.threads or 0, kernels.memory))


def _create_views(plan: Plan, variable_names: Mapping[str, str],
                  slot_names: Mapping[str, Sequence[str]] | None, engines: Mapping[int, tf.Tensor],
                  placement: Placement | None = None, *, in_pieces: bool = False
                  ) -> dict[str, HostedTable]:
    """Creates tables whose variables are views of the engine of their host.

    It fails unless the user's variable creators make each variable exactly once. With `in_pieces`
    they get their values piece by piece where that is possible; see `TableVariable`.
    """
    numbers: dict[int, Iterator[int]] = collections.defaultdict(itertools.count)
    # The engine of each part, and its number there.
    places = [(engines[host], next(numbers[id(engines[host])])) for host in hosts_of_parts(plan)]
    following = itertools.chain(places, itertools.repeat((places[-1][0], len(places))))

    def creator(_: Any, **kwargs: Any) -> TableVariable:
        # The first two arguments belong to variables without a handle. A value cached on a device
        # would be a plain read, which shares the engine's memory with its consumers.
        ignored = {'use_resource', 'expected_shape', 'caching_device'}
        engine, part = next(following)
        return TableVariable(engine=engine, part=part, in_pieces=in_pieces, **{
            name: value for name, value in kwargs.items() if name not in ignored})

    with _tf.last_creator_scope(creator):
        tables = create_tables(plan, variable_names, slot_names, placement)
    for (_, number), part in zip(places, parts_of(tables)):
        if not isinstance(part, TableVariable) or part.number != number:
            raise ConfigError(Problem(
                'E477', f'variable "{part.name}" of a table',
                'a variable_creator_scope must call its next_creator once, and give what '
                'that makes', f'{type(part).__name__} instead of part {number} of the engine',
                "Build the estimator's graph outside of it, or choose kernels='stock'."))
    return tables


_HARMLESS = ('ReadVariableOp', 'DisableCopyOnRead', 'VariableShape', 'EteLookup', 'EteUpdate')
"""The operations that read tables, or write the memory of the engine."""


class _Place(NamedTuple):
    attached: str
    takers: int


class AttachedIn:
    """The last place of each function at which all variables of an engine were attached.

    To attach variables takes several operations per variable, and a step has a lookup per replica
    and an update. Between them, most functions write no table. Whether one does is seen from the
    operations that take the handles of variables: calls, loops and conditions that write take them
    too. Python functions in a graph may write any variable. Nobody sees what a dataset or a call
    within a call writes by Python.
    """

    def __init__(self, handles: Sequence[tf.Tensor]):
        self._handles = handles
        # By name, because a tensor would keep its graph.
        self._places: weakref.WeakKeyDictionary[tf.Graph, _Place] = weakref.WeakKeyDictionary()

    def note(self, attached: tf.Tensor) -> None:
        """Notes that variables are attached here in the function that is being traced."""
        graph = tf.get_default_graph()
        takers = self._takers(graph)
        # Nobody sees who takes another name of a handle.
        if not any(output.dtype == tf.resource for taker in takers for output in taker.outputs):
            self._places[graph] = _Place(attached.name, len(takers))

    def find(self) -> tf.Tensor | None:
        """Returns what was noted last in this function, if nothing since can have written."""
        graph = tf.get_default_graph()
        place = self._places.get(graph)
        if place is None or len(self._takers(graph)) > place.takers:
            return None
        return graph.get_tensor_by_name(place.attached)

    def _takers(self, graph: tf.Graph) -> list[tf.Operation]:
        """Returns the operations of a function that may write a variable."""
        return [*(operation for handle in self._handles
                  for operation in graph.capture(handle).consumers()
                  if operation.type not in _HARMLESS),
                # They take no handles.
                *(operation for operation in graph.get_operations()
                  if operation.type in PYTHON)]
