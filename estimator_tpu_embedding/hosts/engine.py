"""The verbs of an engine, which holds tables and computes, and what engines have in common.

That is their flat form of ids, the learning rates of a step, and the checks of rates and gradients.
`runner/` reaches an engine through a backend, `midlevel/` directly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import tensorflow.compat.v1 as tf

from ..core.optimizers import DynamicRate
from ..core.plan import Plan
from ..errors import ConfigError, Problem
from ..ops import checks
from ..ops.ids import IdBatch
from .placement import Placement
from .table_parts import HostedTable

CoreBatch = Mapping[str, IdBatch]
"""The ids of every feature of the plan, for one core and one step."""

Activations = dict[str, tf.Tensor]
"""Per feature of the plan, in its order: float32 of `plan.output_shape(feature)`."""


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
