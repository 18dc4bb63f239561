"""Evaluates and predicts: gives metrics over the samples of all cores, or a row per sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..checkpoint.recover import Following
from ..errors import Problem
from ..hosts.backend import QUEUE_CAPACITY
from ..ops import checks
from .host_calls import call_on_host
from .job import Job, concatenate
from .job_run import Run, RunParts
from .run_sessions import scaffold_of
from .signals_and_deadlines import woken_by_interrupt
from .step_graph import StepGraph
from .steps_per_run import Loop, Schedule

_MOST_BYTES = 2**30


def evaluate(job: Job, *, steps: int, hooks: Sequence[tf.train.SessionRunHook],
             following: Following | None) -> Any:
    """Evaluates a checkpoint, or initial values if there is none.

    Args:
      steps: number of batches; each is for all cores.
      following: the checkpoint, or `None`.

    Returns:
      A dict of the metrics of the model over the samples of all cores, of `'loss'`, which is the
      mean over cores and steps, and of `'global_step'`.

    Raises:
      tf.errors.OutOfRangeError: if the data ended before the last step.
      Whatever failed first, in whichever thread.
    """
    with job.building(tf.Graph()):
        run = Run(job)
        graph = run.graph
        values, updates = _metrics(graph)
        scaffold = scaffold_of(job, run.graph, following)
        prefix = None if following is None else following.prefix
        with _tf.without_deprecation_warnings():
            final = tf.train.FinalOpsHook(values)
        step = dataclasses.replace(
            graph.step, operation=tf.group(graph.step.operation, updates))
        run.execute(RunParts(
            scaffold=scaffold, prefix=lambda: prefix, ops=step,
            schedule=Schedule(Loop(steps, 0)), results=[updates],
            given=hooks, middle=[final],
            fetches={'step': graph.step.operation, 'updates': updates}), wanted=lambda: steps)
        return final.final_ops_values


def _count() -> tf.Operation:
    """Returns the operation that counts the steps where hooks of TensorFlow look for them."""
    step = tf.get_variable(
        'eval_step', [], tf.int64, tf.zeros_initializer(), trainable=False, use_resource=True,
        collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.EVAL_STEP])
    return step.assign_add(1, read_value=False)


def _metrics(graph: StepGraph) -> tuple[dict[str, tf.Tensor], tf.Operation]:
    """Returns the values and the update of the metrics, over the samples of all cores."""
    pairs = _declared_metrics(graph)
    for name, shown in (('loss', '"loss"'), ('global_step', '`global_step`')):
        if name in pairs:
            raise ValueError(f'Metric with name {shown} is not allowed, because Estimator '
                             'already defines a default metric with the same name.')
    pairs['loss'] = tf.metrics.mean(graph.step.loss)
    values = {name: value for name, (value, _) in pairs.items()}
    values['global_step'] = tf.identity(graph.global_step)
    return values, tf.group(*[update for _, update in pairs.values()], _count())


def _declared_metrics(graph: StepGraph) -> dict[str, Any]:
    """Calls `eval_metrics` with the tensors of all cores; returns by name a value and its update.
    """
    declared = graph.outputs[0].metrics
    if declared is None:
        return {}
    made = call_on_host('eval_metrics', declared[0], concatenate(
        [output.metrics for output in graph.distinct_outputs]))
    if not isinstance(made, Mapping):
        raise TypeError(f'eval_metric_ops must be a dict, given: {made}')
    for name, pair in made.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError('Values of eval_metric_ops must be (metric_value, update_op) tuples, '
                            f'given: {pair} for key: {name}')
    return dict(made)


def predict(job: Job, *, select: Callable[[Any], Any],
            hooks: Sequence[tf.train.SessionRunHook], following: Following | None
            ) -> Generator[Any, None, None]:
    """Predicts with a checkpoint, or with initial values if there is none, to the end of the data.

    Args:
      select: the predictions of the model -> the wanted ones.
      following: the checkpoint to restore, or `None`.

    Yields:
      Per step the values that `select` chose, with the rows of all cores one after another. Core 0
      of host 0 comes first. Between two steps the default graph is the caller's.

    Raises:
      Whatever failed first, in whichever thread.
    """
    graph = tf.Graph()
    with job.building(graph):
        run = Run(job)
        wanted = select(_of_all_cores(job, run.graph))
        scaffold = scaffold_of(job, run.graph, following)
        prefix = None if following is None else following.prefix
    results = run.results(RunParts(
        scaffold=scaffold, prefix=lambda: prefix, ops=run.graph.step,
        schedule=Schedule(Loop(1, QUEUE_CAPACITY)), results=tf.nest.flatten(wanted),
        given=hooks,
        fetches={'wanted': wanted, 'step': run.graph.step.operation}))
    try:
        while True:
            with job.building(graph), woken_by_interrupt(run.infeed.interrupt):
                values = next(results, None)
            if values is None:
                if not run.report.steps:
                    tf.logging.warning('%s', Problem(
                        'W525', 'predict', 'the input should give a batch', '0 batches, so there '
                        'are 0 predictions', 'A dataset that is batched with drop_remainder=True '
                        f'gives none below {job.deployment.input_batch_size} samples.'))
                return
            yield values['wanted']
    finally:
        with job.building(graph):
            results.close()


def _of_all_cores(job: Job, graph: StepGraph) -> Any:
    """Returns the predictions of all cores, one after another, without padding."""
    size = job.deployment.batch_size_per_core
    cores = [output.predictions for output in graph.distinct_outputs]
    if isinstance(cores[0], Mapping):
        joined = {key: _joined(key, [core[key] for core in cores], graph.rows, size)
                  for key in cores[0]}
        _check_transfer(len(cores), cores[0])
        return joined
    if not isinstance(cores[0], tf.Tensor):
        raise TypeError('TPUEstimatorSpec.predictions must be dict of Tensors.')
    return _joined('predictions', cores, graph.rows, size)


def _check_transfer(cores: int, predictions: Mapping[str, tf.Tensor]) -> None:
    """Raises ValueError beyond the limit of the original: a model must predict there too."""
    sizes = [(tensor.shape.num_elements() or 0) * tensor.dtype.size * cores
             for tensor in predictions.values()]
    if sum(sizes) >= _MOST_BYTES:
        lines = [f' -- Key: {key}, Shape: {tensor.shape}' for key, tensor in predictions.items()]
        raise ValueError(
            'The estimated size for TPUEstimatorSpec.predictions is too large. The transfer size '
            'is larger than the protobuf limit. Please consider to use Tensors with smaller '
            'shapes or reduce batch size. Given:\n' + '\n'.join(lines))


def _joined(key: str, tensors: Sequence[tf.Tensor], rows: Sequence[tf.Tensor], size: int
            ) -> tf.Tensor:
    """Joins a prediction of all cores; if it has a row per sample, the first `rows` of each core.
    """
    first = tensors[0]
    if first.shape.rank == 0:
        raise RuntimeError('All tensors outfed from TPU should preserve batch size dimension, '
                           f'but got scalar {first}')
    if first.shape.rank is None or first.shape.dims[0].value is None:
        raise ValueError(f'The tensor with key ({key}) in TPUEstimatorSpec.predictions has '
                         f'dynamic shape (should be static). Tensor: {first}')
    if first.shape.dims[0].value == size:
        return tf.concat([tensor[:count] for tensor, count in zip(tensors, rows)], 0)
    full = tf.equal(tf.stack(rows), size)
    whole = checks.require(full, Problem(
        'E523', f'prediction "{key}"', f'its first dimension must be the batch of {size} samples '
        'per core where batches are filled up', remedy='Return one row per sample, or give only '
        'full batches to all cores.'), got=tf.constant(f'shape {first.shape}'))
    with tf.control_dependencies([whole]):
        return tf.concat(tensors, 0)
