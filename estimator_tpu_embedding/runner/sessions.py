"""Makes the sessions of a run, again after one was lost, from the newest checkpoint.

If several sessions in a row are lost before a step, the run ends, and so does a run on a cluster
that loses the same at the same step. Each session closes by a deadline, because TensorFlow waits
for operations that may never end.
"""

from __future__ import annotations

import copy
import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from google.protobuf import json_format

from .. import _tf
from ..checkpoint import model_dir
from ..checkpoint.manifest import StoredTable
from ..checkpoint.recover import recover
from ..checkpoint.saver import Lineage, cause_of
from ..cluster import preflight
from ..cluster.cluster import Cluster
from ..cluster.faults import HostUnavailableError
from ..core.plan import BYTES_PER_ELEMENT, Plan
from ..errors import ConfigError, EteError, Problem, bytes_text, counted, shown
from ..hosts.placement import worker_at
from .ending import Shutdown
from .faults import SessionLostError
from .model import Job
from .progress import RunReport, announce
from .saving import Background

SESSIONS_WITHOUT_STEP = 5
SAME_FAILURES = 3

MOST_NODES_REWRITTEN = 20_000
"""Of a graph that Grappler rewrites. It copies the whole graph for each set of fetches, and again
for each optimizer, so a start with many columns, cores and hosts spent most of its time there."""
MOST_NODES_REWRITTEN_WHOLLY = 4_000
"""Of a graph for which all of Grappler's optimizers run."""
_WITHOUT_EFFECT = {
    # The layouts are for GPUs, and the memory that it plans is theirs. The runtime inlines calls
    # of functions itself; this optimizer copies the whole library of functions for each graph.
    'layoutOptimizer': 'OFF', 'memoryOptimization': 'NO_MEM_OPT', 'functionOptimization': 'OFF'}
"""Options that leave out optimizers which change no step on a CPU, but take half of the time."""
_MOST_NAMED = 8


class SessionCreator(tf.train.SessionCreator):
    """Makes the sessions of a job, on its cluster if it has one.

    Only a few may be lost before they make a step, and each closes within a deadline.
    """

    def __init__(self, job: Job, scaffold: tf.train.Scaffold, prefix: Callable[[], str | None], *,
                 shutdown: Shutdown, report: RunReport, proceed: Callable[[], None]):
        """Makes none yet.

        Args:
          prefix: returns the checkpoint that the next session restores, or `None`.
          shutdown: limits how long closing one waits for operations that still run.
          proceed: called before a session takes the place of a lost one of a cluster. It may raise.
        """
        self._job, self._scaffold, self._prefix = job, scaffold, prefix
        self._shutdown, self._report = shutdown, report
        cluster = job.cluster
        self._cluster = cluster if cluster is not None and cluster.is_remote else None
        self._losses = (None if self._cluster is None
                        else Losses(self._cluster, report, proceed))
        self._steps_at_start, self._sessions = 0, 0

    def create_session(self) -> tf.Session:
        """Returns a session whose variables have values, and whose `close()` waits a limited time.

        Raises:
          SessionLostError: if several sessions in a row were lost before they made a step.
        """
        if self._report.steps > self._steps_at_start:
            self._steps_at_start, self._sessions = self._report.steps, 0
        self._sessions += 1
        if self._sessions > SESSIONS_WITHOUT_STEP:
            raise SessionLostError(Problem(
                'E802', 'session', f'one of {SESSIONS_WITHOUT_STEP} in a row must make a step',
                'Aborted or Unavailable errors in all', 'They are in the log above.'))
        if self._losses is not None:
            self._losses.begin_session()
        session = self._opened(self._prefix())
        session.close = functools.partial(
            _close_in_time, session, session.close, self._shutdown, self._cluster)
        return session

    def _opened(self, prefix: str | None) -> tf.Session:
        """Opens a session over the tasks as they are now: lost ones may have other addresses."""
        cluster = self._cluster
        config = rewriting_less_if_large(self._job.session_config, tf.get_default_graph())
        if cluster is None:
            return tf.train.ChiefSessionCreator(
                self._scaffold, config=config,
                checkpoint_filename_with_path=prefix).create_session()
        admit(self._job, cluster, prefix)
        try:
            return _tf.creator_that_tells(
                cluster.guard, self._scaffold, cluster.target, cluster.config(config),
                checkpoint_filename_with_path=prefix).create_session()
        except tf.errors.ResourceExhaustedError as error:  # A limit that its machine does not tell.
            device, text = cause_of(error)
            raise ConfigError(preflight.too_large(
                worker_at(device, cluster.addresses()) or 'cluster', shown(text, 300))) from None


class Recovery:
    """Finds the checkpoint from which each session of a training begins: the newest at that time.
    """

    def __init__(self, job: Job, tables: dict[str, StoredTable], lineage: Lineage,
                 background: Background, first: str | None):
        """Looks into `job.model_dir`.

        Args:
          tables: the tables of this run, by variable name. A later session can restore only
            checkpoints whose tables equal these, and the one of the first session.
          lineage: records the checkpoints that are restored.
          background: its work is awaited first.
          first: the checkpoint that the first session restores, or `None`.
        """
        self._job, self._tables = job, tables
        self._lineage, self._background, self._first = lineage, background, first
        self._begun = False

    def prefix(self) -> str | None:
        """Returns the newest checkpoint; `None` begins with initial values.

        Raises:
          SessionLostError: if only checkpoints with other tables are left.
        """
        self._background.wait()
        prefix = self._newest() if self._begun else self._first
        self._begun = True
        if prefix is not None:
            self._lineage.add(prefix)
        return prefix

    def _newest(self) -> str | None:
        """Returns the newest checkpoint after the loss of a session."""
        model_dir.tidy(self._job.model_dir)
        found = recover(self._job.model_dir, self._job.checkpoint, self._job.known)
        if found is not None and found.prefix != self._first and (
                found.manifest is None or found.manifest.tables != self._tables):
            raise SessionLostError(Problem(
                'E802', 'session', 'a session that is made again must restore what this run or the '
                'one before it saved', f'{found.prefix}, whose tables are others', 'Those after it '
                'are damaged; what is wrong is in the log above. Start the training again.'))
        return None if found is None else found.prefix


def rewriting_less_if_large(config: tf.ConfigProto, graph: tf.Graph) -> tf.ConfigProto:
    """Returns the config of a session in which Grappler does less to a large graph, or nothing.

    The runtime still removes what a step does not need. A config with further
    `rewrite_options` than every Estimator sets stays as it is. So does any, if the process has
    options for Grappler.
    """
    own = copy.deepcopy(config.graph_options.rewrite_options)
    for name in ('meta_optimizer_iterations', 'arithmetic_optimization'):
        own.ClearField(name)
    of_process = any(tf.config.optimizer.get_experimental_options().values())  # Mixed precision.
    if graph.version <= MOST_NODES_REWRITTEN_WHOLLY or own.ListFields() or of_process:
        return config
    less = copy.deepcopy(config)
    options = less.graph_options.rewrite_options
    if graph.version <= MOST_NODES_REWRITTEN:
        json_format.ParseDict(_WITHOUT_EFFECT, options)
        return less
    tf.logging.info('Grappler is off, since the graph has %d nodes, more than %d. To have it, set '
                    'an option of graph_options.rewrite_options in session_config.',
                    graph.version, MOST_NODES_REWRITTEN)
    options.disable_meta_optimizer = True
    return less


def _close_in_time(session: tf.Session, close: Callable[[], None], shutdown: Shutdown,
                   cluster: Cluster | None) -> None:
    """Closes a session in a thread, since TensorFlow waits there for operations that still run."""
    session.close = lambda: None
    if sys.is_finalizing():  # The traceback of an error held it; no thread can start any more.
        return
    thread = threading.Thread(target=close, name='close-session', daemon=True)
    thread.start()
    if shutdown.wait_for(thread, 'its session to close',
                         unless=lambda: cluster is not None and cluster.loss is not None):
        return
    tf.logging.warning('Something of the graph still runs after the run ended; its session is '
                       'left behind.')
    if cluster is not None:
        cluster.lost(SessionLostError(Problem(
            'E802', 'session', 'it must close before the deadline', 'some operation still runs')))


class SessionStart(tf.train.SessionRunHook):
    """Runs the operation that every session of a run begins with."""

    def __init__(self, operation: tf.Operation):
        """Runs `operation` once variables have their values."""
        self._operation = operation

    def after_create_session(self, session: tf.Session, coord: Any) -> None:
        """Runs it."""
        session.run(self._operation)


class Losses:
    """Counts the losses of a run. The same one at the same step ends it, for it would come again.

    Two losses are the same if they have the same code and the same hosts.
    """

    def __init__(self, cluster: Cluster, report: RunReport, proceed: Callable[[], None]):
        """Counts none yet.

        Args:
          report: of the run; knows its step.
          proceed: called before a session takes the place of a lost one. It may raise.
        """
        self._cluster, self._report, self._proceed = cluster, report, proceed
        self._steps_of_others = 0
        self._has_begun = False
        self._last: tuple[object, ...] = ()
        self._step, self._count = 0, 0

    def begin_session(self) -> None:
        """Makes the cluster ready for a session, perhaps in place of a lost one.

        Own tasks that end while they start again are one more loss, and are started once more. At
        the start of the run they end it.

        Raises:
          SessionLostError: E722 if the same failure has happened too often.
          HostUnavailableError: if workers do not come back in time.
        """
        if not self._has_begun:
            self._has_begun = True
            self._cluster.prepare()
            return
        self._proceed()
        self._count_loss()
        end = time.monotonic() + self._cluster.restart_deadline
        while True:
            try:
                self._cluster.prepare()
                return
            except HostUnavailableError as error:
                if error.problems[0].code != 'E711' or time.monotonic() > end:
                    raise
                self._count += 1
                self._go_on_after(error)
                self._proceed()

    def _count_loss(self) -> None:
        if self._cluster.loss is None:
            self._cluster.check()  # The error of a session may come before the news of its task.
        if self._cluster.loss is None:
            self._cluster.lost(SessionLostError(Problem(
                'E802', 'session', 'it must live until the run ends', 'an error that ends it')))
        loss, report = self._cluster.loss, self._report
        steps = report.steps - self._steps_of_others
        if report.verb != 'train':  # Others begin from the first step.
            self._steps_of_others = report.steps
        self._step = report.first_step + steps
        code = loss.problems[0].code if isinstance(loss, EteError) else type(loss).__name__
        failure = (self._step, code, getattr(loss, 'hosts', ()))
        self._count = self._count + 1 if failure == self._last else 1
        self._last = failure
        self._go_on_after(loss)

    def _go_on_after(self, loss: BaseException | None) -> None:
        """Tells a loss, or raises SessionLostError if it was one too many."""
        verb = self._report.verb
        if self._count >= SAME_FAILURES:
            raise SessionLostError(Problem(
                'E722', verb, f'the same failure at one step may happen {SAME_FAILURES - 1} '
                f'times', f'number {self._count} after step {self._step}: {loss}',
                'Look what that step does on that host; what was saved stays.')) from loss
        announce(f'{verb}: after step {self._step}: {loss}')


def admit(job: Job, cluster: Cluster, checkpoint: str | None) -> None:
    """Looks before a session is made, when the tasks are prepared.

    Args:
      checkpoint: the prefix of the one to restore, or `None`.

    Raises:
      ConfigError: E744 if tables do not fit into the memory of a task.
      SetupError: E741, E742 if the tasks and this process do not share a disk.
    """
    hosts = range(job.topology.num_hosts)
    cluster.admit([[] if job.plan is None else parts_on(job.plan, host) for host in hosts],
                  job.model_dir if job.verb == 'train' else '', checkpoint or '')


def shares(plan: Plan) -> str:
    """Says how many rows and bytes each task has: each of a few, or the least and the most."""
    parts = [parts_on(plan, host) for host in range(plan.topology.num_hosts)]
    sizes = [(sum(one['bytes'] for one in part), sum(one['rows'] for one in part))
             for part in parts]
    if len(sizes) > _MOST_NAMED:
        return f'each host holds from {_size_text(min(sizes))} to {_size_text(max(sizes))}'
    return ', '.join(f'host {host} holds {_size_text(size)}' for host, size in enumerate(sizes))


def _size_text(size: tuple[int, int]) -> str:
    return f'{counted(size[1], "row")} of {bytes_text(size[0])}'


def parts_on(plan: Plan, host: int) -> list[dict[str, Any]]:
    """Returns name, rows, and bytes with slots of each table's part on a host."""
    rows = {table.name: plan.partition(table.name).rows_on(host) for table in plan.tables}
    return [{'name': table.name, 'rows': rows[table.name],
             'bytes': rows[table.name] * table.dimension * BYTES_PER_ELEMENT
             * (1 + len(plan.slots(table.name)))}
            for table in plan.tables if rows[table.name]]
