"""Trains and evaluates a model: finds the checkpoint, makes the hooks, and runs the steps.

`run.py` runs the steps of any kind; `predictions.py` predicts.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..checkpoint import directory, restore
from ..checkpoint.following import Following
from ..checkpoint.recover import recover
from ..checkpoint.saver import Lineage, default_saver
from .background import Background
from .graph import StepGraph
from .host_calls import call_on_host
from .initial_values import scaffold_of
from .model import Job, concatenate
from .progress import announce
from .run import Run
from .run_hooks import HookPlaces, RunSteps, hooks_of
from .schedule import EvaluationSchedule
from .session_creators import PlainCreator, RecoveringCreator
from .stop_at_step import StopAtStep
from .training_hooks import Cadence, Saving, training_hooks


def train(job: Job, *, stop: StopAtStep, hooks: Sequence[tf.train.SessionRunHook],
          listeners: Sequence[tf.train.CheckpointSaverListener], cadence: Cadence) -> Any:
    """Trains from the newest checkpoint of `job.model_dir`, or from initial values.

    Args:
      job: the training.
      stop: ends the run; must be one of `hooks`, in its place among them.
      hooks: of the user, and `stop`.
      listeners: told of every checkpoint.
      cadence: how often the run saves, logs and writes summaries.

    Returns:
      The loss of the last step.

    Raises:
      tf.errors.OutOfRangeError: if the data ended first. The steps that were run are saved.
      CheckpointError: if `job.model_dir` cannot be used, or its checkpoint cannot be restored.
      Whatever failed first, in whichever thread.
    """
    with directory.claimed(job.model_dir), Background() as background, \
            job.building(tf.Graph()):
        found = recover(job.model_dir, job.checkpoint, job.known)
        run = Run(job)
        default = functools.partial(
            default_saver, cadence.keep_max, cadence.keep_every_n_hours, job.placement.client)
        scaffold = scaffold_of(run, found and Following(
            job.model_dir, found.held, job.checkpoint, is_named=True), default)
        if found is not None:
            for fact in directory.continue_from(job.model_dir, found):
                announce(f'train: {fact}')
        if scaffold.saver is None and not tf.get_collection(tf.GraphKeys.SAVERS):
            tf.add_to_collection(tf.GraphKeys.SAVERS, default())
        restore.keep_saver(scaffold)
        lineage = Lineage()
        with _tf.without_deprecation_warnings():
            all_hooks = training_hooks(run, cadence, stop, hooks, Saving(
                scaffold=scaffold, listeners=listeners, lineage=lineage, background=background))
        creator = RecoveringCreator(scaffold, job, run.stored_tables(), lineage, background,
                                    None if found is None else found.prefix)
        del found  # An index may take much memory.
        fetches = {'loss': run.graph.step.loss, 'step': run.graph.step.operation}
        return run.execute(creator, all_hooks, fetches, wanted=lambda: stop.final_step)['loss']


def evaluate(job: Job, *, steps: int, hooks: Sequence[tf.train.SessionRunHook],
             following: Following | None) -> Any:
    """Evaluates a checkpoint, or initial values if there is none.

    Args:
      job: the evaluation.
      steps: number of batches; each is for all cores.
      hooks: of the user.
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
        scaffold = scaffold_of(run, following)
        with _tf.without_deprecation_warnings():
            final = tf.train.FinalOpsHook(values)
        step = dataclasses.replace(
            graph.step, operation=tf.group(graph.step.operation, updates))
        all_hooks = hooks_of(run, HookPlaces(given=hooks, middle=[final]), RunSteps(
            ops=step, schedule=EvaluationSchedule(steps), results=[updates]))
        creator = PlainCreator(job, scaffold, None if following is None else following.prefix)
        run.execute(creator, all_hooks, {'step': graph.step.operation, 'updates': updates},
                    wanted=lambda: steps)
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

    Raises:
      TypeError: as the original does, if the function returns something else.
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
