"""The seven verbs of a backend, and what those of an engine are that it is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..ops.ids import IdBatch
from .tables import HostedTable

QUEUE_CAPACITY = 2
"""Steps whose ids and features may wait per core: one is handed over while one is ready."""

CoreBatch = Mapping[str, IdBatch]
"""The ids of every feature of the plan, for one core and one step."""

Activations = dict[str, tf.Tensor]
"""Per feature of the plan, in its order: float32 of `plan.output_shape(feature)`."""


class LookupReceipt(NamedTuple):
    """What a look-up hands to the update that belongs to it.

    On the hardware the two are paired by the order of a queue, and a missed pair hangs. As a
    value the pair is visible: the graph of a step says which gradients belong to which ids.

    Attributes:
      step: int64 scalar, the global step at the time of the look-up.
      packed: the ids that were looked up, in the form of the backend that made it: tensors of
        its `kinds`, of any lengths. Only its `batches` and its `update` look inside.
      activations: what was handed out; an update waits for all of it.
    """

    step: tf.Tensor
    packed: tuple[tf.Tensor, ...]
    activations: Activations


class Engine(Protocol):
    """Holds the tables of one plan, and computes: no queue, no step, no learning rate of its own.

    Attributes:
      plan: what it executes.
      kernels: what executes it, `'native'` or `'stock'`.
      kinds: the dtypes of what `pack` gives.
      tables: the variables, by table name.
    """

    plan: Plan
    kernels: str
    kinds: list[tf.DType]
    tables: dict[str, HostedTable]

    def open(self) -> tf.Operation:
        """Makes the engine ready; run once per session before anything else."""

    def load(self) -> tf.Operation:
        """Takes over the values of variables; run after they were initialised or restored."""

    def pack(self, batch: CoreBatch) -> list[tf.Tensor]:
        """The ids of one step of one core, in the form in which the engine wants them.

        A feature that the plan weights may have weights in one batch and none in the next. In the
        native engine so may the others.
        """

    def unpack(self, packed: Sequence[tf.Tensor]) -> dict[str, IdBatch]:
        """The ids by feature, of what `pack` gave.

        In the native engine its batch must have had weights where the plan has them only.
        """

    def lookup(self, packed: Sequence[tf.Tensor]) -> Activations:
        """The activations of one core, of what `pack` gave."""

    def update(self, packed: Sequence[Sequence[tf.Tensor]], gradients: Sequence[Activations],
               rates: Mapping[str, tf.Tensor], step: tf.Tensor) -> tf.Tensor:
        """Changes the rows that were looked up, as `Backend.update` does.

        Args:
          packed: for each core what `pack` gave.
          gradients: for each core those of its activations.
          rates: of the tables by name, float32 scalars that are known to be legal.
          step: int64 scalar, for messages.
        """


class Backend(Protocol):
    """Executes one plan. In graph mode each verb returns tensors or operations to be run.

    Attributes:
      plan: what it executes.
      kernels: what executes it, `'native'` or `'stock'`.
      kinds: the dtypes of `LookupReceipt.packed`, for whoever keeps receipts in queues.
      tables: the variables, by table name.
    """

    plan: Plan
    kernels: str
    kinds: list[tf.DType]
    tables: dict[str, HostedTable]

    def open(self) -> tf.Operation:
        """Makes the engine ready; run once per session before anything else."""

    def load(self) -> tf.Operation:
        """Host variables -> engine; run after the variables were initialised or restored."""

    def enqueue(self, batch: CoreBatch, *, host: int, core: int) -> tf.Operation:
        """Hands the ids of one step of `core`, fed by `host`, to the engine; blocks when full."""

    def lookup(self, *, core: int) -> tuple[Activations, LookupReceipt]:
        """The oldest ids of `core` that are pending -> activations."""

    def batches(self, receipt: LookupReceipt) -> dict[str, IdBatch]:
        """The ids of a look-up by feature, for those who count them."""

    def update(self, receipts: Sequence[LookupReceipt],
               gradients: Sequence[Activations]) -> tf.Tensor:
        """Changes the rows that were looked up.

        The gradients of all tables are looked at before any table is written.

        Args:
          receipts: one per core, of the same step; each may be used once.
          gradients: for each receipt the gradients of its activations. Gradients of a row are
            summed over all of them before its one update, so they come together. Without
            accumulation they are summed for each, and the row is updated core by core.

        Returns:
          For each table of the plan whether its gradients were refused, as not finite: if one is,
          no table was changed. All are false in an engine that fails instead. To evaluate it is
          to update.
        """

    def retrieve(self) -> tf.Operation:
        """Engine -> host variables; run before the variables are read."""

    def close(self) -> tf.Operation:
        """Ends every wait for ids, in `enqueue` and in `lookup`."""


class BackendAround:
    """Passes on to another backend what it does not do differently.

    Attributes:
      plan, kernels, kinds, tables: those of the other.
    """

    def __init__(self, backend: Backend):
        """Passes on to `backend`."""
        self.plan = backend.plan
        self.kernels = backend.kernels
        self.kinds = backend.kinds
        self.tables = backend.tables
        self._backend = backend

    def open(self) -> tf.Operation:
        return self._backend.open()

    def load(self) -> tf.Operation:
        return self._backend.load()

    def enqueue(self, batch: CoreBatch, *, host: int, core: int) -> tf.Operation:
        return self._backend.enqueue(batch, host=host, core=core)

    def batches(self, receipt: LookupReceipt) -> dict[str, IdBatch]:
        return self._backend.batches(receipt)

    def retrieve(self) -> tf.Operation:
        return self._backend.retrieve()
