"""The interfaces of an engine and of a backend: the verbs with which a step reaches its tables.

An engine holds tables and computes. A backend adds the queues in which ids wait, the global step
and the learning rates. The runner talks to backends, and `midlevel/` to engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..ops.ids import IdBatch
from .placement import Placement
from .tables import HostedTable

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


class Executor(Protocol):
    """Executes one plan: the common part of an engine and a backend.

    In graph mode each verb returns tensors or operations to be run.

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
        """The devices of cores and hosts."""

    def places(self, core: int) -> list[str]:
        """Returns the device of each packed tensor of a core, in the order of `kinds`."""

    def open(self) -> tf.Operation:
        """Makes the engine ready; run once per session before anything else."""

    def load(self) -> tf.Operation:
        """Loads the host variables into the engine; run after they were initialised or restored."""


class Engine(Executor, Protocol):
    """Holds the tables of one plan, and computes.

    An engine has no queue and no step, and it is given its learning rates.
    """

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        """Returns the ids of one step of one core in the engine's own form, of dtypes `kinds`.

        A feature that the plan weights may have weights in one batch and none in the next. The
        native engine allows that for every feature.
        """

    def unpack(self, packed: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
        """Returns the ids of `pack` by feature.

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
          rates: the learning rate of each table by name: float32 scalars that are known to be
            legal.
          step: int64 scalar, for messages.
        """


class Backend(Executor, Protocol):
    """Executes the steps of one plan: hands ids over, looks up, updates."""

    def enqueue(self, batch: CoreBatch, *, host: int, core: int) -> tf.Operation:
        """Hands the ids of one step of `core`, fed by `host`, to the engine; blocks when full."""

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        """Takes the oldest pending ids of `core`, and returns their activations."""

    def batches(self, receipt: LookupReceipt) -> dict[str, IdBatch]:
        """Returns the ids of a lookup by feature, for statistics."""

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

    def retrieve(self) -> tf.Operation:
        """Writes the engine's values to the host variables; run before they are read."""

    def close(self) -> tf.Operation:
        """Ends every wait for ids, in `enqueue` and in `lookup`."""
