"""A base class for backends that wrap another backend and change some of its verbs."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

from ..ops.ids import IdBatch
from .backend import Backend, CoreBatch, LookupReceipt


class BackendWrapper:
    """Passes the verbs that a subclass does not define on to another backend.

    Attributes:
      plan, kernels, kinds, tables: as in the wrapped backend.
    """

    def __init__(self, backend: Backend):
        """Wraps `backend`."""
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
