"""Builds the model of a job on every core: calls model_fn, then looks up and catches gradients.

Only model_fn determines the variable names of the tables. So it gets activations whose look-ups
are made afterwards, and nothing calls it twice in a graph.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..errors import Problem
from ..hosts.backend import Activations, Backend, LookupReceipt
from ..hosts.placed_graph import keep_on_host
from ..hosts.placement import on
from ..ops import checks
from .gradients import GradientCapture
from .input import Batch, CoreQueue, map_tensors
from .model import Job, ModelOutput
from .towers import Towers, seeded

_OUTSIDE = Problem(
    'E457', 'session.run', 'what depends on a batch must be evaluated together with a step',
    remedy='Let the before_run of a hook return SessionRunArgs(tensors).')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BuiltTowers:
    """The model on every core.

    Attributes:
      outputs: of the model, per core.
      rows: in a prediction the number of samples per core that are no padding; otherwise empty.
      taken: an operation that takes the batches of all cores.
      activations: per core, until `look_up` of a placeholder; empty without tables.
      table_names: the variable name of each table.
      capture: catches the gradients of activations; `None` if no table is trained.
      num_sums: how often the towers summed over replicas.
    """

    outputs: list[ModelOutput]
    rows: list[tf.Tensor]
    taken: tf.Operation
    activations: list[Activations]
    table_names: dict[str, str]
    capture: GradientCapture | None
    num_sums: int


def build_towers(job: Job, queues: Sequence[CoreQueue], is_step: tf.Tensor) -> BuiltTowers:
    """Calls the model for every core.

    Args:
      is_step: must be true where a batch is taken.
    """
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
    return BuiltTowers(
        outputs=outputs, rows=[batch.rows for batch in batches if batch.rows is not None],
        taken=taken, activations=activations, table_names=names, capture=capture,
        num_sums=towers.num_sums)


def look_up(towers: BuiltTowers, backend: Backend, is_step: tf.Tensor) -> list[LookupReceipt]:
    """Gives the model on every core its activations, and returns the receipts per core."""
    with _within_step(is_step):
        looked_up = [backend.lookup(core=core) for core in range(len(towers.activations))]
        ready = tf.group(*tf.nest.flatten([values for values, _ in looked_up]))
    _tf.wait_for(towers.taken, [ready])
    for activations, (values, _) in zip(towers.activations, looked_up):
        for feature, activation in activations.items():
            _tf.replace_input(activation.op, 0, values[feature])
    return [receipt for _, receipt in looked_up]


def _within_step(is_step: tf.Tensor) -> Any:
    """Returns the context of what takes a batch.

    Otherwise a hook that evaluates a tensor of the model by itself would take the batch of a
    step, or wait for one for ever.
    """
    return tf.control_dependencies([checks.require(is_step, _OUTSIDE, got=tf.constant(''))])


def _take_all(job: Job, queues: Sequence[CoreQueue]
              ) -> tuple[list[Batch], list[Activations], tf.Operation]:
    """Takes a batch of every core; no tensor of one is there before all are.

    So operations that depend on a batch read the global step after all look-ups have read it.

    Returns:
      The batches, the activations, and an operation that takes them. A model may ignore its
      features, but batches that nobody takes would fill the queues.
    """
    batches = [queue.dequeue() for queue in queues]
    # One operation that all wait for: otherwise each would wait for each by an edge of its own.
    taken = tf.group(*[operation for queue in queues for operation in queue.taken])
    looked_up = {} if job.plan is None else {
        feature.name: tf.placeholder(tf.float32, job.plan.output_shape(feature))
        for feature in job.plan.features}
    activations = []
    with tf.control_dependencies([taken]):
        for core, batch in enumerate(batches):
            with on(job.placement.core(core)):
                batches[core] = map_tensors(tf.identity, batch)
                if looked_up:
                    activations.append(map_tensors(tf.identity, looked_up))
    return batches, activations, taken


def table_gradients(job: Job, towers: BuiltTowers, receipts: Sequence[LookupReceipt]
                    ) -> list[Activations]:
    """Returns in training the gradients that tables get from each core; otherwise none.

    Raises:
      ValueError: if several cores train, but not one model.
    """
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
