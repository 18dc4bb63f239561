"""Builds one step of a job in a graph: input, the model on every core, look-ups, update.

Only model_fn determines the variable names of the tables. So it gets activations whose look-ups
are made afterwards, and nothing calls it twice in a graph.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..checkpoint.manifest import StoredTable, stored_tables
from ..errors import ConfigError, Problem
from ..hosts.backend import Backend, LookupReceipt
from ..hosts.engine import Activations
from ..hosts.engine_choice import choose_engine
from ..hosts.operation_devices import keep_on_host
from ..hosts.pipelined import PipelinedBackend
from ..hosts.placement import on
from ..ops import checks
from .core_batches import Batch, CoreQueue, map_tensors
from .gradient_capture import GradientCapture
from .host_calls import call_on_host, operations_of, read_before_increment
from .infeed_operations import draw_input, feeds_of
from .infeed_threads import FeedGraph
from .job import Job, ModelOutput, concatenate
from .tower_copies import TowerCopies
from .towers import Towers, seeded


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepOps:
    """The operations and tensors of one step.

    Attributes:
      operation: makes the step. In training that is everything that changes, except for the
        effects of a host_call.
      loss: mean of the losses of all cores; 0 in a prediction.
      is_step: must be fed `True` to run anything that takes a batch.
      host_call: in training the effects of a host_call in one step; `None` if there is none.
      refused: the global step that a training step begins at, and the names, string `[n]`, of the
        tables whose gradients are not finite, so that it changes no table. `()` without tables.
      look_ahead: looks up the first batch, where look-ups run a step ahead; run once per session,
        before its first step. `None` if a step looks up its own batch.
      has_next: must then be fed `True` with every step that another step follows.
    """

    operation: tf.Operation
    loss: tf.Tensor
    is_step: tf.Tensor
    host_call: tf.Operation | None
    refused: tuple[tf.Tensor, ...] = ()
    look_ahead: tf.Operation | None = None
    has_next: tf.Tensor | None = None

    def feeds(self, *, has_next: bool) -> dict[tf.Tensor, bool]:
        """Returns the values that must be fed to run the step."""
        fed = {self.is_step: True}
        if self.has_next is not None:
            fed[self.has_next] = has_next
        return fed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepGraph:
    """The operations of a run.

    Attributes:
      input: the operations of the infeed threads.
      step: the operations and tensors of one step.
      outputs: of the model, per core.
      distinct_outputs: of the model, per core that has samples of its own.
      rows: in a prediction the number of samples per core that are no padding; otherwise empty.
      global_step: the variable.
      tables: as checkpoints hold them, by variable name.
      looked_up: ends the look-ups of all cores.
      trained: ends the dense phase; see `progress.TimeSplit`.
      backend: the engine, or `None`.
      receipts: of the look-ups, per core; empty without an engine.
      gradients: in training the gradients of the activations, per core.
    """

    input: FeedGraph
    step: StepOps
    outputs: list[ModelOutput]
    distinct_outputs: list[ModelOutput]
    rows: list[tf.Tensor]
    global_step: tf.Variable
    tables: dict[str, StoredTable]
    looked_up: tf.Operation
    trained: tf.Operation
    backend: Backend | None
    receipts: list[LookupReceipt]
    gradients: list[Activations]


ALLOCATIONS = (100_000, 50, 100)
"""Thresholds while a graph is built. What lives briefly is still collected, so that a model_fn
that reads much data needs no more memory."""


@contextlib.contextmanager
def collected_rarely() -> Iterator[None]:
    """Raises the thresholds of the garbage collector, unless they are higher already, or 0.

    Everything that a graph allocates lives as long as the graph, but the collector visits it every
    time.
    """
    before = gc.get_threshold()
    is_lower = 0 < before[0] < ALLOCATIONS[0]
    if is_lower:
        gc.set_threshold(*ALLOCATIONS)
    try:
        yield
    finally:
        if is_lower:  # Otherwise whoever raised them, perhaps another thread, puts them back.
            gc.set_threshold(*before)


@collected_rarely()
def build_step(job: Job) -> StepGraph:
    """Builds one step in the default graph, which must be new."""
    tf.set_random_seed(job.seed)
    tf.get_variable_scope().set_use_resource(True)
    global_step = tf.train.create_global_step()
    _tf.global_step_read(tf.get_default_graph())
    inputs = draw_input(job)
    queues = [CoreQueue(core, rest, job.placement.core(core))
              for core, rest in enumerate(inputs.rests)]
    is_step = tf.placeholder_with_default(False, [], 'is_step')
    model = _Model(job, queues, is_step)
    backend = _make_backend(job, model.table_names, global_step)
    receipts = model.look_up(backend) if backend is not None else []
    feeds = feeds_of(job, inputs, queues, backend)
    # Otherwise a train_op that needs nothing of the batch could come first, and rates would be
    # those of the next step.
    read_before_increment(global_step, [receipt.step for receipt in receipts])
    refuse_foreign_sums()
    losses = [output.loss for output in model.outputs if output.loss is not None]
    loss = tf.add_n(losses) / len(losses) if losses else tf.zeros([])
    gradients = model.table_gradients(receipts)
    trained, refused = model.training_step(backend, receipts, gradients)
    step = tf.group(*trained, *model.rows, model.taken, loss)
    dense = tf.group(loss, *trained[:1], *tf.nest.flatten(gradients))
    host_call = model.host_call(step, global_step)
    if host_call is not None and job.verb != 'train':
        step, host_call = tf.group(step, host_call), None
    ahead = ({'look_ahead': backend.begin(), 'has_next': backend.has_next}
             if isinstance(backend, PipelinedBackend) else {})
    engine = [backend.engine.open(), backend.engine.load()] if backend else []
    capture = [model.capture.initializer] if model.capture else []
    closes = [queue.close() for queue in queues] + ([backend.close()] if backend else [])
    return StepGraph(
        input=FeedGraph(start=tf.group(*engine, *capture), feeds=feeds, close=tf.group(*closes),
                        ahead=int(bool(ahead))),
        step=StepOps(operation=step, loss=loss, is_step=is_step, host_call=host_call,
                     refused=refused, **ahead),
        outputs=model.outputs,
        distinct_outputs=model.outputs[:1] if job.deployment.has_copies else model.outputs,
        rows=model.rows, global_step=global_step,
        tables={} if job.plan is None else stored_tables(job.plan, model.table_names),
        looked_up=model.taken, trained=dense, backend=backend, receipts=receipts,
        gradients=gradients)


def _take_all(job: Job, queues: Sequence[CoreQueue]
              ) -> tuple[list[Batch], list[Activations], tf.Operation]:
    """Takes a batch of every core; no tensor of one is there before all are.

    So operations that depend on a batch read the global step after all look-ups have read it. A
    model may ignore its features, but batches that nobody takes would fill the queues.
    """
    drawn, operations = zip(*[queue.dequeue() for queue in queues])
    # One operation that all wait for: otherwise each would wait for each by an edge of its own.
    taken = tf.group(*operations)
    looked_up = {} if job.plan is None else {
        feature.name: tf.placeholder(tf.float32, job.plan.output_shape(feature))
        for feature in job.plan.features}
    batches, activations = [], []
    with tf.control_dependencies([taken]):
        for core, batch in enumerate(drawn):
            with on(job.placement.core(core)):
                batches.append(map_tensors(tf.identity, batch))
                if looked_up:
                    activations.append(dict(zip(looked_up, tf.identity_n([*looked_up.values()]))))
    return batches, activations, taken


def _within_step(is_step: tf.Tensor) -> Any:
    """Guards what takes a batch.

    Otherwise a hook that evaluates a tensor of the model by itself would take the batch of a
    step, or wait for one for ever.
    """
    return tf.control_dependencies([checks.require(is_step, Problem(
        'E457', 'session.run', 'what depends on a batch must be evaluated together with a step',
        remedy='Let the before_run of a hook return SessionRunArgs(tensors).'),
        got=tf.constant(''))])


class _Model:
    """The model on every core; its activations are placeholders until `look_up`."""

    def __init__(self, job: Job, queues: Sequence[CoreQueue], is_step: tf.Tensor):
        """Calls the model for every core; `is_step` must be true where a batch is taken."""
        self._job, self._is_step = job, is_step
        with _within_step(is_step):
            batches, self._activations, self.taken = _take_all(job, queues)
        self.rows = [batch.rows for batch in batches if batch.rows is not None]
        self.capture: GradientCapture | None = None
        if job.plan is not None and job.verb == 'train':
            with on(job.placement.core(0)):
                self.capture = GradientCapture(job.plan)

        def build(core: int) -> ModelOutput:
            features, labels, _ = batches[core]
            with on(job.placement.core(core)):
                if self._activations:
                    own = self._activations[core]
                    features = {**features, **(
                        self.capture.hook(core, own) if self.capture else own)}
                return job.call_model(core, features, labels)

        towers = Towers[ModelOutput](job.deployment.topology.num_cores,
                                     None if job.cluster is None else job.placement)
        copies = None
        if towers.count > 1 and not job.placement.is_remote:
            copies = TowerCopies([(*batch, *self._activations[core:core + 1])
                                  for core, batch in enumerate(batches)])
        with contextlib.nullcontext() if job.seed is None else seeded(job.seed):
            self.outputs = towers.build(build, copies)
        if self.capture is not None and copies is not None and towers.is_copied:
            self.capture.add_copies(copies)
        self._num_sums = towers.num_sums
        if job.placement.is_remote:
            for core, operations in enumerate(towers.operations()):
                keep_on_host(operations, job.placement.core(core), job.placement)
        graph = tf.get_default_graph()
        self.table_names = job.lookups.variable_names(graph) if job.lookups and job.plan else {}
        _tf.forget_column_scopes(graph)

    def look_up(self, backend: Backend) -> list[LookupReceipt]:
        """Gives the model on every core its activations, and returns the receipts per core."""
        with _within_step(self._is_step):
            looked_up = [backend.lookup(core=core) for core in range(len(self._activations))]
            ready = tf.group(*tf.nest.flatten([values for values, _ in looked_up]))
        _tf.wait_for(self.taken, [ready])
        for activations, (values, _) in zip(self._activations, looked_up):
            for feature, activation in activations.items():
                _tf.replace_input(activation.op, activation.value_index, values[feature])
        return [receipt for _, receipt in looked_up]

    def table_gradients(self, receipts: Sequence[LookupReceipt]) -> list[Activations]:
        """Returns in training the gradients that tables get from each core; otherwise none."""
        job = self._job
        if job.verb != 'train':
            return []
        if len(self.outputs) > 1 and self._num_sums == 0:
            raise ValueError('CrossShardOptimizer must be used for model training on TPUs.  Wrap '
                             'the optimizer in model_fn: tf.tpu.CrossShardOptimizer(optimizer).')
        if self.capture is None:
            return []
        self.capture.finish()
        factor: tf.Tensor | None = None
        if job.lookups is not None and job.lookups.gradient_multiplier is not None:
            factor = tf.cast(job.lookups.gradient_multiplier(receipts[0].step), tf.float32)
        gradients = []
        for core in range(len(self.outputs)):
            with on(job.placement.core(core)):
                own = self.capture.gradients(core)
                gradients.append(own if factor is None else map_tensors(
                    lambda gradient: gradient * factor, own))
        return gradients

    def training_step(self, backend: Backend | None, receipts: list[LookupReceipt],
                      gradients: list[Activations]
                      ) -> tuple[list[tf.Operation], tuple[tf.Tensor, ...]]:
        """Returns tower 0's train_op and the update of the tables, and `StepOps.refused`."""
        if self._job.verb != 'train':
            return [], ()
        train_op = self.outputs[0].train_op
        if backend is None:
            return [train_op], ()
        names = tf.constant([table.name for table in backend.plan.tables])
        refused = checks.masked(names, backend.update(receipts, gradients))
        return [train_op, refused.op], (receipts[0].step, refused)

    def host_call(self, step: tf.Operation, global_step: tf.Variable) -> tf.Operation | None:
        """Returns the effects of the model's host_call, which begin when `step` is complete."""
        calls = [output.host_call for output in self.outputs]
        if calls[0] is None:
            return None
        tensors = concatenate(calls[:1] if self._job.deployment.has_copies else calls)
        flat = tf.nest.flatten(tensors)
        if self._job.verb == 'train':
            read_before_increment(global_step, flat)
        with tf.control_dependencies([step, *flat]):
            tensors = map_tensors(tf.identity, tensors)
            made = call_on_host('host_call', calls[0][0], tensors)
            with tf.control_dependencies(operations_of(made)):
                return tf.no_op('host_call')


def _make_backend(job: Job, names: dict[str, str], global_step: tf.Variable) -> Backend | None:
    """Returns the engine of a job, if there is anything to look up; its variables have `names`."""
    plan = job.plan
    if plan is None:
        return None
    engine = choose_engine(plan, names, skips_nonfinite=job.skips_nonfinite, kernels=job.kernels,
                           placement=job.placement if job.cluster is not None else None)
    is_early = plan.pipelined and plan.mode == 'training'
    return (PipelinedBackend if is_early else Backend)(engine, global_step)


def refuse_foreign_sums() -> None:
    """Raises ConfigError if the default graph holds a cross-replica sum that only a TPU can run."""
    graph = tf.get_default_graph()
    if any(operation.type == 'CrossReplicaSum' for operation in graph.get_operations()):
        raise ConfigError(Problem(
            'E453', 'model_fn', 'cross-replica sums must be those of this package, since '
            'TensorFlow has no CPU kernel for its own', 'tf.tpu.cross_replica_sum',
            'Call estimator_tpu_embedding.install() before model_fn runs, or use '
            'estimator_tpu_embedding.CrossShardOptimizer.'))
