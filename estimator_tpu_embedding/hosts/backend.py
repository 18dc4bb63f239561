"""The verbs with which a step reaches its tables: those of an engine and those of its backend.

An engine holds tables and computes. A backend adds the queues in which ids wait, the global step
and the learning rates. The runner talks to backends, and `midlevel/` to engines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow.compat.v1 as tf

from ..core.learning_rates import DynamicRate
from ..core.plan import Plan
from ..errors import ConfigError, Problem
from ..ops import checks
from ..ops.ids import IdBatch
from .placement import Placement, on
from .table_parts import HostedTable

QUEUE_CAPACITY = 2
"""Steps whose ids and features may wait per core: one is handed over while one is ready."""

CoreBatch = Mapping[str, IdBatch]
"""The ids of every feature of the plan, for one core and one step."""

Activations = dict[str, tf.Tensor]
"""Per feature of the plan, in its order: float32 of `plan.output_shape(feature)`."""


class LookupReceipt(NamedTuple):
    """Links a lookup to the update that belongs to it.

    The hardware pairs the two by the order of a queue, and a missed pair hangs. As a value the
    pair is visible: the graph of a step says which gradients belong to which ids.

    Attributes:
      step: int64 scalar, the global step at the time of the lookup.
      packed: the ids that were looked up, as packed by the engine: tensors of the dtypes `kinds`
        and of any lengths. Only that engine looks inside.
      activations: the result of the lookup. An update waits for all of it.
    """

    step: tf.Tensor
    packed: tuple[tf.Tensor, ...]
    activations: Activations


class Engine(Protocol):
    """Holds the tables of one plan, and computes.

    In graph mode each verb returns tensors or operations to be run. An engine has no queue and no
    step, and it is given its learning rates.

    Attributes:
      plan: the plan.
      kernels: what computes, `'native'` or `'stock'`.
      kinds: the dtypes of the packed ids of one core and step.
      tables: the variables, by table name.
    """

    plan: Plan
    kernels: str
    kinds: list[tf.DType]
    tables: dict[str, HostedTable]

    @property
    def placement(self) -> Placement:
        """The devices of cores and hosts; none at all unless an engine says more."""
        return Placement(self.plan.topology)

    def places(self, core: int) -> list[str]:
        """Returns the device of each packed tensor of a core, in the order of `kinds`."""
        return [self.placement.core(core)] * len(self.kinds)

    def open(self) -> tf.Operation:
        """Makes the engine ready; run once per session before anything else."""

    def load(self) -> tf.Operation:
        """Loads the host variables into the engine; run after they were initialised or restored."""

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        """Returns the ids of one step of one core in the engine's own form, of dtypes `kinds`.

        A feature that the plan weights may have weights in one batch and none in the next. The
        native engine allows that for every feature.
        """

    def rows_touched(self, packed: Sequence[Sequence[tf.Tensor]]) -> dict[str, tf.Tensor]:
        """Returns for each table how many rows all cores looked up, each once: int32 scalars.

        The native engine requires that no feature was packed with weights that the plan does not
        weight.
        """

    def lookup(self, packed: Sequence[tf.Tensor]) -> Activations:
        """Returns the activations of one core, whose ids `pack` gave."""

    def update(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[Activations],
               rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
        """Changes the rows that were looked up, as `Backend.update` does.

        Args:
          packed: for each core the result of `pack`.
          gradients: for each core the gradients of its activations.
          rates: the learning rate of each table: float32 scalars that are known to be legal.
          step: int64 scalar, for messages.
        """


class PlacedQueue:
    """One FIFO queue per device that elements have a tensor on; together they behave as one.

    A tensor crosses to its device when it is enqueued. So it is there when a step takes it.
    """

    def __init__(self, capacity: int, kinds: Any, places: Any, name: str,
                 shapes: Sequence[tf.TensorShape] | None = None):
        """Makes the queues, in the default graph or eagerly.

        Args:
          kinds: the dtypes of the tensors of an element, in the structure that elements have.
          places: the device of each tensor, in such a structure; `''` is the current one.
          shapes: of the tensors, flat; `None` if they vary, as those of ids do.
        """
        self._structure = kinds
        flat, places = tf.nest.flatten(kinds), tf.nest.flatten(places)
        self._numbers = {place: [number for number, each in enumerate(places) if each == place]
                         for place in dict.fromkeys(places)}
        self._queues = {}
        for place, numbers in self._numbers.items():
            with on(place):
                self._queues[place] = tf.queue.FIFOQueue(
                    capacity, [flat[number] for number in numbers],
                    None if shapes is None else [shapes[number] for number in numbers], name=name)

    def enqueue(self, element: Any) -> tf.Operation:
        """Appends an element; waits while the queue is full."""
        tf.nest.assert_same_structure(self._structure, element, check_types=False)
        tensors, done = tf.nest.flatten(element), []
        for place, queue in self._queues.items():
            with on(place):
                done.append(queue.enqueue([tensors[number] for number in self._numbers[place]]))
        return done[0] if len(done) == 1 else tf.group(*done)

    def dequeue(self) -> Any:
        """Takes the oldest element; waits for it."""
        tensors: dict[int, tf.Tensor] = {}
        for place, queue in self._queues.items():
            with on(place):
                found = tf.nest.flatten(queue.dequeue())
            tensors.update(zip(self._numbers[place], found))
        return tf.nest.pack_sequence_as(
            self._structure, [tensors[number] for number in range(len(tensors))])

    def size(self) -> tf.Tensor:
        """Returns how many elements wait, an int32 scalar."""
        return next(iter(self._queues.values())).size()

    def close(self) -> tf.Operation:
        """Ends every wait."""
        return tf.group(*[queue.close(cancel_pending_enqueues=True)
                          for queue in self._queues.values()])


class Backend:
    """Executes the steps of the plan of an engine: hands ids over, looks up, updates."""

    def __init__(self, engine: Engine, global_step: tf.Variable | tf.Tensor):
        """Makes a queue per core in the default graph, which must hold the engine too.

        `global_step` is the argument of dynamic learning rates.
        """
        self.engine, self.plan, self.tables = engine, engine.plan, engine.tables
        self._global_step = global_step
        self._queues = [PlacedQueue(QUEUE_CAPACITY, engine.kinds, engine.places(core),
                                    f'ids_of_core_{core}')
                        for core in range(self.plan.topology.num_cores)]

    def enqueue(self, batch: CoreBatch, *, core: int) -> tf.Operation:
        """Hands the ids of one step of `core` to the engine; blocks when full."""
        return self._queues[core].enqueue(self.engine.pack(batch))

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        """Takes the oldest pending ids of `core`, and returns their activations."""
        step = tf.identity(self._global_step)
        with tf.control_dependencies([step]):
            packed = self._queues[core].dequeue()
        with on(self.engine.placement.core(core)):
            activations = self.engine.lookup(packed)
        return activations, LookupReceipt(step, tuple(packed), activations)

    def rows_touched(self, receipts: Sequence[LookupReceipt]) -> dict[str, tf.Tensor]:
        """Returns for each table how many rows a step looked up; see `Engine.rows_touched`."""
        return self.engine.rows_touched([receipt.packed for receipt in receipts])

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        """Changes the rows that were looked up.

        The gradients of all tables are examined before any table is written.

        Args:
          receipts: one per core, of the same step; each may be used once.
          gradients: for each receipt the gradients of its activations. The gradients of a row are
            summed over all cores before its one update, so they come together. Without
            accumulation they are summed for each core, and the row is updated core by core.

        Returns:
          bool `[tables]`: whether the gradients of each table of the plan were refused because
          they are not finite. If one is true, no table was changed. An engine that fails instead
          gives false for all. Evaluating this tensor makes the update.
        """
        step = receipts[0].step
        return self.engine.update([receipt.packed for receipt in receipts],
                                  self._after_lookups(receipts, gradients),
                                  self._legal_rates(step), step)

    def retrieve(self) -> tf.Operation:
        """Writes the engine's values to the host variables; run before they are read."""
        return tf.no_op()

    def close(self) -> tf.Operation:
        """Ends every wait for ids, in `enqueue` and in `lookup`."""
        return tf.group(*[queue.close() for queue in self._queues])

    def _after_lookups(self, receipts: Sequence[LookupReceipt],
                       gradients: Sequence[Activations]) -> list[Activations]:
        """Returns gradients that exist when their core has looked up.

        An engine writes when it has the gradients of all cores. So no task of a cluster has to tell
        others that all look-ups are done, which would take two messages more, one after the other.
        """
        found = []
        for core, (receipt, of_core) in enumerate(zip(receipts, gradients)):
            with on(self.engine.placement.core(core)), tf.control_dependencies(
                    [tf.group(*receipt.activations.values())]):
                values = tf.identity_n(list(of_core.values())) if of_core else []
                found.append(dict(zip(of_core, values)))
        return found

    def _legal_rates(self, step: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the learning rates of a step, once it is known that they are legal."""
        rates = rates_at(self.plan, step)
        with tf.control_dependencies([require_rates(self.plan, rates, step)]):
            return {name: tf.identity(rate) for name, rate in rates.items()}


def vector_kinds(plan: Plan) -> list[tf.DType]:
    """Returns the dtypes of the tensors that `to_vectors` gives."""
    return [kind for feature in plan.features for kind in (
        tf.int32, tf.int64, *([tf.float32] if feature.weight_feature else ()))]


def to_vectors(plan: Plan, batch: CoreBatch) -> list[tf.Tensor]:
    """Returns a batch as flat vectors, which is the stock engine's form of it.

    For each feature they are its samples, its ids, and, if the plan weights it, its weights: 1 for
    each id if the batch has none. Weights that the plan does not have are a ValueError.
    """
    tensors = []
    for feature in plan.features:
        samples, ids, _, weights = batch[feature.name]
        tensors += [samples, ids]
        if feature.weight_feature:
            tensors.append(tf.ones_like(ids, tf.float32) if weights is None else weights)
        elif weights is not None:
            raise ValueError(f'The plan has no weights for feature "{feature.name}".')
    return tensors


def from_vectors(plan: Plan, tensors: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
    """Returns the batch that was packed; a tensor of unknown rank is checked to be a vector."""
    vectors = iter([tensor if tensor.shape.rank == 1 else tf.ensure_shape(tensor, [None])
                    for tensor in tensors])
    return {feature.name: IdBatch(
        next(vectors), next(vectors),
        plan.num_samples(feature),
        next(vectors) if feature.weight_feature else None) for feature in plan.features}


def numbers_of_distinct(plan: Plan, ids: Sequence[Mapping[str, tf.Tensor]]
                        ) -> dict[str, tf.Tensor]:
    """Returns for each table how many ids all cores have, each once; `ids` are by core, feature."""
    return {table.name: tf.size(tf.unique(tf.concat(
        [of_core[feature.name] for of_core in ids for feature in plan.features_of(table.name)],
        0)).y) for table in plan.tables}


def rates_at(plan: Plan, step: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns the learning rate of each table at `step`, float32 scalars by name.

    A function that several tables share is called once. It must return a scalar; the original
    refuses anything else too.
    """
    values: dict[object, tf.Tensor] = {}
    for table in plan.tables:
        rate = plan.rate(table.name)
        if rate not in values:
            values[rate] = (_rate_at(step, rate, table.name) if isinstance(rate, DynamicRate)
                            else tf.constant(rate.value, tf.float32))
    return {table.name: values[plan.rate(table.name)] for table in plan.tables}


def require_rates(plan: Plan, rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Operation:
    """Fails if a dynamic rate is not a finite number >= 0."""
    dynamic = [name for name in rates if isinstance(plan.rate(name), DynamicRate)]
    if not dynamic:
        return tf.no_op()
    values = tf.stack([rates[name] for name in dynamic])
    return checks.require_of_tables(
        dynamic, ~(tf.math.is_finite(values) & (values >= 0)), Problem(
            'E421', '', 'the learning rate must be a finite number >= 0',
            remedy='Look at the learning_rate_fn of its columns.'),
        got=lambda first: at_step(step, tf.strings.as_string(values[first])))


def require_finite(tables: Sequence[str], bad: tf.Tensor, step: tf.Tensor) -> tf.Operation:
    """Fails if gradients are not finite: no later step could repair the rows they would give.

    `bad` counts the elements of each table's gradients that are not finite, int32 `[tables]`.
    """
    return checks.require_of_tables(
        tables, bad > 0, Problem(
            'E801', '', 'the gradients of its rows must be finite',
            remedy='Look for a division or a logarithm in the loss that can meet 0. '
            'A TPUEstimator goes on without such steps by RunConfig(nonfinite_gradients="skip").'),
        got=lambda first: at_step(step, tf.strings.join(
            [tf.strings.as_string(bad[first]), ' elements that are not'])), step=step)


def at_step(step: tf.Tensor, got: tf.Tensor) -> tf.Tensor:
    """Appends the global step, an integer, to the scalar string `got`."""
    return tf.strings.join([got, ', at global step ', tf.strings.as_string(step)])


def _rate_at(step: tf.Tensor, rate: DynamicRate, table: str) -> tf.Tensor:
    """Calls a function of the step; every error names the table."""
    # If an operation of the function fails in a step, TensorFlow tells only the operation's name.
    with tf.name_scope('learning_rate_of/' + re.sub(r'[^\w./-]', '_', table, flags=re.ASCII)):
        try:
            value = tf.convert_to_tensor(rate.function(step))
        except Exception as error:
            error.add_note(f'raised by the learning_rate_fn of table "{table}"')
            raise
        if not value.shape.is_compatible_with([]):
            raise ConfigError(Problem(
                'E421', f'table "{table}"', 'the learning rate must be a finite number >= 0',
                f'a tensor of shape {value.shape}', 'Let learning_rate_fn return a scalar.'))
        return tf.ensure_shape(tf.cast(value, tf.float32), [])
