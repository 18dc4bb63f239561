"""One run: a graph, its threads, a monitored session, and an honest end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..checkpoint.manifest import StoredTable, stored_tables
from ..checkpoint.recover import newest_checkpoint
from ..errors import CheckpointError, Problem, counted
from ..proto.codec import plan_to_config
from .shutdown import PROMPT_SECONDS, Shutdown
from .faults import DivergedError, Failures, typed
from .graph import build_step
from .steps_per_run import FeedsKept, StepOps, StepsPerRun
from .stop_at_step import StopAtStep
from .host_calls import SummaryWriters
from .infeed import Infeed
from .input import drawing
from .input_state import CheckpointInputPipelineHook
from .measures import clock_of
from .model import Job
from .pace import Pace
from .id_sampling import Profiler
from .progress import RunReport, announce
from .session_creators import SessionCreator, SessionStart
from .signals import Termination, woken_by_interrupt
from .summaries import SummariesSurvive


def _profiler_of(job: Job, report: RunReport) -> Profiler | None:
    """What counts the ids of a training run that names a directory for that."""
    if job.verb != 'train' or job.plan is None or not job.plan.profile_directory:
        return None
    return Profiler(job.plan, report, len(job.deployment.invocations))


class Run:
    """One train, evaluate or predict.

    Attributes:
      job: what runs.
      graph: its operations.
      failures: of all threads.
      report: how far it is.
      profiler: the hook that counts ids for profiles; `None` where nobody asked for them.
      infeed: the hook that feeds it.
      start: the hook that begins every session.
      termination: whether SIGTERM has asked for the end.
      shutdown: the deadline of the end.
    """

    def __init__(self, job: Job):
        """Builds the graph of the job in the default graph."""
        self.job = job
        self.failures = Failures()
        self.report = RunReport(job.verb, job.batch_size,
                                directory=job.model_dir if job.verb == 'train' else '')
        self.profiler = _profiler_of(job, self.report)
        self.termination = Termination.of_process()
        self.shutdown = Shutdown(job.shutdown_deadline, self.termination.is_asked)
        self.graph = build_step(job)
        if self.graph.measured.backend is not None:
            self.report.kernels = self.graph.measured.backend.kernels
        self.infeed = Infeed(self.graph.feeds, self.graph.close, self.failures, self.report,
                             job.input_deadline, ahead=int(self.graph.begin is not None),
                             draw=self.profiler.draw if self.profiler else drawing,
                             shutdown=self.shutdown, proceed=self.termination.proceed,
                             made_by=job.input_fn)
        self.start = SessionStart(self.graph.start)
        self._has_data_ended = False

    def stored_tables(self) -> dict[str, StoredTable]:
        """The tables of the plan as its checkpoints hold them, by variable name."""
        plan = self.job.plan
        return stored_tables(plan, self.graph.table_names) if plan is not None else {}

    def with_steps(self, before: Sequence[tf.train.SessionRunHook],
                   hooks: Sequence[tf.train.SessionRunHook],
                   after: Sequence[tf.train.SessionRunHook], step: tf.Operation, *,
                   pace: Pace, stop: StopAtStep | None, until_data_ends: bool = False,
                   host_call_every: int = 1, feed: tf.train.SessionRunHook | None = None,
                   results: Sequence[Any] = (),
                   last: Sequence[tf.train.SessionRunHook] = ()) -> list[tf.train.SessionRunHook]:
        """Hooks in the order of the original, and at last the one that makes steps.

        Args:
          before: come first.
          hooks: given to the call of the estimator; the start and the infeed follow them.
          after: come after these, and before the hooks of the model.
          step: what one step runs.
          pace: see `StepsPerRun`.
          stop: see `StepsPerRun`.
          until_data_ends: see `StepsPerRun`.
          host_call_every: see `StepsPerRun`.
          feed: what stands in the place of the infeed, and hands calls on to it.
          results: what a step gives besides, for the account of its time.
          last: come after all others, but for the one that makes steps.
        """
        given = [FeedsKept(hook) for hook in hooks]
        own = [FeedsKept(hook) for hook in self.graph.outputs[0].hooks]
        of_feed = [FeedsKept(feed)] if feed is not None else []
        measured = self.graph.measured
        clock = clock_of(measured.looked_up, [*measured.trained, *results], step)
        keeps_input = any(isinstance(hook, CheckpointInputPipelineHook)
                          for hook in [*hooks, *self.graph.outputs[0].hooks])
        if keeps_input and self.graph.begin is not None:
            tf.logging.warning('Look-ups run a step ahead: a resumed run skips one batch.')
        steps = StepsPerRun(
            StepOps(step, self.graph.host_call, self.graph.loss,
                    clock, self.graph.refused,
                    self.graph.is_step, self.graph.begin, self.graph.has_next), self.infeed,
            self.failures, self.report,
            pace=pace, stop=stop, others=[*given, *of_feed, *own], until_data_ends=until_data_ends,
            host_call_every=host_call_every, is_over=self._is_over,
            gives_up=self._gives_up, draws_ahead=not keeps_input)
        profiler = [self.profiler] if self.profiler else []
        return [*before, *given, self.start, SummaryWriters(), *profiler,
                *(of_feed or [self.infeed]), *after, *own, *last, SummariesSurvive(), steps]

    def _is_over(self) -> bool:
        """Whether SIGTERM ends the run after its step.

        Half of an evaluation would pass for all of it. One inside of a training goes on, then the
        training ends.
        """
        return self.job.verb == 'train' and self.termination.is_asked()

    def _gives_up(self, waited: float) -> bool:
        """Whether SIGTERM ends the wait for a batch: of an evaluation, if it comes slowly."""
        return self.termination.is_asked() and (
            self.job.verb == 'train' or waited > PROMPT_SECONDS)

    def config(self) -> bytes:
        """The serialized config of the plan; empty without one."""
        plan = self.job.plan
        if plan is None:
            return b''
        return plan_to_config(plan).SerializeToString(deterministic=True)

    def execute(self, creator: tf.train.ChiefSessionCreator,
                hooks: Sequence[tf.train.SessionRunHook], fetches: dict[str, Any], *,
                wanted: Callable[[], int]) -> dict[str, Any]:
        """Runs until a hook asks for the end, the data ends, or something fails.

        Args:
          creator: of sessions.
          hooks: in order.
          fetches: of every run.
          wanted: gives the step where the run is to end, once a session exists.

        Returns:
          What the last run fetched; `None` for each before the first.

        Raises:
          tf.errors.OutOfRangeError: if the data ended first; hooks have ended by then.
          Whatever failed first, in whichever thread.
        """
        values: dict[str, Any] = dict.fromkeys(fetches)
        with contextlib.ExitStack() as stack:
            if self.job.verb == 'train':
                stack.enter_context(self.termination.awaited())
            stack.enter_context(woken_by_interrupt(self.infeed.interrupt))
            for values in self.results(creator, hooks, fetches):
                pass
        if self._has_data_ended:
            raise self._end_of_data(wanted())
        return values

    def results(self, creator: tf.train.ChiefSessionCreator,
                hooks: Sequence[tf.train.SessionRunHook], fetches: dict[str, Any]
                ) -> Generator[dict[str, Any], None, None]:
        """As `execute`, but yields what every run fetched, and ends where the data does.

        While a caller holds what was yielded, nothing runs but the threads of the infeed. However
        the generator ends, closed early or not, they have ended then.
        """
        self._announce()
        with self._threads_ended(), \
                tf.train.MonitoredSession(SessionCreator(
                    creator, self.shutdown, self.report), hooks) as session:
            try:
                while not session.should_stop():
                    began = time.monotonic()
                    try:
                        values = session.run(fetches)
                    finally:
                        self.report.seconds += time.monotonic() - began
                    yield values
            except tf.errors.OutOfRangeError as error:
                if self.job.verb != 'train':
                    self.termination.proceed()
                # Left to itself, MonitoredSession takes every such error for the end of data.
                self._has_data_ended = (self.failures.root_cause() is None
                                        and self.infeed.ended_input() is not None)
                if not self._has_data_ended and not self.termination.is_asked():
                    raise RuntimeError(str(Problem(
                        'E526', 'model_fn', 'OutOfRangeError in the model', str(error),
                        'The data has not ended: look for a queue or an iterator that model_fn '
                        'made.'))) from error
            finally:
                self.infeed.stop()  # While the session that the threads use is still there.

    def _announce(self) -> None:
        """Tells the user what begins."""
        job = self.job
        line = f'{job.verb}: ' + (
            f'the same {job.batch_size} samples on all cores of {job.topology}'
            if job.deployment.has_copies else job.topology.batch_arithmetic(job.batch_size))
        plan = job.plan
        if plan is not None:
            how = sorted({table.optimizer.field for table in plan.tables if table.optimizer})
            trained = f', trained by {", ".join(how)}' if job.verb == 'train' else ''
            line += f'; {counted(len(plan.tables), f"{plan.strategy}-partitioned table")}{trained}'
            tf.logging.info('%s', plan)
        announce(line)

    @contextlib.contextmanager
    def _threads_ended(self) -> Iterator[None]:
        """Ends the infeed however the body ends, reports, and raises the root cause."""
        try:
            yield
        except Exception as error:
            cause = self.failures.root_cause()
            better = cause if cause is not None else typed(error)
            if isinstance(better, tf.errors.OutOfRangeError):
                # Callers take it for the end of data; but it came from the begin or end of hooks.
                better = RuntimeError(f'OutOfRangeError in a hook: {better}')
            if isinstance(better, DivergedError) and self.job.verb == 'train':
                better.tell_checkpoint(self._newest_checkpoint())
            if better is not error:
                raise better from None
            raise
        finally:
            self.infeed.stop()
            if self.profiler is not None:
                self.profiler.save()
            self.report.finish()

    def _newest_checkpoint(self) -> str | None:
        """What is left when a run has failed; whatever else is wrong must not hide why."""
        with contextlib.suppress(CheckpointError, OSError):
            return newest_checkpoint(self.job.model_dir, self.job.checkpoint)
        return None

    def _end_of_data(self, wanted: int) -> tf.errors.OutOfRangeError:
        """The error that says whose data ended, and when."""
        return tf.errors.OutOfRangeError(
            None, None, f'The input of {self.infeed.ended_input()} ended: this '
            f'{self.job.verb} made {counted(self.report.steps, "step")} and was to reach step '
            f'{wanted}. '
            'Call .repeat() on the dataset, or ask for fewer steps. The steps that were run are '
            'complete.')
