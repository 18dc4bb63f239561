"""Base classes of backends: they pass on the verbs of the engine or backend that they wrap."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from ..ops.ids import IdBatch
from .backend import Backend, CoreBatch, Executor, LookupReceipt


class ExecutorWrapper:
    """Passes on what engines and backends have in common.

    Attributes:
      plan, kernels, kinds, tables: as in the wrapped engine or backend.
    """

    def __init__(self, executor: Executor):
        """Wraps an engine or a backend."""
        self.plan = executor.plan
        self.kernels = executor.kernels
        self.kinds = executor.kinds
        self.tables = executor.tables
        self._executor = executor

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
