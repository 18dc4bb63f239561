"""Runs the engine of one `TPUEmbedding` in one graph, for training loops written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import defaults
from ..core.plan import Plan
from ..errors import ConfigError, Problem
from ..hosts.backend import QUEUE_CAPACITY, Backend, LookupReceipt, PlacedQueue
from ..hosts.engine import Activations, CoreBatch, from_vectors, to_vectors, vector_kinds
from ..hosts.engine_choice import choose_engine
from ..hosts.pipelined import DelayedBackend
from ..hosts.placement import Placement, on
from ..hosts.table_parts import HostedTable, create_slots_apart
from ..runner import towers
from ..runner.gradient_capture import GradientCapture
from ..runner.progress import add_own_loop

_WHERE = 'TPUEmbedding'


class GraphEngine:
    """Tables, queues and pending look-ups of one plan in one graph.

    Attributes:
      capture: catches gradients; `None` until `create_dummy_table_variables` was called.
    """

    def __init__(self, plan: Plan, placement: Placement | None = None):
        """Creates nothing yet; the hosts are workers with a placement, else emulated here."""
        self._workers = placement
        self._client = '' if placement is None else placement.client
        self.capture: GradientCapture | None = None
        self._plan = plan
        self._backend: Backend | None = None
        self._receipts: dict[int, LookupReceipt] = {}
        # Ids that come before the tables wait here, unchanged. The tables bring a backend with
        # queues of its own. A native backend groups ids as they come, beside the steps.
        self._early: list[PlacedQueue] = []

    def create_tables(self, variable_names: Mapping[str, str],
                      slot_names: Mapping[str, Sequence[str]]) -> dict[str, HostedTable]:
        """Creates the variables of all tables; raises ValueError if they exist.

        In inference it creates the variables of slots too. They are for a Saver; the engine does
        not use them.
        """
        # Each update gets the step that rates are functions of.
        with on(self._client):
            no_step = tf.zeros([], tf.int64)
            engine = choose_engine(
                self._plan, variable_names, slot_names=slot_names,
                kernels=defaults.current().kernels, placement=self._workers)
            is_late = self._plan.pipelined and self._plan.mode == 'training'
            self._backend = (DelayedBackend if is_late else Backend)(engine, no_step)
        tables = self._backend.tables
        if self._plan.mode == 'inference':
            tables = {name: hosted._replace(slots=create_slots_apart(
                self._plan, hosted.spec, slot_names[name], self._workers))
                if hosted.spec.optimizer is not None else hosted
                for name, hosted in tables.items()}
        return tables

    def enqueue(self, batch: CoreBatch, *, core: int) -> tf.Operation:
        """See `Backend.enqueue`."""
        if self._backend is not None and not self._early:
            return self._backend.enqueue(batch, core=core)
        if not self._early:
            with tf.init_scope():
                kinds = vector_kinds(self._plan)
                self._early = [PlacedQueue(QUEUE_CAPACITY, kinds, [self._client] * len(kinds),
                                           f'ids_of_core_{each}')
                               for each in range(self._plan.topology.num_cores)]
        # Later ids go here too: the steps of a graph take their ids in one place, in order.
        return self._early[core].enqueue(to_vectors(self._plan, batch))

    def lookup(self) -> Activations:
        """Returns the activations of the core whose replica is being built.

        Raises:
          ConfigError: without variables, or if the replicas do not fit the system.
        """
        if self._backend is None:
            raise ConfigError(Problem(
                'E464', f'{_WHERE}.get_activations', 'the variables of the tables must exist in '
                'this graph', 'none', 'Call create_variables_and_ops() before.'))
        cores = self._plan.topology.num_cores
        if towers.number_of_cores() != cores:
            raise ConfigError(Problem(
                'E465', f'{_WHERE}.get_activations', f'it must be called in each of {cores} '
                'replicas, one per core', f'{towers.number_of_cores()}',
                f'Call it in the computation of tf.tpu.shard(computation, num_shards={cores}), '
                'after estimator_tpu_embedding.install().'))
        core = towers.current_core()
        handed_over = []
        if self._early:
            with on(self._client):
                batch = from_vectors(self._plan, self._early[core].dequeue())
                handed_over.append(self._backend.enqueue(batch, core=core))
        with tf.control_dependencies(handed_over):
            activations, receipt = self._backend.lookup(core=core)
        self._receipts[core] = receipt
        return activations

    def update(self, gradients: Activations, step: Any) -> tf.Operation:
        """Changes the rows of the last look-up, once for the gradients of all cores.

        Raises:
          ConfigError: if there was no look-up since the last update.
        """
        receipt = self._receipts.pop(towers.current_core(), None)
        if receipt is None:
            raise ConfigError(Problem(
                'E466', f'{_WHERE}.generate_send_gradients_op', 'it must follow get_activations '
                'in the same replica, once', 'no look-up that waits for gradients'))
        if step is not None:
            receipt = receipt._replace(step=tf.convert_to_tensor(step))
        backend = self._backend
        assert backend is not None, 'a receipt comes from a backend'
        add_own_loop(_WHERE)

        def update_all(cores: list[tuple[LookupReceipt, Activations]]) -> tf.Operation:
            receipts, every = zip(*cores)
            return backend.update(receipts, every).op

        return towers.meet((receipt, gradients), update_all)

    def retrieve(self) -> tf.Operation:
        """See `Backend.retrieve`."""
        return self._backend.retrieve() if self._backend is not None else tf.no_op()
