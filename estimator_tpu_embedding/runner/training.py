"""Trains: finds the checkpoint to go on from, and makes the hooks that guard, save and log."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _legacy, _tf
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
from .finite_checks import FiniteLoss, FiniteWeights
from .job import Job, concatenate
from .job_run import Hooks, Run, RunParts
from .progress import RateHook, RunReport, announce
from .run_sessions import SessionLostError, scaffold_of
from .steps_per_run import Loop, Schedule
from .summaries import summarize_save, summarize_tables, write_layout


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
            parts = _training_parts(cadence, stop, hooks, _Saves(
                run, scaffold, listeners, background, None if found is None else found.prefix))
        del found  # An index may take much memory.
        return run.execute(parts, wanted=lambda: stop.final_step)['loss']


def _training_parts(cadence: Cadence, stop: StopAtStep, hooks: Sequence[tf.train.SessionRunHook],
                    saves: _Saves) -> RunParts:
    """Returns the hooks and the steps of a training.

    They have the order of the original, with one change. The guards against a loss and weights
    that are not finite come before the saver, so that it does not save values that they refuse.
    """
    run = saves.run
    step = run.graph.step
    savers, last = saves.hooks(cadence, [*hooks, *run.graph.outputs[0].hooks])
    guards: Hooks = [FiniteLoss(step.loss)]
    if not run.job.deployment.has_copies:  # As in the original, where BROADCAST goes without.
        guards.append(FiniteWeights())
    return RunParts(
        scaffold=saves.scaffold, prefix=saves.prefix, ops=step,
        schedule=TrainingSchedule(stop, cadence.steps_per_run, cadence.secs_per_run),
        fetches={'loss': step.loss, 'step': step.operation},
        host_call_every=cadence.host_call_every,
        first=[*guards, *savers, *_summary_hooks(run, saves.scaffold, cadence)], given=hooks,
        middle=_log_hooks(run, cadence), last=last, feed=_feed_hook(run))


def _feed_hook(run: Run) -> tf.train.SessionRunHook | None:
    """Returns the user's hook that takes the place of the infeed, if there is one."""
    if run.job.feed_hook is None:
        return None
    tf.logging.info('Use user implemented tpu infeed outfeed session hook class.')
    signals = [output.signals for output in run.graph.distinct_outputs if output.signals]
    joined = {signals[0][0]: concatenate(signals)} if signals else {}
    return run.job.feed_hook(run.infeed, joined)


def _summary_hooks(run: Run, scaffold: tf.train.Scaffold, cadence: Cadence) -> Hooks:
    if not cadence.summary_steps:
        return []
    if not any(one.op.name == 'loss' for one in tf.get_collection(tf.GraphKeys.SUMMARIES)):
        tf.summary.scalar('loss', run.graph.step.loss)
    if run.job.plan is not None:
        summarize_tables(run.job.plan, run.graph)
    write_layout(run.job.model_dir)
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


class TrainingSchedule(Schedule):
    """Makes loops of a number of steps or, if `seconds` is given, as long; up to a last step."""

    def __init__(self, stop: StopAtStep, steps: int, seconds: float | None = None):
        super().__init__(Loop(steps, 0))
        self._stop = stop
        self._seconds = seconds
        self._estimator = _legacy.module(
            'tpu.iteration_count_estimator').IterationCountEstimator()

    def next_loop(self, session: tf.Session, report: RunReport) -> Loop:
        """Returns the steps of the next loop, fewer than usual if the end comes earlier."""
        left = self._stop.steps_left(session)
        wanted = self._loop.steps if self._seconds is None else self._estimator.get(self._seconds)
        steps = max(1, min(wanted, left))
        report.first_step = self._stop.final_step - left - report.steps
        return Loop(steps, max(0, left - steps))

    def add(self, seconds: float, steps: int) -> None:
        """Lets the estimator know the time of a loop."""
        self._estimator.update(seconds, steps)


class StopAtStep(tf.train.SessionRunHook):
    """Ends training when the global step has reached the final step."""

    def __init__(self, steps: int | None, max_steps: int | None, limit: int | None = None):
        """Stops after `steps` or `limit` steps or at step `max_steps`, whichever comes first."""
        self._steps = steps
        self._limit = limit
        self._wanted = max_steps
        self._final_step: int | None = None
        self._global_step: tf.Tensor | None = None
        self._last_step = -1
        self._has_warned = False

    @property
    def final_step(self) -> int:
        """The step to stop at; known once a session exists."""
        assert self._final_step is not None
        return self._final_step

    def steps_left(self, session: tf.Session) -> int:
        """Returns how many steps lie between the global step and the final step."""
        return self.final_step - int(session.run(self._global_step))

    def begin(self) -> None:
        """Finds the global step as the saver reads it: a session optimizes each fetch by itself."""
        self._global_step = _tf.global_step_read(tf.get_default_graph())

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Fixes the final step at the first session; a recovered one does not move it.

        A session that is recovered at the final step is an error: the end of the run was lost, and
        another step would be one too many.
        """
        self._last_step = int(session.run(self._global_step))
        if self._final_step is not None and self._last_step >= self._final_step:
            raise SessionLostError(Problem(
                'E802', 'session', 'the last one must reach the end of the training',
                f'an Aborted or Unavailable error after step {self._last_step}, which is saved',
                'It is in the log above: perhaps of a hook, or of a listener of the saver.'))
        if self._final_step is None:
            ends = [self._wanted, *[self._last_step + steps for steps in (
                self._steps, self._limit) if steps is not None]]
            self._final_step = min(end for end in ends if end is not None)

    def after_run(self, run_context: tf.train.SessionRunContext, run_values: Any) -> None:
        """Asks for the end if it is time; warns of a step that stands still."""
        step = int(run_context.session.run(self._global_step))
        if step >= self.final_step:
            run_context.request_stop()
        elif step == self._last_step and not self._has_warned:
            self._has_warned = True
            tf.logging.warning(
                'The global step is %d as before this run, so training to step %d may never '
                'end. Pass tf.train.get_global_step() to minimize() or apply_gradients().',
                step, self.final_step)
        self._last_step = step


class _Saves:
    """How a training saves, and the checkpoint from which each session begins: the newest.

    A later session can restore only checkpoints whose tables equal those of the run, and the one
    of the first session.
    """

    def __init__(self, run: Run, scaffold: tf.train.Scaffold,
                 listeners: Sequence[tf.train.CheckpointSaverListener], background: Background,
                 first: str | None):
        """Saves by the saver of `scaffold`; `first` is restored by the first session, if given."""
        self.run, self.scaffold = run, scaffold
        self._listeners, self._background, self._first = listeners, background, first
        self._lineage: set[str] = set()
        self._begun = False

    def hooks(self, cadence: Cadence, given: Sequence[tf.train.SessionRunHook]
              ) -> tuple[Hooks, Hooks]:
        """Returns the hook that saves, unless the user gave one, and hooks that come last."""
        job = self.run.job
        listeners = [*[hook.listener() for hook in given
                       if isinstance(hook, CheckpointInputPipelineHook)], *self._listeners]
        words = stored_words(job.lookups.words) if job.lookups is not None else {}
        cluster, plan = job.cluster, job.plan
        config = b'' if plan is None else plan_to_config(plan).SerializeToString(deterministic=True)

        def committing(saver: Any, hook: tf.train.CheckpointSaverHook | None = None
                       ) -> CommittingSaver:
            told = [*listeners, *(_tf.saving_listeners(hook) if hook is not None else [])]
            is_beside = job.checkpoint.asynchronous or isinstance(
                hook, AsyncCheckpointSaverHook)
            return CommittingSaver(
                saver, self.run.graph.tables, config, options=job.checkpoint,
                vocabularies=words, lineage=self._lineage, known=job.known,
                took=functools.partial(summarize_save, job.model_dir)
                if cadence.summary_steps else None,
                place_at=None if cluster is None or not cluster.is_remote else (
                    lambda device: worker_at(device, cluster.addresses())),
                # A listener that is told of a checkpoint must find it.
                background=self._background if is_beside and not any(
                    type(listener).after_save is not tf.train.CheckpointSaverListener.after_save
                    for listener in told) else None)

        theirs = [hook for hook in given if isinstance(hook, tf.train.CheckpointSaverHook)]
        if theirs:
            savers = [_tf.replace_saver(hook, functools.partial(committing, hook=hook))
                      for hook in theirs]
            _tf.add_listeners(theirs[0], listeners)
            tf.logging.info('Bypassing TPUEstimator hook')
            return [], [SavesFinished(saver) for saver in savers]
        if not cadence.save_steps and not cadence.save_secs:
            if listeners:
                raise ValueError(
                    'There should be a CheckpointSaverHook to use saving_listeners. Please set '
                    'one of the RunConfig.save_checkpoints_steps or '
                    'RunConfig.save_checkpoints_secs.')
            self.run.report.tell_that_nothing_is_saved()
            return [], []
        saver = committing(restore.saver_of(self.scaffold))
        return [SaverHook(
            job.model_dir, save_secs=cadence.save_secs, save_steps=cadence.save_steps,
            saver=saver, listeners=listeners, save_graph_def=cadence.save_graph_def)], [
                SavesFinished(saver)]

    def prefix(self) -> str | None:
        """Returns the newest checkpoint; `None` begins with initial values."""
        self._background.wait()
        prefix = self._newest() if self._begun else self._first
        self._begun = True
        if prefix is not None:
            self._lineage.add(prefix)
        return prefix

    def _newest(self) -> str | None:
        """Returns the newest checkpoint after the loss of a session."""
        job = self.run.job
        model_dir.tidy(job.model_dir)
        found = recover(job.model_dir, job.checkpoint, job.known)
        if found is not None and found.prefix != self._first and (
                found.manifest is None or found.manifest.tables != self.run.graph.tables):
            raise SessionLostError(Problem(
                'E802', 'session', 'a session that is made again must restore what this run or the '
                'one before it saved', f'{found.prefix}, whose tables are others', 'Those after it '
                'are damaged; what is wrong is in the log above. Start the training again.'))
        return None if found is None else found.prefix
