"""Builds one step of a job in a graph: input, the model on every core, look-ups, update.

Only model_fn determines the variable names of the tables. So it gets activations whose look-ups
are made afterwards, and nothing calls it twice in a graph.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

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
from .gradient_capture import GradientCapture
from .host_calls import call_on_host, operations_of, read_before_increment
from .infeed import FeedGraph
from .input import Batch, CoreQueue, map_tensors
from .input_graph import draw_input, feeds_of
from .job import Job, ModelOutput, concatenate
from .towers import Towers, seeded


class Refused(NamedTuple):
    """The tables whose gradients are not finite, so that a step changes no table.

    Attributes:
      step: the global step that the step begins at.
      tables: their names, string `[n]`; usually none.
    """

    step: tf.Tensor
    tables: tf.Tensor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lookahead:
    """Look-ups that run a step ahead; see `hosts.pipelined`.

    Attributes:
      begin: looks up the first batch; run once per session, before its first step.
      has_next: must be fed `True` with every step that another step follows.
    """

    begin: tf.Operation
    has_next: tf.Tensor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepOps:
    """The operations and tensors of one step.

    Attributes:
      operation: makes the step. In training that is everything that changes, except for the
        effects of a host_call.
      loss: mean of the losses of all cores; 0 in a prediction.
      is_step: must be fed `True` to run anything that takes a batch.
      host_call: in training the effects of a host_call in one step; `None` if there is none.
      refused: the tables that a training step does not update; `None` without tables.
      lookahead: `None` if a step looks up its own batch.
    """

    operation: tf.Operation
    loss: tf.Tensor
    is_step: tf.Tensor
    host_call: tf.Operation | None
    refused: Refused | None
    lookahead: Lookahead | None

    def feeds(self, *, has_next: bool) -> dict[tf.Tensor, bool]:
        """Returns the values that must be fed to run the step."""
        fed = {self.is_step: True}
        if self.lookahead is not None:
            fed[self.lookahead.has_next] = has_next
        return fed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepGraph:
    """The operations of a run.

    Attributes:
      input: the operations of the infeed threads.
      start: run once per session, before anything else.
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
    start: tf.Operation
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
    towers = _build_towers(job, queues, is_step)
    backend = _make_backend(job, towers.table_names, global_step)
    receipts = _look_up(towers, backend, is_step) if backend is not None else []
    feeds = feeds_of(job, inputs, queues, backend)
    # Otherwise a train_op that needs nothing of the batch could come first, and rates would be
    # those of the next step.
    read_before_increment(global_step, [receipt.step for receipt in receipts])
    refuse_foreign_sums()
    losses = [output.loss for output in towers.outputs if output.loss is not None]
    loss = tf.add_n(losses) / len(losses) if losses else tf.zeros([])
    gradients = _table_gradients(job, towers, receipts)
    trained, refused = _training_step(job, backend, towers, receipts, gradients)
    step = tf.group(*trained, *towers.rows, towers.taken, loss)
    dense = tf.group(loss, *trained[:1], *tf.nest.flatten(gradients))
    host_call = _host_call(job, towers, step, global_step)
    if host_call is not None and job.verb != 'train':
        step, host_call = tf.group(step, host_call), None
    lookahead = (Lookahead(begin=backend.begin(), has_next=backend.has_next)
                 if isinstance(backend, PipelinedBackend) else None)
    engine = [backend.engine.open(), backend.engine.load()] if backend else []
    capture = [towers.capture.initializer] if towers.capture else []
    closes = [queue.close() for queue in queues] + ([backend.close()] if backend else [])
    return StepGraph(
        input=FeedGraph(feeds=feeds, close=tf.group(*closes),
                        ahead=int(lookahead is not None)),
        start=tf.group(*engine, *capture),
        step=StepOps(operation=step, loss=loss, is_step=is_step, host_call=host_call,
                     refused=refused, lookahead=lookahead),
        outputs=towers.outputs,
        distinct_outputs=towers.outputs[:1] if job.deployment.has_copies else towers.outputs,
        rows=towers.rows, global_step=global_step,
        tables={} if job.plan is None else stored_tables(job.plan, towers.table_names),
        looked_up=towers.taken, trained=dense, backend=backend, receipts=receipts,
        gradients=gradients)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _BuiltTowers:
    """The model on every core; see `StepGraph`. Activations are placeholders until `_look_up`."""

    outputs: list[ModelOutput]
    rows: list[tf.Tensor]
    taken: tf.Operation
    activations: list[Activations]
    table_names: dict[str, str]
    capture: GradientCapture | None
    num_sums: int


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
                    activations.append(map_tensors(tf.identity, looked_up))
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


def _build_towers(job: Job, queues: Sequence[CoreQueue], is_step: tf.Tensor) -> _BuiltTowers:
    """Calls the model for every core; `is_step` must be true where a batch is taken."""
    with _within_step(is_step):
        batches, activations, taken = _take_all(job, queues)
    capture = None
    if job.plan is not None and job.verb == 'train':
        with on(job.placement.core(0)):
            capture = GradientCapture(job.plan)

    def build(core: int) -> ModelOutput:
        features, labels, _ = batches[core]
        with on(job.placement.core(core)):
            if activations:
                own = activations[core]
                features = {**features, **(capture.hook(core, own) if capture else own)}
            return job.call_model(core, features, labels)

    towers = Towers[ModelOutput](job.topology.num_cores,
                                 None if job.cluster is None else job.placement)
    with contextlib.nullcontext() if job.seed is None else seeded(job.seed):
        outputs = towers.build(build)
    if job.placement.is_remote:
        for core, operations in enumerate(towers.operations()):
            keep_on_host(operations, job.placement.core(core), job.placement)
    graph = tf.get_default_graph()
    names = job.lookups.variable_names(graph) if job.lookups is not None and job.plan else {}
    _tf.forget_column_scopes(graph)
    return _BuiltTowers(
        outputs=outputs, rows=[batch.rows for batch in batches if batch.rows is not None],
        taken=taken, activations=activations, table_names=names, capture=capture,
        num_sums=towers.num_sums)


def _make_backend(job: Job, names: dict[str, str], global_step: tf.Variable) -> Backend | None:
    """Returns the engine of a job, if there is anything to look up; its variables have `names`."""
    plan = job.plan
    if plan is None:
        return None
    engine = choose_engine(plan, names, skips_nonfinite=job.skips_nonfinite, kernels=job.kernels,
                           placement=job.placement if job.cluster is not None else None)
    is_early = plan.pipelined and plan.mode == 'training'
    return (PipelinedBackend if is_early else Backend)(engine, global_step)


def _look_up(towers: _BuiltTowers, backend: Backend, is_step: tf.Tensor
             ) -> list[LookupReceipt]:
    """Gives the model on every core its activations, and returns the receipts per core."""
    with _within_step(is_step):
        looked_up = [backend.lookup(core=core) for core in range(len(towers.activations))]
        ready = tf.group(*tf.nest.flatten([values for values, _ in looked_up]))
    _tf.wait_for(towers.taken, [ready])
    for activations, (values, _) in zip(towers.activations, looked_up):
        for feature, activation in activations.items():
            _tf.replace_input(activation.op, 0, values[feature])
    return [receipt for _, receipt in looked_up]


def _table_gradients(job: Job, towers: _BuiltTowers, receipts: Sequence[LookupReceipt]
                     ) -> list[Activations]:
    """Returns in training the gradients that tables get from each core; otherwise none."""
    if job.verb != 'train':
        return []
    if job.topology.num_cores > 1 and towers.num_sums == 0:
        raise ValueError('CrossShardOptimizer must be used for model training on TPUs.  Wrap '
                         'the optimizer in model_fn: tf.tpu.CrossShardOptimizer(optimizer).')
    if towers.capture is None:
        return []
    towers.capture.finish()
    factor: tf.Tensor | None = None
    if job.lookups is not None and job.lookups.gradient_multiplier is not None:
        factor = tf.cast(job.lookups.gradient_multiplier(receipts[0].step), tf.float32)
    gradients = []
    for core in range(len(towers.outputs)):
        with on(job.placement.core(core)):
            own = towers.capture.gradients(core)
            gradients.append(own if factor is None else map_tensors(
                lambda gradient: gradient * factor, own))
    return gradients


def _training_step(job: Job, backend: Backend | None, towers: _BuiltTowers,
                   receipts: list[LookupReceipt], gradients: list[Activations]
                   ) -> tuple[list[tf.Operation], Refused | None]:
    """Returns tower 0's train_op and the update of the tables, which uses all towers' gradients."""
    if job.verb != 'train':
        return [], None
    train_op = towers.outputs[0].train_op
    if backend is None:
        return [train_op], None
    step = receipts[0].step
    names = tf.constant([table.name for table in backend.plan.tables])
    refused = Refused(step, checks.masked(names, backend.update(receipts, gradients)))
    return [train_op, refused.tables.op], refused


def _host_call(job: Job, towers: _BuiltTowers, step: tf.Operation, global_step: tf.Variable
               ) -> tf.Operation | None:
    """Returns the effects of the model's host_call, which begin when `step` is complete."""
    calls = [output.host_call for output in towers.outputs]
    if calls[0] is None:
        return None
    tensors = concatenate(calls[:1] if job.deployment.has_copies else calls)
    flat = tf.nest.flatten(tensors)
    if job.verb == 'train':
        read_before_increment(global_step, flat)
    with tf.control_dependencies([step, *flat]):
        tensors = map_tensors(tf.identity, tensors)
        made = call_on_host('host_call', calls[0][0], tensors)
        with tf.control_dependencies(operations_of(made)):
            return tf.no_op('host_call')


def refuse_foreign_sums() -> None:
    """Raises ConfigError if the default graph holds a cross-replica sum that only a TPU can run."""
    graph = tf.get_default_graph()
    if any(operation.type == 'CrossReplicaSum' for operation in graph.get_operations()):
        raise ConfigError(Problem(
            'E453', 'model_fn', 'cross-replica sums must be those of this package, since '
            'TensorFlow has no CPU kernel for its own', 'tf.tpu.cross_replica_sum',
            'Call estimator_tpu_embedding.install() before model_fn runs, or use '
            'estimator_tpu_embedding.CrossShardOptimizer.'))
