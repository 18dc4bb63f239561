"""Base classes of engines in one process, and of wrappers of engines and backends."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from ..core.plan import Plan
from ..ops.ids import IdBatch
from .backend import Backend, CoreBatch, Executor, LookupReceipt
from .placement import Placement


class LocalEngine:
    """Base class of engines whose hosts and cores are all on the current device.

    Attributes:
      plan: the plan.
      kinds: the dtypes of packed ids.
    """

    plan: Plan
    kinds: list[tf.DType]

    @property
    def placement(self) -> Placement:
        """No devices at all."""
        return Placement(self.plan.topology)

    def places(self, core: int) -> list[str]:
        return [self.placement.core(core)] * len(self.kinds)


class ExecutorWrapper:
    """Passes on what engines and backends have in common.

    Attributes:
      plan, kernels, kinds, tables, placement: as in the wrapped engine or backend.
    """

    def __init__(self, executor: Executor):
        """Wraps an engine or a backend."""
        self.plan = executor.plan
        self.kernels = executor.kernels
        self.kinds = executor.kinds
        self.tables = executor.tables
        self.placement = executor.placement
        self._executor = executor

    def places(self, core: int) -> list[str]:
        return self._executor.places(core)

    def open(self) -> tf.Operation:
        return self._executor.open()

    def load(self) -> tf.Operation:
        return self._executor.load()


class BackendWrapper(ExecutorWrapper):
    """Passes the verbs that a subclass does not define on to another backend.

    Attributes:
      plan, kernels, kinds, tables: as in the wrapped backend.
    """

    def __init__(self, backend: Backend):
        """Wraps `backend`."""
        super().__init__(backend)
        self._backend = backend

    def enqueue(self, batch: CoreBatch, *, host: int, core: int) -> tf.Operation:
        return self._backend.enqueue(batch, host=host, core=core)

    def batches(self, receipt: LookupReceipt) -> dict[str, IdBatch]:
        return self._backend.batches(receipt)

    def retrieve(self) -> tf.Operation:
        return self._backend.retrieve()
