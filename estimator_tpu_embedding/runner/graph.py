"""Builds one step of a job in a graph: input, look-ups, the model on every core, update."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import ConfigError, Problem
from ..hosts.backend import Activations, Backend, LookupReceipt
from ..hosts.engine_choice import choose_engine
from ..hosts.pipelined import PipelinedBackend
from ..ops import checks
from .host_calls import call_on_host, operations_of, read_before_increment
from .infeed import FeedGraph
from .input import CoreQueue, map_tensors
from .input_graph import draw_input, feeds_of
from .measures import Measured
from .model import Job, ModelOutput, concatenate
from .model_towers import BuiltTowers, build_towers, look_up, table_gradients


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
    """The operations of look-ups that run a step ahead; see `hosts.pipelined`.

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
      table_names: the variable name of each table.
      measured: the parts of a step that reports and summaries show.
    """

    input: FeedGraph
    start: tf.Operation
    step: StepOps
    outputs: list[ModelOutput]
    distinct_outputs: list[ModelOutput]
    rows: list[tf.Tensor]
    global_step: tf.Variable
    table_names: dict[str, str]
    measured: Measured


ALLOCATIONS = (100_000, 50, 100)
"""Thresholds while a graph is built. What lives briefly is still collected, so that a model_fn
that reads much data needs no more memory."""


@contextlib.contextmanager
def collected_rarely() -> Iterator[None]:
    """Raises the thresholds of the garbage collector while this lasts.

    Everything that a graph allocates lives as long as the graph, but the collector visits it every
    time. Thresholds that are higher already, or 0, stay.
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
    """Builds one step in the default graph, which must be new.

    Raises:
      ConfigError: if the model cannot be trained as it is.
      InputError: if the input does not fit the declaration.
    """
    tf.set_random_seed(job.seed)
    tf.get_variable_scope().set_use_resource(True)
    global_step = tf.train.create_global_step()
    _tf.global_step_read(tf.get_default_graph())
    inputs = draw_input(job)
    queues = [CoreQueue(core, rest, job.placement.core(core))
              for core, rest in enumerate(inputs.rests)]
    is_step = tf.placeholder_with_default(False, [], 'is_step')
    towers = build_towers(job, queues, is_step)
    backend = _make_backend(job, towers.table_names, global_step)
    receipts = look_up(towers, backend, is_step) if backend is not None else []
    feeds = feeds_of(job, inputs, queues, backend)
    # Otherwise a train_op that needs nothing of the batch could come first, and rates would be
    # those of the next step.
    read_before_increment(global_step, [receipt.step for receipt in receipts])
    refuse_foreign_sums()
    losses = [output.loss for output in towers.outputs if output.loss is not None]
    loss = tf.add_n(losses) / len(losses) if losses else tf.zeros([])
    gradients = table_gradients(job, towers, receipts)
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
        rows=towers.rows, global_step=global_step, table_names=towers.table_names,
        measured=Measured(towers.taken, dense, backend, receipts, gradients))


def _make_backend(job: Job, names: dict[str, str], global_step: tf.Variable) -> Backend | None:
    """Returns the engine of a job, if there is anything to look up.

    Args:
      names: of the variables of its tables.
    """
    plan = job.plan
    if plan is None:
        return None
    engine = choose_engine(plan, names, skips_nonfinite=job.skips_nonfinite, kernels=job.kernels,
                           placement=job.placement if job.cluster is not None else None)
    is_early = plan.pipelined and plan.mode == 'training'
    return (PipelinedBackend if is_early else Backend)(engine, global_step)


def _training_step(job: Job, backend: Backend | None, towers: BuiltTowers,
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


def _host_call(job: Job, towers: BuiltTowers, step: tf.Operation, global_step: tf.Variable
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
    """Makes sure that the default graph holds no cross-replica sum that only a TPU can run.

    Raises:
      ConfigError: if it does.
    """
    graph = tf.get_default_graph()
    if any(operation.type == 'CrossReplicaSum' for operation in graph.get_operations()):
        raise ConfigError(Problem(
            'E453', 'model_fn', 'cross-replica sums must be those of this package, since '
            'TensorFlow has no CPU kernel for its own', 'tf.tpu.cross_replica_sum',
            'Call estimator_tpu_embedding.install() before model_fn runs, or use '
            'estimator_tpu_embedding.CrossShardOptimizer.'))
