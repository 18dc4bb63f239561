"""Any number of emulated hosts and cores in this process, in the kernels of `native/`.

The engine owns the memory of all rows and slots, and the variables are views of it. Between two
runs a variable is the truth: the engine's writes are seen in it, and what anybody assigned to it,
which gives it a buffer of TensorFlow's, is taken over by the engine at the beginning of the next
run that looks up or updates.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.plan import Plan
from ..core.specs import FeatureSpec
from ..errors import ConfigError, Problem
from ..native import layout, library
from ..native.variables import TableVariable, in_place
from ..ops import checks
from ..ops.ids import IdBatch
from .backend import Activations, CoreBatch, LookupReceipt
from .queues import IdQueues
from .rates import at_step, rates_at, require_finite, require_rates
from .tables import create_tables


class NativeBackend:
    """The engine of a plan inside this process. See `backend.Backend` for the verbs.

    Attributes:
      plan: what it executes.
      kernels: `'native'`.
      kinds: of the one vector that holds all ids of one core and step, grouped by sample and row.
      tables: the variables, by table name.
    """

    kernels = 'native'

    def __init__(self, plan: Plan, variable_names: Mapping[str, str],
                 slot_names: Mapping[str, Sequence[str]] | None,
                 global_step: tf.Variable | tf.Tensor, *, skips_nonfinite: bool = False,
                 threads: int = 0, patience_ms: int = layout.PATIENCE_MS):
        """Creates the tables of a plan and their engine in the default graph.

        Args:
          plan: what to execute.
          variable_names: for each table the name of its variable.
          slot_names: for each table those of its slots; by `None` they are below the variable's.
          global_step: what dynamic learning rates are functions of.
          skips_nonfinite: gradients that are not finite make an update one that changes nothing,
            instead of an error.
          threads: of the engine; 0 is one per core that the process may use.
          patience_ms: how long an update waits for runs that save a table before it fails, in
            milliseconds.
        """
        self.plan = plan
        self.kinds = [tf.int32]
        self._operations: Any = library.load()
        # One node, outside of loops and functions: each session has one engine.
        with tf.init_scope():
            self._engine = self._operations.ete_engine(
                name='embedding_engine', **layout.attributes(plan, threads, patience_ms))
        numbers = itertools.count()
        with _tf.last_creator_scope(lambda _, **kwargs: self._variable(next(numbers), kwargs)):
            self.tables = create_tables(plan, variable_names, slot_names)
        self._parts = [part for table in self.tables.values()
                       for parts in (table.rows, *table.slots.values()) for part in parts]
        self._require_parts_in_order()
        self._queues = IdQueues(plan.topology.num_cores, self.kinds)
        self._global_step = global_step
        self._skips_nonfinite = skips_nonfinite
        with tf.init_scope(), tf.name_scope('attach'):
            self._attached = self._attach()

    def open(self) -> tf.Operation:
        return self._engine.op

    def load(self) -> tf.Operation:
        return self._attached.op

    def enqueue(self, batch: CoreBatch, *, host: int, core: int) -> tf.Operation:
        del host  # All hosts are in this process.
        own = [batch[feature.name] for feature in self.plan.features]
        grouped = self._operations.ete_group(
            engine=self._engine, samples=[one.samples for one in own],
            ids=[one.ids for one in own],
            weights=[one.weights for one, feature in zip(own, self.plan.features)
                     if feature.weight_feature])
        return self._queues.enqueue([grouped], core=core)

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        step = tf.identity(self._global_step)
        with tf.control_dependencies([step]):
            grouped, = self._queues.dequeue(core=core)
        features = self.plan.features
        found = self._operations.ete_lookup(
            engine=self._attached, grouped=grouped, handles=[], F=len(features))
        activations = {feature.name: self._shaped(feature, rows)
                       for feature, rows in zip(features, found)}
        return activations, LookupReceipt(step, (grouped,), activations)

    def batches(self, receipt: LookupReceipt) -> dict[str, IdBatch]:
        features = self.plan.features
        samples, ids, weights = self._operations.ete_ungroup(
            engine=self._engine, grouped=receipt.packed[0], F=len(features),
            W=sum(bool(feature.weight_feature) for feature in features))
        vectors = (tf.ensure_shape(vector, [None]) for one in zip(samples, ids) for vector in one)
        next_weights = iter(weights)
        return {feature.name: IdBatch(
            next(vectors), next(vectors),
            self.plan.batch_size_per_core * max(feature.max_sequence_length, 1),
            tf.ensure_shape(next(next_weights), [None]) if feature.weight_feature else None)
            for feature in features}

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        looked_up = [activation for receipt in receipts
                     for activation in receipt.activations.values()]
        step, names = receipts[0].step, [table.name for table in self.plan.tables]
        with tf.control_dependencies([tf.group(*looked_up)]):
            rates = rates_at(self.plan, step)
            legal = require_rates(self.plan, rates, step)
        with tf.control_dependencies([legal, *looked_up]):
            bad = tf.ensure_shape(self._operations.ete_update(
                engine=self._attached, grouped=[receipt.packed[0] for receipt in receipts],
                gradients=[gradient[feature.name] for gradient in gradients
                           for feature in self.plan.features],
                rates=tf.stack([rates[name] for name in names]), handles=[]), [len(names)])
        with tf.control_dependencies([bad]):
            required = [self._require_attached(step)]
            if not self._skips_nonfinite:
                required.append(require_finite(names, bad, step))
        with tf.control_dependencies(required):
            return bad > 0

    def retrieve(self) -> tf.Operation:
        return tf.no_op()

    def close(self) -> tf.Operation:
        return self._queues.close()

    def _shaped(self, feature: FeatureSpec, rows: tf.Tensor) -> tf.Tensor:
        """The rows of the samples of a core, as the activation of a feature."""
        shape = self.plan.output_shape(feature)
        if feature.max_sequence_length:
            return tf.reshape(rows, shape)
        rows.set_shape(shape)  # The kernel makes it; no node of the graph is needed.
        return rows

    def _variable(self, number: int, kwargs: dict[str, Any]) -> TableVariable:
        """What `tf.get_variable` makes for a part, of which the creators come in their order."""
        # The first two are of variables without a handle. A value cached on a device would be a
        # plain read, which shares the memory of the engine with whatever takes it.
        ignored = {'use_resource', 'expected_shape', 'caching_device'}
        return TableVariable(engine=self._engine, part=number, **{
            name: value for name, value in kwargs.items() if name not in ignored})

    def _require_parts_in_order(self) -> None:
        """Fails if creators of the user did not let each variable be made once."""
        for number, part in enumerate(self._parts):
            if not isinstance(part, TableVariable) or part.number != number:
                raise ConfigError(Problem(
                    'E477', f'variable "{part.name}" of a table',
                    'a variable_creator_scope must call its next_creator once, and give what '
                    'that makes', f'{type(part).__name__} instead of part {number} of the engine',
                    "Build the estimator's graph outside of it, or choose kernels='stock'."))

    def _attach(self) -> tf.Tensor:
        """The handle of the engine, once every variable is a view of its memory.

        It is made once: a run that looks up for many cores checks once. One part after another
        is taken over, so no more than one of them exists twice. The engine knows the value from
        before the assignment on, so all reads give it, and a run that ends halfway loses nothing.
        """
        detached = self._operations.ete_detached(
            engine=self._engine, values=[in_place(part.handle) for part in self._parts])

        def take_all() -> tf.Tensor:
            last: list[tf.Operation] = []
            for number, part in enumerate(self._parts):
                with tf.control_dependencies(last):
                    value = in_place(part.handle)
                    view = self._operations.ete_view(
                        engine=self._engine, value=value, part=number)
                    assigned = tf.raw_ops.AssignVariableOp(resource=part.handle, value=view)
                # Afterwards, since then `value` is all that is left of the former buffer.
                with tf.control_dependencies([assigned]):
                    last = [self._operations.ete_take(
                        engine=self._engine, value=value, part=number).op]
            with tf.control_dependencies(last):
                return tf.constant(True)

        done = tf.cond(detached >= 0, take_all, lambda: tf.constant(True))
        with tf.control_dependencies([done]):
            return tf.identity(self._engine)

    def _require_attached(self, step: tf.Tensor) -> tf.Operation:
        """Fails if a variable got another value during the step, which the update did not see."""
        detached = self._operations.ete_detached(engine=self._engine, values=[
            tf.raw_ops.ReadVariableOp(resource=part.handle, dtype=tf.float32)
            for part in self._parts])
        names = tf.constant([f'table "{name}"' for name in layout.tables_of_parts(self.plan)])
        return checks.require(detached < 0, Problem(
            'E476', '', 'its variable must not be written while a step runs',
            remedy='Assign to it between two steps, in a run of its own.'),
            got=at_step(step, tf.constant('another value')), where=names[tf.maximum(detached, 0)])
