"""One step of a job as a graph: batches and look-ups in, towers, update."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.deployment import Invocation
from ..errors import ConfigError, Problem
from ..hosts.backend import Activations, Backend, LookupReceipt
from ..hosts.choice import make_backend
from ..hosts.pipelined import PipelinedBackend
from ..ops import checks
from . import model, padding
from .blocked import called_in_time
from .gradients import GradientCapture
from .input import Batch, CoreQueue, HostFeed, Input, map_tensors, open_input
from .host_calls import call_on_host, operations_of, read_before_increment
from .measures import Measured
from .model import Job, ModelOutput, concatenate
from .randomness import random_states_kept
from .towers import Towers


_OUTSIDE = Problem(
    'E457', 'session.run', 'what depends on a batch must be evaluated together with a step',
    remedy='Let the before_run of a hook return SessionRunArgs(tensors).')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepGraph:
    """The operations of a run.

    Attributes:
      feeds: what the infeed threads run, per invocation of input_fn.
      close: ends every wait for batches.
      start: run once per session, before anything else.
      outputs: what the model gave on each core.
      distinct_outputs: those of the cores that have samples of their own.
      rows: in a prediction how many samples of each core are no padding; else empty.
      loss: mean of the losses of all cores; 0 in a prediction.
      step: one step; in training everything that changes but what a host_call does.
      host_call: in training what a host_call does in one step; `None` if there is none.
      refused: of a training step with tables: whose gradients were not finite.
      is_step: must be fed `True` to run anything that takes a batch.
      begin: run before the first step of a session, or `None`.
      has_next: must be fed `True` with every step that another follows; `None` if it is all one.
      global_step: the variable.
      table_names: the variable name of each table.
      measured: what can be told of a step besides.
    """

    feeds: list[HostFeed]
    close: tf.Operation
    start: tf.Operation
    outputs: list[ModelOutput]
    distinct_outputs: list[ModelOutput]
    rows: list[tf.Tensor]
    loss: tf.Tensor
    step: tf.Operation
    host_call: tf.Operation | None
    refused: Refused | None
    is_step: tf.Tensor
    begin: tf.Operation | None
    has_next: tf.Tensor | None
    global_step: tf.Variable
    table_names: dict[str, str]
    measured: Measured


class Refused(NamedTuple):
    """Whose gradients a step refuses, so that it changes no table.

    Attributes:
      step: the global step that it begins at.
      tables: the names of the tables, string `[n]`; usually none.
    """

    step: tf.Tensor
    tables: tf.Tensor


@dataclasses.dataclass(slots=True)
class _Inputs:
    """What input_fn gives, per invocation and per core, before it is handed over."""

    sources: list[Input]
    rests: list[Batch]
    featurized: list[Any]


def build_step(job: Job) -> StepGraph:
    """Builds one step in the default graph, which must be new.

    Raises:
      ConfigError, InputError: for what the user's functions gave.
    """
    tf.set_random_seed(job.seed)
    tf.get_variable_scope().set_use_resource(True)
    global_step = tf.train.create_global_step()
    _tf.global_step_read(tf.get_default_graph())
    inputs = _draw(job)
    queues = [CoreQueue(core, rest) for core, rest in enumerate(inputs.rests)]
    backend: Backend | None = None
    names: dict[str, str] = {}
    plan = job.plan
    if plan is not None and job.lookups is not None:
        names = model.trace_variable_names(job, job.lookups, inputs.rests[0])
        backend = make_backend(plan, names, global_step,
                               skips_nonfinite=job.skips_nonfinite, kernels=job.kernels)
        if plan.pipelined and plan.mode == 'training':
            backend = PipelinedBackend(backend, global_step)
    ahead = backend if isinstance(backend, PipelinedBackend) else None
    feeds = [_feed_of(invocation, inputs, queues, backend)
             for invocation in job.deployment.invocations]
    is_step = tf.placeholder_with_default(False, [], 'is_step')
    towers = _build_towers(job, queues, backend, is_step)
    # A train_op that needs nothing of the batch could else come first, and rates be those of
    # the next step.
    read_before_increment(global_step, [receipt.step for receipt in towers.receipts])
    refuse_foreign_sums()
    losses = [output.loss for output in towers.outputs if output.loss is not None]
    loss = tf.add_n(losses) / len(losses) if losses else tf.zeros([])
    gradients = _table_gradients(job, towers)
    operations, refused = _training_step(job, backend, towers, gradients)
    step = tf.group(*operations, *towers.rows, towers.taken, loss)
    host_call = _host_call(job, towers, step, global_step)
    if host_call is not None and job.verb != 'train':
        step, host_call = tf.group(step, host_call), None
    engine = [backend.open(), backend.load()] if backend else []
    capture = [towers.capture.initializer] if towers.capture else []
    closes = [queue.close() for queue in queues] + ([backend.close()] if backend else [])
    return StepGraph(feeds=feeds, close=tf.group(*closes), start=tf.group(*engine, *capture),
                     outputs=towers.outputs, distinct_outputs=(
                         towers.outputs[:1] if job.deployment.has_copies else towers.outputs),
                     rows=towers.rows, loss=loss, step=step, host_call=host_call,
                     refused=refused, is_step=is_step,
                     begin=ahead.begin() if ahead else None,
                     has_next=ahead.has_next if ahead else None,
                     global_step=global_step, table_names=names,
                     measured=Measured(
                         towers.taken, [loss, *operations[:1], *tf.nest.flatten(gradients)],
                         backend, towers.receipts, gradients))


def _draw(job: Job) -> _Inputs:
    """Opens the input of every invocation; takes features and ids of every core apart."""
    inputs = _Inputs([], [], [])
    size = job.deployment.batch_size_per_core
    for invocation in job.deployment.invocations:
        with called_in_time(invocation.name, job.input_deadline):
            source = job.source(invocation)
        drawn = open_input(source, job.deployment, invocation, axes=job.batch_axes,
                           padded=job.verb == 'predict')
        inputs.sources.append(drawn)
        for core, batch in zip(invocation.cores, drawn.batches):
            if job.lookups is not None:
                featurized = job.lookups.featurize(batch.features, core)
                inputs.featurized.append(featurized)
                batch = batch._replace(features=featurized.rest)
            if batch.rows is not None:
                batch = Batch(padding.filled(batch.features, size),
                              padding.filled(batch.labels, size), batch.rows)
            inputs.rests.append(batch)
    return inputs


def _feed_of(invocation: Invocation, inputs: _Inputs, queues: Sequence[CoreQueue],
             backend: Backend | None) -> HostFeed:
    """What the infeed thread of an invocation runs once per step."""
    host, cores = invocation.host, invocation.cores
    enqueues = [queues[core].enqueue(inputs.rests[core]) for core in cores]
    counted: tuple[str, ...] = ()
    counts = [tf.zeros([0, 4], tf.int64)]
    ids: dict[str, Any] = {}
    if backend is not None:
        for core in cores:
            featurized = inputs.featurized[core]
            enqueues.append(backend.enqueue(featurized.batches, host=host, core=core))
    if inputs.featurized:
        counted = tuple(inputs.featurized[cores[0]].counts)
        counts = [tf.reshape(tf.stack([number for name in counted
                                       for number in inputs.featurized[core].counts[name]]),
                             [-1, 4]) for core in cores]
        for feature in backend.plan.features if backend is not None else ():
            own = [inputs.featurized[core].batches[feature.name] for core in cores]
            ids[feature.name] = [(batch.samples, batch.ids) for batch in own]
    ends = ([backend.end(host=host, core=core) for core in cores]
            if isinstance(backend, PipelinedBackend) else [])
    drawn = inputs.sources[invocation.index]
    return HostFeed(invocation.name, drawn.initializer, tf.group(*enqueues), counted,
                    tf.add_n(counts), drawn.has_data, tf.group(*ends), drawn.is_dataset, ids)


@dataclasses.dataclass(slots=True)
class _BuiltTowers:
    """The model on every core, and what its training needs."""

    outputs: list[ModelOutput]
    rows: list[tf.Tensor]
    taken: tf.Operation
    receipts: list[LookupReceipt]
    capture: GradientCapture | None
    num_sums: int


def _build_towers(job: Job, queues: Sequence[CoreQueue], backend: Backend | None,
                  is_step: tf.Tensor) -> _BuiltTowers:
    """Looks up and calls the model for every core."""
    cores = range(job.topology.num_cores)
    # Else a hook that evaluates a tensor of the model by itself would take the batch of a
    # step, or wait for one for ever.
    with tf.control_dependencies([checks.require(is_step, _OUTSIDE, got=tf.constant(''))]):
        looked_up = [backend.lookup(core=core) for core in cores] if backend else []
        batches, activations, taken = _take_all(queues, [values for values, _ in looked_up])
    capture = None
    if backend is not None and job.verb == 'train':
        capture = GradientCapture(backend.plan)

    def build(core: int) -> ModelOutput:
        features, labels, _ = batches[core]
        if backend is not None:
            own = activations[core]
            features = {**features, **(capture.hook(core, own) if capture else own)}
        return job.call_model(core, features, labels)

    towers = Towers[ModelOutput](job.topology.num_cores)
    if job.seed is None:
        outputs = towers.build(build)
    else:
        with random_states_kept(job.seed):
            outputs = towers.build(build)
    _tf.forget_column_scopes(tf.get_default_graph())
    rows = [batch.rows for batch in batches if batch.rows is not None]
    return _BuiltTowers(outputs, rows, taken, [receipt for _, receipt in looked_up], capture,
                        towers.num_sums)


def _take_all(queues: Sequence[CoreQueue], activations: list[Activations]
              ) -> tuple[list[Batch], list[Activations], tf.Operation]:
    """Takes a batch of every core; no tensor can be had before all can.

    So what depends on a batch reads the global step after the look-ups of all cores did.

    Returns:
      The batches, the activations, and an operation that takes them: a model may ignore its
      features, yet what it does not take would fill the queues.
    """
    batches = [queue.dequeue() for queue in queues]
    # One operation that all wait for: else each would wait for each by an edge of its own.
    taken = tf.group(*[operation for queue in queues for operation in queue.taken],
                     *tf.nest.flatten(activations))
    with tf.control_dependencies([taken]):
        return (*map_tensors(tf.identity, (batches, activations)), taken)


def _table_gradients(job: Job, towers: _BuiltTowers) -> list[Activations]:
    """In training the gradients that tables get of every core."""
    if job.verb != 'train':
        return []
    _check_sums(job, towers.num_sums)
    if towers.capture is None:
        return []
    towers.capture.finish()
    gradients = [towers.capture.gradients(core) for core in range(len(towers.outputs))]
    if job.lookups is not None and job.lookups.gradient_multiplier is not None:
        factor = tf.cast(job.lookups.gradient_multiplier(towers.receipts[0].step), tf.float32)
        gradients = map_tensors(lambda gradient: gradient * factor, gradients)
    return gradients


def _training_step(job: Job, backend: Backend | None, towers: _BuiltTowers,
                   gradients: list[Activations]) -> tuple[list[tf.Operation], Refused | None]:
    """Tower 0's train_op, and the update of the tables from the gradients of all towers."""
    if job.verb != 'train':
        return [], None
    train_op = towers.outputs[0].train_op
    if backend is None:
        return [train_op], None
    step = towers.receipts[0].step
    names = tf.constant([table.name for table in backend.plan.tables])
    refused = Refused(step, checks.masked(names, backend.update(towers.receipts, gradients)))
    return [train_op, refused.tables.op], refused


def _host_call(job: Job, towers: _BuiltTowers, step: tf.Operation, global_step: tf.Variable
               ) -> tf.Operation | None:
    """What the host_call of the model does when `step` is complete."""
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


def _check_sums(job: Job, num_sums: int) -> None:
    """Makes sure that the cores train one model, not each its own."""
    if job.topology.num_cores > 1 and num_sums == 0:
        raise ValueError('CrossShardOptimizer must be used for model training on TPUs.  Wrap '
                         'the optimizer in model_fn: tf.tpu.CrossShardOptimizer(optimizer).')
