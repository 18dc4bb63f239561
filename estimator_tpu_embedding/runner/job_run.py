"""Runs one training, evaluation or prediction: builds its graph, opens its session, makes steps.

However the run ends, it ends the infeed threads, and raises the root cause of a failure.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..checkpoint.recover import recover
from ..errors import CheckpointError, Problem, counted
from ..hosts.operation_devices import put_python_on_client
from ..hosts.transfers import pack_transfers
from .checkpoint_hooks import CheckpointInputPipelineHook
from .finite_checks import DivergedError
from .id_sampling import Profiler
from .infeed_threads import Infeed, drawing
from .job import Job
from .progress import DiskUse, RunReport, announce
from .root_cause import Failures, typed
from .run_sessions import SessionCreator, shares
from .signals_and_deadlines import Shutdown, Termination, woken_by_interrupt
from .step_graph import StepOps, build_step
from .steps_per_run import FeedsKept, Schedule, StepCaller, StepsPerRun, clock_of
from .summaries import SummariesSurvive, SummaryWriters

Hooks = list[tf.train.SessionRunHook]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What one kind of run has besides its graph: hooks by their place in the order, and steps.

    Attributes:
      prefix: returns the checkpoint that the next session restores, or `None`.
      fetches: nested tensors and operations that every run of the session is fetched with.
      results: operations and tensors that a step computes besides; its time includes them.
      host_call_every: steps from one host_call to the next, counted from the first of a loop.
      first: hooks that come before all others.
      given: the hooks given to the call of the estimator; the infeed follows them.
      feed: stands in the place of the infeed and passes calls on to it; `None` for the infeed.
      middle: hooks that come between the infeed and the hooks of the model.
      last: hooks that come after all others, except for the one that makes the steps.
    """

    scaffold: tf.train.Scaffold
    prefix: Callable[[], str | None]
    ops: StepOps
    schedule: Schedule
    fetches: dict[str, Any]
    results: Sequence[Any] = ()
    host_call_every: int = 1
    first: Sequence[tf.train.SessionRunHook] = ()
    given: Sequence[tf.train.SessionRunHook]
    feed: tf.train.SessionRunHook | None = None
    middle: Sequence[tf.train.SessionRunHook] = ()
    last: Sequence[tf.train.SessionRunHook] = ()


class Run:
    """One training, evaluation or prediction."""

    def __init__(self, job: Job):
        """Builds the graph of the job in the default graph, once its workers have answered."""
        if job.placement.is_remote:
            assert job.cluster is not None
            job.cluster.prepare()  # Before the graph: people learn at once who is missing.
        self.job = job
        self._failures = Failures()
        self.report = RunReport(job.verb, job.deployment.batch_size,
                                cores=job.deployment.topology.num_cores,
                                directory=job.model_dir if job.verb == 'train' else '')
        self._profiler = (
            Profiler(job.plan, self.report, len(job.deployment.invocations))
            if job.verb == 'train' and job.plan is not None and job.plan.profile_directory
            else None)
        # What workers read and write is not known here.
        self._disk = (DiskUse() if job.kernels.memory is not None and job.plan is not None
                      and not job.placement.is_remote else None)
        self._termination = Termination.of_process()
        self._shutdown = Shutdown(job.shutdown_deadline, self._termination)
        self.graph = build_step(job)
        if self.graph.backend is not None:
            self.report.kernels = self.graph.backend.engine.kernels
        self.infeed = Infeed(
            self.graph.input, job, self._profiler.drawing if self._profiler else drawing,
            shutdown=self._shutdown, failures=self._failures, report=self.report)
        self._has_data_ended = False

    def execute(self, parts: RunParts, *, wanted: Callable[[], int]) -> dict[str, Any]:
        """Runs until a hook asks for the end, the data ends, or something fails.

        Returns:
          The values that the last run fetched; `None` for each if there was no run.

        Raises:
          tf.errors.OutOfRangeError: if the data ended before the step that `wanted` returns; hooks
            have ended by then.
          Whatever failed first, in whichever thread.
        """
        values: dict[str, Any] = dict.fromkeys(parts.fetches)
        with contextlib.ExitStack() as stack:
            if self.job.verb == 'train':
                stack.enter_context(self._termination.awaited())
            stack.enter_context(woken_by_interrupt(self.infeed.interrupt))
            for values in self.results(parts):
                pass
        if self._has_data_ended:
            raise self._end_of_data(wanted())
        return values

    def results(self, parts: RunParts) -> Generator[dict[str, Any], None, None]:
        """Runs like `execute`, but yields the values of every run, and ends when the data ends.

        While a caller holds values, only the threads of the infeed run. They have ended when the
        generator has ended, also if it was closed early.
        """
        hooks = self._hooks(parts)
        self._announce()
        self._prepare_for_tasks(parts.fetches)
        creator = SessionCreator(
            self.job, parts.scaffold, parts.prefix, shutdown=self._shutdown, report=self.report)
        with self._threads_ended(), tf.train.MonitoredSession(creator, hooks) as session:
            try:
                while not session.should_stop():
                    began = time.monotonic()
                    try:
                        values = session.run(parts.fetches)
                    finally:
                        self.report.add_run(time.monotonic() - began)
                    yield values
            except tf.errors.OutOfRangeError as error:
                if self.job.verb != 'train':
                    self._termination.proceed()
                # Left alone, MonitoredSession takes every such error for the end of data.
                self._has_data_ended = (self._failures.root_cause() is None
                                        and self.infeed.progress.ended_input is not None)
                if not self._has_data_ended and not self._termination.is_asked:
                    raise RuntimeError(str(Problem(
                        'E526', 'model_fn', 'OutOfRangeError in the model', str(error),
                        'The data has not ended: look for a queue or an iterator that model_fn '
                        'made.'))) from error
            finally:
                self.infeed.stop()  # While the session that the threads use is still there.

    def _hooks(self, parts: RunParts) -> Hooks:
        """Returns all hooks in the order of the original; the last one makes the steps."""
        of_model = self.graph.outputs[0].hooks
        keeps_input = any(isinstance(hook, CheckpointInputPipelineHook)
                          for hook in [*parts.given, *of_model])
        if keeps_input and parts.ops.look_ahead is not None:
            tf.logging.warning('Look-ups run a step ahead: a resumed run skips one batch.')
        self.infeed.draws_ahead = not keeps_input
        given = [FeedsKept(hook) for hook in parts.given]
        own = [FeedsKept(hook) for hook in of_model]
        of_feed = [FeedsKept(parts.feed)] if parts.feed is not None else []
        clock = clock_of(self.graph.looked_up, tf.group(self.graph.trained, *parts.results),
                         parts.ops.operation)
        makes_steps = StepsPerRun(
            parts.schedule, self.infeed,
            StepCaller(parts.ops, clock, [*given, *of_feed, *own], parts.host_call_every),
            self.report, self._failures, is_over=self._is_over)
        profiler = [self._profiler] if self._profiler else []
        return [*parts.first, *given, SummaryWriters(), *profiler, *(of_feed or [self.infeed]),
                *parts.middle, *own, *parts.last, SummariesSurvive(), makes_steps]

    def _is_over(self) -> bool:
        """Returns whether SIGTERM ends the run after its step.

        It ends only a training: half of an evaluation would pass for all of it. An evaluation
        inside of a training goes on, then the training ends.
        """
        return self.job.verb == 'train' and self._termination.is_asked

    def _announce(self) -> None:
        job, batch_size = self.job, self.job.deployment.batch_size
        topology = job.deployment.topology
        line = f'{job.verb}: ' + (
            f'the same {batch_size} samples on all cores of {topology}'
            if job.deployment.has_copies else topology.batch_arithmetic(batch_size))
        plan = job.plan
        if plan is not None:
            how = sorted({table.optimizer.field for table in plan.tables if table.optimizer})
            trained = f', trained by {", ".join(how)}' if job.verb == 'train' else ''
            line += f'; {counted(len(plan.tables), f"{plan.strategy}-partitioned table")}{trained}'
            tf.logging.info('%s', plan)
        announce(line)
        if plan is not None and job.placement.is_remote:
            announce(f'{job.verb}: {shares(plan)}')

    @contextlib.contextmanager
    def _threads_ended(self) -> Iterator[None]:
        """Ends the infeed however the body ends, reports, and raises the root cause."""
        try:
            yield
        except Exception as error:
            cause = self._failures.root_cause()
            better = cause if cause is not None else typed(error)
            if isinstance(better, tf.errors.OutOfRangeError):
                # Callers would take it for the end of data, but it came from begin or end of hooks.
                better = RuntimeError(f'OutOfRangeError in a hook: {better}')
            if isinstance(better, DivergedError) and self.job.verb == 'train':
                better.tell_checkpoint(self._newest_checkpoint())
            if better is not error:
                raise better from None
            raise
        finally:
            self.infeed.stop()
            if self._profiler is not None:
                self._profiler.save()
            if self.job.cluster is not None:
                self.report.answers = self.job.cluster.answers()
            if self._disk is not None:
                self.report.disk = self._disk.per_step(self.report.steps)
            self.report.finish()

    def _newest_checkpoint(self) -> str | None:
        with contextlib.suppress(CheckpointError, OSError):
            found = recover(self.job.model_dir, self.job.checkpoint, self.job.known)
            return found.prefix if found is not None else None
        return None

    def _end_of_data(self, wanted: int) -> tf.errors.OutOfRangeError:
        return tf.errors.OutOfRangeError(
            None, None, f'The input of {self.infeed.progress.ended_input} ended: this '
            f'{self.job.verb} made {counted(self.report.steps, "step")} and was to reach step '
            f'{wanted}. '
            'Call .repeat() on the dataset, or ask for fewer steps. The steps that were run are '
            'complete.')

    def _prepare_for_tasks(self, fetches: Any) -> None:
        """Moves Python to the client and packs what crosses; a job without tasks stays as it is."""
        placement, step = self.job.placement, self.graph.step
        if not placement.is_remote:
            return
        whole = self.graph.global_step.graph
        put_python_on_client(whole, placement)
        # Each kind of run that is made again and again.
        runs = [[step.operation, step.loss, *step.refused, *tf.nest.flatten(fetches)]]
        if step.host_call is not None:
            runs.append([step.host_call])
        if step.look_ahead is not None:
            runs.append([step.look_ahead])
        pack_transfers(whole, [*runs, *[feed.fetches for feed in self.graph.input.feeds]],
                       placement.client)
