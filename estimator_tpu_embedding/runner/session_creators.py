"""Makes the sessions of a run, again after one was lost, from the newest checkpoint.

If several sessions in a row are lost before a step, the run ends. Each session closes by a
deadline, because TensorFlow waits for operations that may never end.
"""

from __future__ import annotations

import copy
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from google.protobuf import json_format

from .. import _tf
from ..checkpoint import directory
from ..checkpoint.manifest import StoredTable
from ..checkpoint.recover import recover
from ..checkpoint.saver import Lineage, cause_of
from ..cluster import preflight
from ..errors import ConfigError, Problem, shown
from ..hosts.placement import worker_at
from .admission import admit
from .background import Background
from .faults import SessionLostError
from .losses import Losses
from .model import Cluster, Job
from .progress import RunReport
from .shutdown import Shutdown

SESSIONS_WITHOUT_STEP = 5

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


class SessionCreator(tf.train.SessionCreator):
    """Limits the sessions of another creator.

    Only a few may be lost before they make a step, and each closes within a deadline.
    """

    def __init__(self, creator: tf.train.SessionCreator, cluster: Cluster | None,
                 shutdown: Shutdown, report: RunReport, proceed: Callable[[], None]):
        """Wraps `creator`.

        Args:
          creator: makes the sessions.
          cluster: whose tasks each session has, or `None`.
          shutdown: limits how long closing one waits for operations that still run.
          report: counts the steps.
          proceed: called before a session takes the place of a lost one of a cluster. It may raise.
        """
        self._creator, self._shutdown, self._report = creator, shutdown, report
        self._cluster = cluster if cluster is not None and cluster.is_remote else None
        self._losses = (None if self._cluster is None
                        else Losses(self._cluster, report, proceed))
        self._steps_at_start, self._sessions = 0, 0

    def create_session(self) -> tf.Session:
        """Returns a session whose `close()` waits a limited time.

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
        session = self._creator.create_session()
        session.close = functools.partial(
            _close_in_time, session, session.close, self._shutdown, self._cluster)
        return session


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


class PlainCreator(tf.train.SessionCreator):
    """Makes the sessions of a job, on its cluster if it has one."""

    def __init__(self, job: Job, scaffold: tf.train.Scaffold, prefix: str | None):
        """Makes none yet.

        Args:
          job: the job.
          scaffold: gives variables their values.
          prefix: the checkpoint to restore, or `None`.
        """
        self._job, self._scaffold, self._prefix = job, scaffold, prefix

    def create_session(self) -> tf.Session:
        """Returns a session over the tasks as they are now: lost ones may have other addresses."""
        cluster = self._job.cluster
        config = rewriting_less_if_large(self._job.session_config, tf.get_default_graph())
        if cluster is None or not cluster.is_remote:
            return tf.train.ChiefSessionCreator(
                self._scaffold, config=config,
                checkpoint_filename_with_path=self._prefix).create_session()
        admit(self._job, cluster, self._prefix)
        try:
            return _tf.creator_that_tells(
                cluster.guard, self._scaffold, cluster.target, cluster.config(config),
                checkpoint_filename_with_path=self._prefix).create_session()
        except tf.errors.ResourceExhaustedError as error:  # A limit that its machine does not tell.
            device, text = cause_of(error)
            raise ConfigError(preflight.too_large(
                worker_at(device, cluster.addresses()) or 'cluster', shown(text, 300))) from None


class RecoveringCreator(tf.train.SessionCreator):
    """Makes the sessions of a training, each from the newest checkpoint at that time."""

    def __init__(self, scaffold: tf.train.Scaffold, job: Job, tables: dict[str, StoredTable],
                 lineage: Lineage, background: Background, first: str | None):
        """Takes checkpoints from `job.model_dir`, or initial values if there are none.

        Args:
          scaffold: its saver can restore the first checkpoint, and any whose tables equal
            `tables`.
          job: the training.
          tables: the tables of this run, by variable name.
          lineage: records the checkpoints that are restored.
          background: its work is awaited first.
          first: the checkpoint that the first session restores, or `None`.
        """
        self._scaffold, self._job, self._tables = scaffold, job, tables
        self._lineage, self._background, self._first = lineage, background, first
        self._begun = False

    def create_session(self) -> tf.Session:
        """Returns a session whose variables have values.

        Raises:
          SessionLostError: if only checkpoints with other tables are left.
        """
        self._background.wait()
        prefix = self._newest() if self._begun else self._first
        self._begun = True
        if prefix is not None:
            self._lineage.add(prefix)
        return PlainCreator(self._job, self._scaffold, prefix).create_session()

    def _newest(self) -> str | None:
        """Returns the newest checkpoint after the loss of a session."""
        directory.tidy(self._job.model_dir)
        found = recover(self._job.model_dir, self._job.checkpoint, self._job.known)
        if found is not None and found.prefix != self._first and (
                found.manifest is None or found.manifest.tables != self._tables):
            raise SessionLostError(Problem(
                'E802', 'session', 'a session that is made again must restore what this run or the '
                'one before it saved', f'{found.prefix}, whose tables are others', 'Those after it '
                'are damaged; what is wrong is in the log above. Start the training again.'))
        return None if found is None else found.prefix


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
