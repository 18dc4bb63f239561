"""Makes the sessions of a run, with the first values of variables, again after one was lost.

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
from ..checkpoint import restore, warm_start
from ..checkpoint.recover import Following
from ..checkpoint.restore_plan import check_words
from ..cluster import preflight
from ..cluster.cluster import Cluster
from ..cluster.host_errors import HostUnavailableError
from ..core.names import is_of_dummy
from ..core.plan import BYTES_PER_ELEMENT, Plan
from ..errors import ConfigError, EteError, InputPipelineError, Problem, bytes_text, counted, shown
from ..hosts.placement import worker_at
from .gradient_capture import DUMMY_COLLECTION
from .job import Job
from .progress import RunReport, announce
from .signals_and_deadlines import Shutdown
from .step_graph import StepGraph

SESSIONS_WITHOUT_STEP = 5
SAME_FAILURES = 3

MOST_NODES_REWRITTEN = 20_000
"""Of a graph that Grappler rewrites. It copies the whole graph for each set of fetches, and again
for each optimizer, so a start with many columns, cores and hosts spent most of its time there."""
_WITHOUT_EFFECT = {
    # The layouts are for GPUs, and the memory that it plans is theirs. The runtime inlines calls
    # of functions itself; this optimizer copies the whole library of functions for each graph.
    'layoutOptimizer': 'OFF', 'memoryOptimization': 'NO_MEM_OPT', 'functionOptimization': 'OFF'}
"""Options that leave out optimizers which change no step on a CPU, but take half of the time."""
_MOST_NAMED = 8


class SessionLostError(EteError, RuntimeError):
    """E802: sessions were lost again and again without a step between, or after the last step."""


class SessionCreator(tf.train.SessionCreator):
    """Makes the sessions of a job, on its cluster if it has one.

    Only a few may be lost before they make a step, and each closes within a deadline.
    """

    def __init__(self, job: Job, scaffold: tf.train.Scaffold, prefix: Callable[[], str | None], *,
                 shutdown: Shutdown, report: RunReport):
        """Makes none yet; `prefix` returns the checkpoint to restore, or `None`."""
        self._job, self._scaffold, self._prefix = job, scaffold, prefix
        self._shutdown, self._report = shutdown, report
        cluster = job.cluster
        self._cluster = cluster if cluster is not None and cluster.is_remote else None
        self._losses = (None if self._cluster is None
                        else Losses(self._cluster, report, shutdown.proceed))
        self._steps_at_start, self._sessions = 0, 0

    def create_session(self) -> tf.Session:
        """Returns a session whose variables have values, and whose `close()` waits a limited time.
        """
        if self._report.verb == 'predict' and self._report.steps:
            raise InputPipelineError(Problem(
                'E524', 'predict', 'it must not begin again once it has given rows',
                f'a session that was lost after {self._report.steps} steps', 'Predict again; what '
                'was lost is in the log.'))
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
        config = rewriting_less(self._job.session_config, tf.get_default_graph())
        if cluster is None:
            return tf.train.ChiefSessionCreator(
                self._scaffold, config=config,
                checkpoint_filename_with_path=prefix).create_session()
        job = self._job
        cluster.require_resources(
            [[] if job.plan is None else parts_on(job.plan, host)
             for host in range(job.deployment.topology.num_hosts)],
            job.model_dir if job.verb == 'train' else '', prefix or '',
            None if job.kernels.memory is None else job.kernels.memory.bytes)
        try:
            return _tf.creator_that_tells(
                cluster.guard, self._scaffold, cluster.target, cluster.config(config),
                checkpoint_filename_with_path=prefix).create_session()
        except tf.errors.ResourceExhaustedError as error:  # A limit that its machine does not tell.
            device, text = _tf.cause_of(error)
            raise ConfigError(preflight.too_large(
                worker_at(device, cluster.addresses()) or 'cluster', shown(text, 300))) from None


def rewriting_less(config: tf.ConfigProto, graph: tf.Graph) -> tf.ConfigProto:
    """Returns the config of a session in which Grappler does less to its graph, or nothing.

    The runtime still removes what a step does not need. A config with further
    `rewrite_options` than every Estimator sets stays as it is. So does any, if the process has
    options for Grappler.
    """
    own = copy.deepcopy(config.graph_options.rewrite_options)
    for name in ('meta_optimizer_iterations', 'arithmetic_optimization'):
        own.ClearField(name)
    of_process = any(tf.config.optimizer.get_experimental_options().values())  # Mixed precision.
    if own.ListFields() or of_process:
        return config
    less = copy.deepcopy(config)
    options = less.graph_options.rewrite_options
    if graph.version <= MOST_NODES_REWRITTEN:
        json_format.ParseDict(_WITHOUT_EFFECT, options)
    else:
        tf.logging.info(
            'Grappler is off, since the graph has %d nodes, more than %d. To have it, set an '
            'option of graph_options.rewrite_options in session_config.',
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


class Losses:
    """Counts the losses of a run. The same one at the same step ends it, for it would come again.

    Two losses are the same if they have the same code and the same hosts.
    """

    def __init__(self, cluster: Cluster, report: RunReport, proceed: Callable[[], None]):
        self._cluster, self._report, self._proceed = cluster, report, proceed
        self._steps_of_others = 0
        self._has_begun = False
        self._last: tuple[object, ...] = ()
        self._step, self._count = 0, 0

    def begin_session(self) -> None:
        """Makes the cluster ready for a session, perhaps in place of a lost one.

        Own tasks that end while they start again are one more loss, and are started once more. At
        the start of the run they end it.
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


def scaffold_of(job: Job, graph: StepGraph, following: Following | None,
                default: Callable[[], Any] = restore.saver_of_all) -> tf.train.Scaffold:
    """Returns the scaffold that gives all variables their first values: the model's, or a new one.

    Args:
      graph: of the step, in the default graph, to which the scaffold may add.
      following: the checkpoint to restore. If it is `None`, variables begin with values of a warm
        start or with initial ones.
      default: makes the saver if neither the scaffold nor the graph has one.

    Raises:
      CheckpointError: if the checkpoint, or the one of the warm start, cannot be restored.
    """
    fill = _start_warm(job, graph) if following is None else None
    scaffold = _scaffold_of_model(graph)
    if fill is not None:
        return restore.with_start(scaffold, fill)
    if following is None:
        return scaffold
    plan = restore.plan_for(
        following.opened, graph.tables, job.checkpoint, trains=job.verb == 'train',
        in_pieces=job.kernels.memory is not None,
        # A scaffold of the user may restore from elsewhere what is not in the checkpoint.
        is_optional=graph.outputs[0].scaffold_fn is not None)
    if job.lookups is not None:
        check_words(following.opened, job.lookups.words, job.checkpoint)
    if plan.facts:
        announce(f'{job.verb}: {plan.where}: {"; ".join(plan.facts)}')
    return restore.scaffold_for(scaffold, following.prefix, plan, default,
                                following if job.verb != 'train' else None)


def _scaffold_of_model(graph: StepGraph) -> tf.train.Scaffold:
    """Returns the user's scaffold, or a new one."""
    make = graph.outputs[0].scaffold_fn
    if make is None:
        return tf.train.Scaffold()
    scaffold = make()
    if scaffold is None:
        raise ValueError('TPUEstimatorSpec.scaffold_fn returns None, which is not allowed')
    return restore.finalized_once(scaffold)


def _start_warm(job: Job, graph: StepGraph) -> Callable[[tf.Session], None] | None:
    """Arranges for variables to begin with values of another checkpoint, if the job asks for it.

    `tf.train.warm_start` starts trainable variables, or global ones. Tables of the engine must
    count as both, also where they are in neither collection. The dummies of a `GradientCapture`
    and their slots must count as neither. Returns a function that fills the tables.
    """
    settings = job.warm_start
    if settings is None:
        return None
    collections = [tf.get_collection_ref(key) for key in (
        tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.GLOBAL_VARIABLES)]
    before = [list(collection) for collection in collections]
    dummies = {id(dummy) for dummy in tf.get_collection(DUMMY_COLLECTION)}
    for collection in collections:
        collection[:] = [variable for variable in collection if id(variable) not in dummies
                         and not is_of_dummy(variable.op.name)]
    collections[0] += [variable for variable in tf.global_variables()
                       if _tf.full_name_and_shape(variable)[0] in graph.tables]
    try:
        return warm_start.start_warm(settings, graph.tables, job.checkpoint)
    finally:
        for collection, variables in zip(collections, before):
            collection[:] = variables
