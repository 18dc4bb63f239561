"""Trains: finds the checkpoint to go on from, and makes the hooks that guard, save and log."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..checkpoint import model_dir, restore
from ..checkpoint.recover import Following, recover
from ..checkpoint.restore_plan import stored_words
from ..checkpoint.saver import CommittingSaver
from ..checkpoint.saver_builder import default_saver
from ..errors import Problem
from ..hosts.placement import worker_at
from ..proto.codec import plan_to_config
from .checkpoint_hooks import (
    AsyncCheckpointSaverHook,
    Background,
    CheckpointInputPipelineHook,
    SaverHook,
    SavesFinished,
)
from .failures import SessionLostError
from .finite_checks import FiniteLoss, FiniteWeights
from .job import Job, concatenate
from .job_run import Hooks, Run, RunParts
from .progress import RateHook, announce
from .run_sessions import scaffold_of
from .steps_per_run import StopAtStep, TrainingSchedule
from .summaries import summarize_tables


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """How often a training saves, logs and writes summaries, and how long a run of it is.

    Attributes:
      steps_per_run: steps of one `session.run`, unless `secs_per_run` is given.
      secs_per_run: seconds that one `session.run` should last, and between log lines; or `None`.
      save_steps: steps between checkpoints, or `None`.
      save_secs: seconds between checkpoints, or `None`.
      keep_max: checkpoints to keep.
      keep_every_n_hours: one checkpoint per this many hours is kept for good.
      summary_steps: steps between summaries; 0 or `None` writes none.
      log_steps: steps between log lines, or `None`.
      save_graph_def: whether checkpoints come with the graph.
      host_call_every: see `job_run.RunParts`.
    """

    steps_per_run: int
    secs_per_run: int | None
    save_steps: int | None
    save_secs: int | None
    keep_max: int
    keep_every_n_hours: float
    summary_steps: int | None
    log_steps: int | None
    save_graph_def: bool
    host_call_every: int


def train(job: Job, *, stop: StopAtStep, hooks: Sequence[tf.train.SessionRunHook],
          listeners: Sequence[tf.train.CheckpointSaverListener], cadence: Cadence) -> Any:
    """Trains from the newest checkpoint of `job.model_dir`, or from initial values.

    Args:
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
    with model_dir.claimed(job.model_dir), Background() as background, \
            job.building(tf.Graph()):
        found = recover(job.model_dir, job.checkpoint, job.known)
        run = Run(job)
        default = functools.partial(
            default_saver, cadence.keep_max, cadence.keep_every_n_hours, job.placement.client)
        scaffold = scaffold_of(job, run.graph, None if found is None else Following(
            job.model_dir, found, job.checkpoint, is_named=True), default)
        if found is not None:
            for fact in model_dir.continue_from(job.model_dir, found):
                announce(f'train: {fact}')
        if restore.saver_of(scaffold) is None:
            tf.add_to_collection(tf.GraphKeys.SAVERS, default())
        restore.keep_saver(scaffold)
        with _tf.without_deprecation_warnings():
            parts = _training_parts(run, cadence, stop, hooks, _Saving(
                scaffold=scaffold, listeners=listeners, lineage=set(), background=background),
                None if found is None else found.prefix)
        del found  # An index may take much memory.
        return run.execute(parts, wanted=lambda: stop.final_step)['loss']


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Saving:
    """How the savers of a training save; for `lineage` see `CommittingSaver`."""

    scaffold: tf.train.Scaffold
    listeners: Sequence[tf.train.CheckpointSaverListener]
    lineage: set[str]
    background: Background


def _training_parts(run: Run, cadence: Cadence, stop: StopAtStep,
                    hooks: Sequence[tf.train.SessionRunHook], saving: _Saving,
                    first: str | None) -> RunParts:
    """Returns the hooks and the steps of a training.

    They have the order of the original, with one change. The guards against a loss and weights
    that are not finite come before the saver, so that it does not save values that they refuse.
    `first` is the checkpoint that the first session restores, or `None`.
    """
    own = run.graph.outputs[0].hooks
    step = run.graph.step
    saving = dataclasses.replace(saving, listeners=[
        *[hook.listener() for hook in (*hooks, *own)
          if isinstance(hook, CheckpointInputPipelineHook)], *saving.listeners])
    savers, last = _saver_hooks(run, cadence, [*hooks, *own], saving)
    guards: Hooks = [FiniteLoss(step.loss)]
    if not run.job.deployment.has_copies:  # As in the original, where BROADCAST goes without.
        guards.append(FiniteWeights())
    return RunParts(
        scaffold=saving.scaffold, prefix=_Recovery(run, saving, first).prefix, ops=step,
        schedule=TrainingSchedule(stop, cadence.steps_per_run, cadence.secs_per_run),
        fetches={'loss': step.loss, 'step': step.operation},
        host_call_every=cadence.host_call_every,
        first=[*guards, *savers, *_summary_hooks(run, saving.scaffold, cadence)], given=hooks,
        middle=_log_hooks(run, cadence), last=last, feed=_feed_hook(run))


def _feed_hook(run: Run) -> tf.train.SessionRunHook | None:
    """Returns the user's hook that takes the place of the infeed, if there is one."""
    if run.job.feed_hook is None:
        return None
    tf.logging.info('Use user implemented tpu infeed outfeed session hook class.')
    signals = [output.signals for output in run.graph.distinct_outputs if output.signals]
    joined = {signals[0][0]: concatenate(signals)} if signals else {}
    return run.job.feed_hook(run.infeed, joined)


def _saver_hooks(run: Run, cadence: Cadence, given: Sequence[tf.train.SessionRunHook],
                 saving: _Saving) -> tuple[Hooks, Hooks]:
    """Returns the hook that saves, unless the user gave one, and hooks that come last."""
    words = stored_words(run.job.lookups.words) if run.job.lookups is not None else {}
    cluster, plan = run.job.cluster, run.job.plan
    config = b'' if plan is None else plan_to_config(plan).SerializeToString(deterministic=True)

    def committing(saver: Any, hook: tf.train.CheckpointSaverHook | None = None
                   ) -> CommittingSaver:
        told = [*saving.listeners, *(_tf.saving_listeners(hook) if hook is not None else [])]
        is_beside = run.job.checkpoint.asynchronous or isinstance(hook, AsyncCheckpointSaverHook)
        return CommittingSaver(
            saver, run.graph.tables, config, options=run.job.checkpoint,
            vocabularies=words, lineage=saving.lineage, known=run.job.known,
            place_at=None if cluster is None or not cluster.is_remote else (
                lambda device: worker_at(device, cluster.addresses())),
            # A listener that is told of a checkpoint must find it.
            background=saving.background if is_beside and not any(
                type(listener).after_save is not tf.train.CheckpointSaverListener.after_save
                for listener in told) else None)

    theirs = [hook for hook in given if isinstance(hook, tf.train.CheckpointSaverHook)]
    if theirs:
        savers = [_tf.replace_saver(hook, functools.partial(committing, hook=hook))
                  for hook in theirs]
        _tf.add_listeners(theirs[0], saving.listeners)
        tf.logging.info('Bypassing TPUEstimator hook')
        return [], [SavesFinished(saver) for saver in savers]
    if not cadence.save_steps and not cadence.save_secs:
        if saving.listeners:
            raise ValueError(
                'There should be a CheckpointSaverHook to use saving_listeners. Please set one '
                'of the RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs.')
        run.report.tell_that_nothing_is_saved()
        return [], []
    saver = committing(restore.saver_of(saving.scaffold))
    return [SaverHook(
        run.job.model_dir, save_secs=cadence.save_secs, save_steps=cadence.save_steps,
        saver=saver, listeners=list(saving.listeners), save_graph_def=cadence.save_graph_def)], [
            SavesFinished(saver)]


def _summary_hooks(run: Run, scaffold: tf.train.Scaffold, cadence: Cadence) -> Hooks:
    if not cadence.summary_steps:
        return []
    if not any(one.op.name == 'loss' for one in tf.get_collection(tf.GraphKeys.SUMMARIES)):
        tf.summary.scalar('loss', run.graph.step.loss)
    if run.job.plan is not None:
        summarize_tables(run.job.plan, run.graph)
    return [tf.train.SummarySaverHook(save_steps=cadence.summary_steps, scaffold=scaffold,
                                      output_dir=run.job.model_dir)]


def _log_hooks(run: Run, cadence: Cadence) -> Hooks:
    if not cadence.log_steps:
        return []
    with tf.control_dependencies([run.graph.step.operation]):
        step = tf.identity(run.graph.global_step)  # As it is when the loss is known.
    shown = {'loss': run.graph.step.loss, 'step': step}
    if cadence.secs_per_run is not None:
        log = tf.train.LoggingTensorHook(shown, every_n_secs=cadence.secs_per_run)
    else:
        log = tf.train.LoggingTensorHook(
            shown, every_n_iter=-(-cadence.log_steps // cadence.steps_per_run))
    return [log, RateHook(run.report, cadence.log_steps, cadence.secs_per_run,
                          run.job.model_dir if cadence.summary_steps else None,
                          run.graph.global_step)]


class _Recovery:
    """Finds the checkpoint from which each session of a training begins: the newest at that time.

    A later session can restore only checkpoints whose tables equal those of the run, and the one
    of the first session.
    """

    def __init__(self, run: Run, saving: _Saving, first: str | None):
        self._run, self._saving, self._first = run, saving, first
        self._begun = False

    def prefix(self) -> str | None:
        """Returns the newest checkpoint; `None` begins with initial values."""
        self._saving.background.wait()
        prefix = self._newest() if self._begun else self._first
        self._begun = True
        if prefix is not None:
            self._saving.lineage.add(prefix)
        return prefix

    def _newest(self) -> str | None:
        """Returns the newest checkpoint after the loss of a session."""
        job = self._run.job
        model_dir.tidy(job.model_dir)
        found = recover(job.model_dir, job.checkpoint, job.known)
        if found is not None and found.prefix != self._first and (
                found.manifest is None or found.manifest.tables != self._run.graph.tables):
            raise SessionLostError(Problem(
                'E802', 'session', 'a session that is made again must restore what this run or the '
                'one before it saved', f'{found.prefix}, whose tables are others', 'Those after it '
                'are damaged; what is wrong is in the log above. Start the training again.'))
        return None if found is None else found.prefix
