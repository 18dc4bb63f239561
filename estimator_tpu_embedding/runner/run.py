"""Runs one training, evaluation or prediction: builds its graph, opens its session, makes steps.

However the run ends, it ends the infeed threads, and raises the root cause of a failure.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from ..checkpoint.manifest import StoredTable, stored_tables
from ..checkpoint.recover import newest_checkpoint
from ..errors import CheckpointError, Problem, counted
from ..hosts.packed import pack_crossings
from ..hosts.placed_graph import put_python_on_client, require_engines
from ..proto.codec import plan_to_config
from . import admission
from .faults import DivergedError, Failures, typed
from .garbage import collected_rarely
from .graph import StepGraph, build_step
from .host_feeds import drawing
from .id_sampling import Profiler
from .infeed import Infeed
from .model import Job
from .progress import RunReport, announce
from .session_creators import SessionCreator, SessionStart
from .session_feed import FeedRules
from .shutdown import PROMPT_SECONDS, Shutdown
from .signals import Termination, woken_by_interrupt


def _profiler_of(job: Job, report: RunReport) -> Profiler | None:
    """Returns the hook that counts ids, if a training names a directory for profiles."""
    if job.verb != 'train' or job.plan is None or not job.plan.profile_directory:
        return None
    return Profiler(job.plan, report, len(job.deployment.invocations))


class Run:
    """One training, evaluation or prediction.

    Attributes:
      job: describes it.
      graph: its operations.
      failures: of all threads.
      report: its progress.
      profiler: the hook that counts ids for profiles; `None` without profiles.
      infeed: the hook that feeds it.
      start: the hook that begins every session.
      termination: whether SIGTERM has asked for the end.
      shutdown: the deadline of the end.
    """

    def __init__(self, job: Job):
        """Builds the graph of the job in the default graph, once its workers have answered."""
        if job.cluster is not None and job.cluster.is_remote:
            job.cluster.prepare()  # Before the graph: people learn at once who is missing.
        self.job = job
        self.failures = Failures()
        self.report = RunReport(job.verb, job.batch_size, cores=job.topology.num_cores,
                                directory=job.model_dir if job.verb == 'train' else '')
        self.profiler = _profiler_of(job, self.report)
        self.termination = Termination.of_process()
        self.shutdown = Shutdown(job.shutdown_deadline, self.termination.is_asked)
        with collected_rarely():
            self.graph = build_step(job)
        if self.graph.measured.backend is not None:
            self.report.kernels = self.graph.measured.backend.kernels
        rules = FeedRules(draw=self.profiler.draw if self.profiler else drawing,
                          made_by=job.input_fn, deadline=job.input_deadline,
                          shutdown=self.shutdown, proceed=self.termination.proceed)
        self.infeed = Infeed(self.graph.input, rules, failures=self.failures, report=self.report)
        self.start = SessionStart(self.graph.start)
        self._has_data_ended = False

    def stored_tables(self) -> dict[str, StoredTable]:
        """Returns the tables of the plan as its checkpoints hold them, by variable name."""
        plan = self.job.plan
        return stored_tables(plan, self.graph.table_names) if plan is not None else {}

    def is_over(self) -> bool:
        """Returns whether SIGTERM ends the run after its step.

        It ends only a training: half of an evaluation would pass for all of it. An evaluation
        inside of a training goes on, then the training ends.
        """
        return self.job.verb == 'train' and self.termination.is_asked()

    def gives_up(self, waited: float) -> bool:
        """Returns whether SIGTERM ends a wait for a batch; of an evaluation only if it is slow.

        Args:
          waited: seconds that the batch has been lacking.
        """
        return self.termination.is_asked() and (
            self.job.verb == 'train' or waited > PROMPT_SECONDS)

    def config(self) -> bytes:
        """Returns the serialized config of the plan; empty without a plan."""
        plan = self.job.plan
        if plan is None:
            return b''
        return plan_to_config(plan).SerializeToString(deterministic=True)

    def execute(self, creator: tf.train.SessionCreator,
                hooks: Sequence[tf.train.SessionRunHook], fetches: dict[str, Any], *,
                wanted: Callable[[], int]) -> dict[str, Any]:
        """Runs until a hook asks for the end, the data ends, or something fails.

        Args:
          creator: makes sessions.
          hooks: in order.
          fetches: of every run of the session.
          wanted: returns the step at which the job should end, once a session exists.

        Returns:
          The values that the last run fetched; `None` for each if there was no run.

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

    def results(self, creator: tf.train.SessionCreator,
                hooks: Sequence[tf.train.SessionRunHook], fetches: dict[str, Any]
                ) -> Generator[dict[str, Any], None, None]:
        """Runs like `execute`, but yields the values of every run, and ends when the data ends.

        While a caller holds values, only the threads of the infeed run. They have ended when the
        generator has ended, also if it was closed early.
        """
        self._announce()
        _prepare_for_tasks(self.job, self.graph, fetches)
        with self._threads_ended(), \
                tf.train.MonitoredSession(SessionCreator(
                    creator, self.job.cluster, self.shutdown, self.report,
                    self.termination.proceed), hooks) as session:
            try:
                while not session.should_stop():
                    began = time.monotonic()
                    try:
                        values = session.run(fetches)
                    finally:
                        self.report.add_run(time.monotonic() - began)
                    yield values
            except tf.errors.OutOfRangeError as error:
                if self.job.verb != 'train':
                    self.termination.proceed()
                # Left alone, MonitoredSession takes every such error for the end of data.
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
        """Tells the user that the run begins."""
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
        if plan is not None and job.placement.is_remote:
            announce(f'{job.verb}: {admission.shares(plan)}')

    @contextlib.contextmanager
    def _threads_ended(self) -> Iterator[None]:
        """Ends the infeed however the body ends, reports, and raises the root cause."""
        try:
            yield
        except Exception as error:
            cause = self.failures.root_cause()
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
            if self.profiler is not None:
                self.profiler.save()
            if self.job.cluster is not None:
                self.report.answers = self.job.cluster.answers()
            self.report.finish()

    def _newest_checkpoint(self) -> str | None:
        """Returns the newest checkpoint after a failure, or `None` if it cannot be found."""
        with contextlib.suppress(CheckpointError, OSError):
            return newest_checkpoint(
                self.job.model_dir, self.job.checkpoint, self.job.known)
        return None

    def _end_of_data(self, wanted: int) -> tf.errors.OutOfRangeError:
        """Returns the error that says which host's data ended, and when."""
        return tf.errors.OutOfRangeError(
            None, None, f'The input of {self.infeed.ended_input()} ended: this '
            f'{self.job.verb} made {counted(self.report.steps, "step")} and was to reach step '
            f'{wanted}. '
            'Call .repeat() on the dataset, or ask for fewer steps. The steps that were run are '
            'complete.')


def _prepare_for_tasks(job: Job, graph: StepGraph, fetches: Any) -> None:
    """Moves Python to the client and packs what crosses; a job without tasks stays as it is.

    Args:
      job: the job.
      graph: of the job. No session has run it.
      fetches: nested tensors and operations that every step is fetched with.

    Raises:
      ConfigError: E731, E732 for what cannot work where it is.
    """
    if job.placement.is_remote:
        whole, placement = graph.global_step.graph, job.placement
        put_python_on_client(whole, placement)
        require_engines(whole, placement)
        pack_crossings(whole, _results_of(graph, fetches), placement.client)


def _results_of(graph: StepGraph, fetches: Any) -> list[Sequence[tf.Tensor | tf.Operation]]:
    """Returns the results of each kind of run that is made again and again."""
    step = graph.step
    runs = [[step.operation, step.loss, *(step.refused or ()), *tf.nest.flatten(fetches)]]
    if step.host_call is not None:
        runs.append([step.host_call])
    if step.lookahead is not None:
        runs.append([step.lookahead.begin])
    return [*runs, *[[feed.step, feed.counts, feed.has_data] for feed in graph.input.feeds]]
