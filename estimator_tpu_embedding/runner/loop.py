"""Train and evaluate: sessions, hooks, and what is told when a run ends."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..checkpoint import commit, recover
from ..checkpoint.manifest import StoredTable, stored_tables
from ..errors import ConfigError, Problem
from . import model
from .faults import Failures, typed
from .graph import StepGraph, build_step
from .guards import FiniteLoss, StepsPerRun, StopAtStep
from .infeed import Infeed
from .model import Job
from .progress import RateHook, RunReport, announce


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """How often a training run does what besides training.

    Attributes:
      steps_per_run: steps of one `session.run`.
      save_steps: steps between checkpoints, or `None`.
      save_secs: seconds between checkpoints, or `None`.
      keep_max: checkpoints to keep.
      keep_every_n_hours: one of each so many hours is kept for good.
      summary_steps: steps between summaries; 0 or `None` writes none.
      log_steps: steps between log lines, or `None`.
      save_graph_def: whether checkpoints come with the graph.
    """

    steps_per_run: int
    save_steps: int | None
    save_secs: int | None
    keep_max: int
    keep_every_n_hours: float
    summary_steps: int | None
    log_steps: int | None
    save_graph_def: bool


def train(job: Job, *, stop: StopAtStep, hooks: Sequence[tf.train.SessionRunHook],
          listeners: Sequence[tf.train.CheckpointSaverListener], cadence: Cadence,
          warm_start: Any) -> float:
    """Trains from the newest checkpoint of `job.model_dir`, or from initial values.

    Args:
      job: what to train.
      stop: ends the run; must be one of `hooks`, in its place among them.
      hooks: of the user, and `stop`.
      listeners: told of every checkpoint.
      cadence: see there.
      warm_start: a function that is called when there is no checkpoint, or `None`.

    Returns:
      The loss of the last step.

    Raises:
      tf.errors.OutOfRangeError: if the data ended first. The steps that were run are saved.
      Whatever failed first, in whichever thread.
    """
    checkpoint = recover.newest_checkpoint(job.model_dir)
    with tf.Graph().as_default():
        run = _Run(job)
        graph = run.graph
        if checkpoint is None and warm_start is not None:
            warm_start()
        scaffold = _scaffold_of(graph, cadence)
        if checkpoint is not None:
            recover.check_fits(checkpoint, _full_shapes(), run.stored_tables(),
                               may_lack=graph.outputs[0].scaffold_fn is not None)
        all_hooks = _training_hooks(run, scaffold, stop, hooks, listeners, cadence)
        announce(run.first_line(checkpoint))
        creator = tf.train.ChiefSessionCreator(
            scaffold, checkpoint_dir=job.model_dir, config=job.session_config)
        loss = run.execute(creator, all_hooks, {'loss': graph.loss, 'step': graph.step})['loss']
        run.raise_if_data_ended(stop.final_step)
        return loss


def evaluate(job: Job, *, steps: int, hooks: Sequence[tf.train.SessionRunHook],
             checkpoint: str | None) -> dict[str, Any]:
    """Evaluates a checkpoint, or initial values if there is none.

    Args:
      job: what to evaluate.
      steps: how many batches of all cores.
      hooks: of the user.
      checkpoint: its prefix, or `None`.

    Returns:
      The metrics of the model over the samples of all cores, `'loss'`, the mean over cores and
      steps, and `'global_step'`.

    Raises:
      tf.errors.OutOfRangeError: if the data ended before the last step.
      Whatever failed first, in whichever thread.
    """
    with tf.Graph().as_default():
        run = _Run(job)
        graph = run.graph
        values, updates = _metrics(graph)
        scaffold = _scaffold_of(graph, None)
        if checkpoint is not None:
            recover.check_fits(checkpoint, _full_shapes(), run.stored_tables(),
                               may_lack=graph.outputs[0].scaffold_fn is not None)
        final = tf.train.FinalOpsHook(values)
        one_run = StepsPerRun(tf.group(graph.step, updates), graph.loss, run.infeed,
                              run.failures, run.report, steps_per_run=steps, stop=None)
        announce(run.first_line(checkpoint))
        creator = tf.train.ChiefSessionCreator(
            scaffold, checkpoint_filename_with_path=checkpoint, config=job.session_config)
        run.execute(creator, [*hooks, run.starter, run.infeed, *graph.outputs[0].hooks, final,
                              one_run], {'step': graph.step, 'updates': updates})
        run.raise_if_data_ended(steps)
        return final.final_ops_values


class _Start(tf.train.SessionRunHook):
    """Runs what every session of a run begins with."""

    def __init__(self, operation: tf.Operation):
        self._operation = operation

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        session.run(self._operation)


class _Run:
    """One train or evaluate: its graph, threads and report."""

    def __init__(self, job: Job):
        """Builds the graph of the job in the default graph."""
        self.job = job
        self.graph = build_step(job)
        self.failures = Failures()
        self.report = RunReport(job.verb, job.batch_size)
        self.infeed = Infeed(self.graph.feeds, self.graph.close, self.failures, self.report)
        self.starter = _Start(self.graph.start)
        self._data_ended = False

    def stored_tables(self) -> dict[str, StoredTable]:
        """The tables of the plan as its checkpoints hold them."""
        if self.job.embedding is None:
            return {}
        return stored_tables(self.job.embedding.plan, self.graph.table_names)

    def first_line(self, checkpoint: str | None) -> str:
        """What the user is told when the run begins."""
        topology = self.job.topology
        per_core = self.job.batch_size // topology.num_cores
        arithmetic = f'global {self.job.batch_size} = {topology} x {per_core}'
        start = f'from {checkpoint}' if checkpoint else 'from initial values'
        if self.job.embedding is None:
            return f'{self.job.verb} {start} on {topology}: {arithmetic}; no embedding tables'
        plan = self.job.embedding.plan
        how = sorted({table.optimizer.field for table in plan.tables if table.optimizer})
        trained = f', trained by {", ".join(how)}' if self.job.verb == 'train' else ''
        return (f'{self.job.verb} {start} on {topology}: {arithmetic}; {len(plan.tables)} '
                f'{plan.strategy}-partitioned tables{trained}')

    def execute(self, creator: tf.train.ChiefSessionCreator,
                hooks: Sequence[tf.train.SessionRunHook], fetches: dict[str, Any]
                ) -> dict[str, Any]:
        """Runs until a hook asks for the end, the data ends, or something fails.

        Returns:
          What the last run fetched; empty values before the first.
        """
        values: dict[str, Any] = dict.fromkeys(fetches)
        with self._threads_ended(), tf.train.MonitoredSession(creator, hooks) as session:
            began = time.monotonic()
            try:
                while not session.should_stop():
                    values = session.run(fetches)
            except tf.errors.OutOfRangeError as error:
                # Left to itself, MonitoredSession takes every such error for the end of data.
                self._data_ended = self._has_data_ended()
                if not self._data_ended:
                    raise RuntimeError(f'OutOfRangeError in the model: {error}') from error
            finally:
                self.report.seconds = time.monotonic() - began
                self.infeed.stop()  # While the session that the threads use is still there.
        self.report.file()
        return values

    @contextlib.contextmanager
    def _threads_ended(self) -> Iterator[None]:
        """Ends the infeed however the body ends, and raises the root cause if it failed."""
        try:
            yield
        except Exception as error:
            cause = self.failures.root_cause()
            if cause is not None and cause is not error:
                raise cause from None
            better = typed(error)
            if better is not error:
                raise better from None
            raise
        finally:
            self.infeed.stop()

    def _has_data_ended(self) -> bool:
        return self.failures.root_cause() is None and self.infeed.ended_host() is not None

    def raise_if_data_ended(self, wanted: int) -> None:
        """Says which host ran out of data at which step, if one did."""
        if self._data_ended:
            host = self.infeed.ended_host()
            raise tf.errors.OutOfRangeError(
                None, None, f'The input of host {host} ended after {self.report.steps} steps of '
                f'this {self.job.verb}; it was to reach step {wanted}. Call .repeat() on the '
                'dataset, or ask for fewer steps. The steps that were run are complete.')


def _scaffold_of(graph: StepGraph, cadence: Cadence | None) -> tf.train.Scaffold:
    """The user's scaffold or a new one, with a saver."""
    make = graph.outputs[0].scaffold_fn
    scaffold = tf.train.Scaffold()
    if make is not None:
        scaffold = make()
        if scaffold is None:
            raise ValueError('TPUEstimatorSpec.scaffold_fn returns None, which is not allowed')
    if scaffold.saver is None and cadence is not None and not tf.get_collection(
            tf.GraphKeys.SAVERS):
        tf.add_to_collection(tf.GraphKeys.SAVERS, commit.default_saver(
            cadence.keep_max, cadence.keep_every_n_hours))
    return scaffold


def _full_shapes() -> dict[str, list[int | None]]:
    """What a checkpoint must hold for the default graph: shapes by checkpoint name."""
    return dict(_tf.full_name_and_shape(variable) for variable in tf.global_variables())


def _training_hooks(run: _Run, scaffold: tf.train.Scaffold, stop: StopAtStep,
                    hooks: Sequence[tf.train.SessionRunHook],
                    listeners: Sequence[tf.train.CheckpointSaverListener], cadence: Cadence
                    ) -> list[tf.train.SessionRunHook]:
    """All hooks in the order of the original; the guard before them and the loop after."""
    graph, directory = run.graph, run.job.model_dir
    own = graph.outputs[0].hooks
    front: list[tf.train.SessionRunHook] = [FiniteLoss(graph.loss)]
    front += _saver_hooks(run, scaffold, [*hooks, *own], listeners, cadence)
    if cadence.summary_steps:
        tf.summary.scalar('loss', graph.loss)
        front.append(tf.train.SummarySaverHook(
            save_steps=cadence.summary_steps, output_dir=directory, scaffold=scaffold))
    back: list[tf.train.SessionRunHook] = [
        tf.train.NanTensorHook(graph.loss), run.starter, run.infeed]
    if cadence.log_steps:
        every = -(-cadence.log_steps // cadence.steps_per_run)
        step = _tf.global_step_read(tf.get_default_graph())
        back.append(tf.train.LoggingTensorHook({'loss': graph.loss, 'step': step},
                                               every_n_iter=every))
        back.append(RateHook(run.job.batch_size, cadence.log_steps, directory, step))
    loop = StepsPerRun(graph.step, graph.loss, run.infeed, run.failures, run.report,
                       steps_per_run=cadence.steps_per_run, stop=stop)
    return [*front, *hooks, *back, *own, loop]


def _saver_hooks(run: _Run, scaffold: tf.train.Scaffold,
                 given: Sequence[tf.train.SessionRunHook],
                 listeners: Sequence[tf.train.CheckpointSaverListener], cadence: Cadence
                 ) -> list[tf.train.SessionRunHook]:
    """The hook that saves, unless the user gave one; listeners are attached to it."""
    theirs = [hook for hook in given if isinstance(hook, tf.train.CheckpointSaverHook)]
    if theirs:
        _refuse_unordered(run)
        if listeners:
            raise ConfigError(Problem(
                'E454', 'saving_listeners', 'they cannot be combined with a CheckpointSaverHook '
                'of your own', remedy='Pass them to that hook: CheckpointSaverHook('
                'listeners=...).'))
        return []
    if not cadence.save_steps and not cadence.save_secs:
        if listeners:
            raise ValueError(
                'There should be a CheckpointSaverHook to use saving_listeners. Please set one '
                'of the RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs.')
        return []
    saver = scaffold.saver or tf.get_collection(tf.GraphKeys.SAVERS)[0]
    return [tf.train.CheckpointSaverHook(
        run.job.model_dir, save_secs=cadence.save_secs, save_steps=cadence.save_steps,
        saver=commit.CommittingSaver(saver, run.stored_tables()), listeners=list(listeners),
        save_graph_def=cadence.save_graph_def)]


def _refuse_unordered(run: _Run) -> None:
    """A saver hook of the user writes no manifest, and mod rows mean nothing without one."""
    if any(table.strategy == 'mod' for table in run.stored_tables().values()):
        raise ConfigError(Problem(
            'E455', 'training_hooks', 'a job with partition_strategy="mod" must leave saving to '
            'the estimator', 'a CheckpointSaverHook',
            'Set save_checkpoints_steps or save_checkpoints_secs of the RunConfig instead.'))


def _metrics(graph: StepGraph) -> tuple[dict[str, tf.Tensor], tf.Operation]:
    """The values and the update of the metrics, over the samples of all cores."""
    pairs: dict[str, Any] = {}
    declared = graph.outputs[0].metrics
    if declared is not None:
        tensors = model.concatenate(graph.outputs)
        function = declared[0]
        pairs = dict(function(**tensors) if isinstance(tensors, dict) else function(*tensors))
    for name in ('loss', 'global_step'):
        if name in pairs:
            raise ValueError(f'Metric with name "{name}" is not allowed, because Estimator '
                             'already defines a default metric with the same name.')
    pairs['loss'] = tf.metrics.mean(graph.loss)
    values = {name: value for name, (value, _) in pairs.items()}
    values['global_step'] = tf.identity(graph.global_step)
    return values, tf.group(*[update for _, update in pairs.values()])
