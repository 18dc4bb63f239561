"""Restores checkpoints into graphs whose tables have another order of rows, name or size.

`compare` plans where each row comes from. TensorFlow's own savers restore all variables whose rows
lie in the same places in checkpoint and graph. Rows of the others are read in the order in which
they are stored, a few MB at a time, and each goes to the part that it belongs to. So only a few
such chunks are in memory beside the tables.

A scaffold may be of a class of the user, so it is changed in place. A copy would be of TensorFlow's
class, and would lack the user's `finalize`. Hooks of the user would still hold the first scaffold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.names import is_of_dummy
from ..core.partition import Partition
from ..errors import ConfigError, IncompatibleCheckpointError, Problem, quoted
from ..native.graph_variable import TableVariable
from .bundle import Bundle
from .manifest import StoredTable
from .options import CheckpointOptions, may_mean
from .recover import Following, Opened
from .restore_plan import Needed, RestorePlan, Source, check_without_manifest, compare, is_slot
from .stored_rows import batches

OBJECT_SAVERS = (tf.train.Checkpoint, tf.compat.v2.train.Checkpoint)
"""Savers that a scaffold may have, and which name what they save by objects."""

_CHUNK_BYTES = 2**22
"""Bytes that are read at a time; about five copies exist until they are in their places."""


def variables_by_name() -> dict[str, tuple[list[int | None] | None, list[tf.Variable]]]:
    """Returns full shape and parts of each variable of the default graph, by checkpoint name."""
    found: dict[str, tuple[list[int | None] | None, list[tf.Variable]]] = {}
    for variable in tf.global_variables():
        name, shape = _tf.full_name_and_shape(variable)
        found.setdefault(name, (shape, []))[1].append(variable)
    return found


def saver_of_all() -> tf.train.Saver:
    """Returns the saver that an Estimator makes for a graph whose scaffold has none."""
    return tf.train.Saver(sharded=True, allow_empty=True, defer_build=True)


def saver_of(scaffold: tf.train.Scaffold) -> Any:
    """Returns the saver that the scaffold or the graph has; `None` if there is none."""
    return scaffold.saver or next(iter(tf.get_collection(tf.GraphKeys.SAVERS)), None)


def plan_for(opened: Opened, tables: Mapping[str, StoredTable], options: CheckpointOptions, *,
             is_optional: bool = False, trains: bool, in_pieces: bool = False) -> RestorePlan:
    """Plans how the default graph, which has an engine with `tables`, gets a checkpoint's values.

    `is_optional` says whether any variable may be absent from the checkpoint; for `trains` and
    `in_pieces` see `Needed`. IncompatibleCheckpointError has all differences.
    """
    shapes = {name: shape for name, (shape, _) in variables_by_name().items()}
    return compare(opened, Needed(shapes, {**_whole_tables(opened, options), **tables},
                                  shapes if is_optional else (), trains, in_pieces), options)


def plan_without_engine(opened: Opened, options: CheckpointOptions) -> RestorePlan | None:
    """Plans how the tables in the default graph, which has no engine, get the rows of a checkpoint.

    It returns `None` if nothing says that the checkpoint has tables. IncompatibleCheckpointError
    has all differences of tables; it looks at nothing else.
    """
    check_without_manifest(opened, options)
    if opened.manifest is None:
        return None
    tables = _whole_tables(opened, options)
    found = {name: shape for name, (shape, _) in variables_by_name().items() if name in tables}
    return compare(opened, Needed(found, tables, trains=False), options)


def scaffold_for(scaffold: tf.train.Scaffold, checkpoint: str, plan: RestorePlan | None,
                 default: Callable[[], tf.train.Saver], following: Following | None = None
                 ) -> tf.train.Scaffold:
    """Makes a scaffold restore a checkpoint as planned, and returns it.

    It or the graph may have a saver of the user; otherwise `default` makes one. E609 or E633 if the
    user's cannot restore by the plan. Another one may take the place of a checkpoint that is
    followed.
    """
    given = saver_of(scaffold)
    if plan is not None and (plan.is_plain or given is not None and plan.suits_tensorflow):
        plan = None
    if plan is None and (following is None or isinstance(given, OBJECT_SAVERS)):
        return scaffold
    saver = given
    if given is None:
        saver = default()
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)  # Hooks look for savers there.
    elif plan is not None:
        _check_saver(given, plan)
    return keep_saver(scaffold, _RestoringSaver(
        saver, checkpoint, plan, following, is_users=given is not None))


def _whole_tables(opened: Opened, options: CheckpointOptions) -> dict[str, StoredTable]:
    """Returns the variables of the graph that are tables of the checkpoint, or have such names.

    A graph without the engine reads row `i` of them for id `i`.
    """
    stored = opened.tables
    variables = variables_by_name()
    tables = {}
    for name, (shape, parts) in variables.items():
        is_renamed = stored and not is_slot(name, variables) and any(
            may_mean(new, name) for new in options.rename.values())
        rows, width = shape if shape is not None and len(shape) == 2 else (None, None)
        if (name in stored or is_renamed) and rows is not None and width is not None:
            slots = stored[name].slots if name in stored else ()
            tables[name] = StoredTable(
                rows=rows, width=width, strategy=Partition.by_id(rows).strategy, hosts=len(parts),
                slots=tuple(slot for slot in slots if f'{name}/{slot}' in variables))
    return tables


def _check_saver(saver: Any, plan: RestorePlan) -> None:
    """Makes sure that the plan works after a saver of the user has restored."""
    if isinstance(saver, OBJECT_SAVERS):
        raise IncompatibleCheckpointError(Problem(
            'E609', 'scaffold', 'its saver must restore by names where rows change places',
            'a tf.train.Checkpoint', 'Let it make a tf.train.Saver.'))
    others = [name for name, source in plan.streamed.items()
              if not source.is_whole or source.tensor != name]
    others += [name for name in plan.begun if not is_of_dummy(name)]
    if others:
        raise IncompatibleCheckpointError(Problem(
            'E633', 'scaffold', 'only the saver of this package restores what has another name, '
            f'more rows or begins anew: {quoted(others)}', 'a saver of the model',
            'Leave the saver of the scaffold out until the next checkpoint is written.'))


def keep_saver(scaffold: tf.train.Scaffold, saver: Any = None) -> tf.train.Scaffold:
    """Gives the scaffold another saver if there is one.

    `finalize` then raises E928 if it changes the saver of the scaffold, or of the graph.
    """
    if saver is not None:
        _tf.arrange_scaffold(scaffold, saver=saver)
    finalize = scaffold.finalize

    def checked() -> tf.train.Scaffold:
        saver = saver_of(scaffold)
        finalize()
        # TensorFlow itself replaces a Checkpoint by a saver.
        if scaffold.saver is not saver and not isinstance(saver, OBJECT_SAVERS):
            raise ConfigError(Problem(
                'E928', 'scaffold', 'its finalize must leave the saver that is there, around which '
                'is what restores tables and commits checkpoints', 'another',
                'Give the saver to the constructor of the scaffold.'))
        return scaffold

    scaffold.finalize = checked
    return scaffold


def with_start(scaffold: tf.train.Scaffold, start: Callable[[tf.Session], None]
               ) -> tf.train.Scaffold:
    """Makes the scaffold call `start` with a new session before its own `init_fn`."""
    theirs = scaffold.init_fn

    def init_fn(session: tf.Session) -> None:
        start(session)
        if theirs is not None:
            theirs(session)

    _tf.arrange_scaffold(scaffold, init_fn=init_fn)
    return scaffold


def finalized_once(scaffold: tf.train.Scaffold) -> tf.train.Scaffold:
    """Makes the scaffold call its `finalize` for the first session of a graph only.

    The graph is final after that. A `finalize` that adds operations does not know whether the
    session replaces a lost one.
    """
    finalize = scaffold.finalize
    graphs: list[tf.Graph] = []

    def once() -> tf.train.Scaffold:
        if tf.get_default_graph() not in graphs:
            finalize()
            graphs.append(tf.get_default_graph())
        return scaffold

    scaffold.finalize = once
    return scaffold


class _RestoringSaver:
    """Wraps a saver, so that it restores one checkpoint by a plan, and others as it always does.

    A session that replaces a lost one restores a checkpoint that this job has written itself. The
    rows of that checkpoint lie as in the graph, so it needs no plan. The wrapped saver does
    everything else.
    """

    def __init__(self, saver: tf.train.Saver, checkpoint: str, plan: RestorePlan | None,
                 following: Following | None, *, is_users: bool):
        """Wraps `saver`.

        If it is the user's, who may have left variables out, it first restores all its variables.
        """
        self._saver, self._plan, self._is_users = saver, plan, is_users
        self._checkpoint, self._following = checkpoint, following
        self._planned = following.opened if following is not None else None
        self._rest: tf.train.Saver | None = None
        self._tables: list[StreamedRows] = []
        self._begin: list[tf.Operation] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def build(self) -> None:
        """Makes all operations in the default graph, unless it has them."""
        self._saver.build()
        if self._rest is not None:
            return
        self._rest = self._saver
        if self._plan is None:
            return
        variables = variables_by_name()
        self._begin = [part.initializer for name in self._plan.begun
                       for part in variables[name][1]]
        self._tables = [StreamedRows(name, variables[name][1], source)
                        for name, source in self._plan.streamed.items()]
        planned = {id(part) for name in (*self._plan.streamed, *self._plan.begun)
                   for part in variables[name][1]}
        if not self._is_users:
            self._rest = tf.train.Saver([one for one in (
                *tf.global_variables(), *tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS))
                if id(one) not in planned], sharded=True, allow_empty=True)

    def restore(self, session: tf.Session, save_path: str) -> None:
        """Restores all variables; CorruptCheckpointError if rows cannot be read."""
        with session.graph.as_default():
            self.build()
        planned = [self._checkpoint] + ([self._following.prefix] if self._following else [])
        if os.path.realpath(save_path) not in map(os.path.realpath, planned):
            self._saver.restore(session, save_path)
        elif self._following is None:
            self._restore_by_plan(session, save_path)
        else:
            self._following.read(lambda opened: self._restore_alike(session, opened))

    def _restore_alike(self, session: tf.Session, opened: Opened) -> None:
        """Restores the checkpoint that was planned for, or one like it that took its place."""
        first = self._planned
        assert first is not None
        if first.shapes != opened.shapes or first.tables != opened.tables:
            raise IncompatibleCheckpointError(Problem(
                'E629', opened.where, f'the checkpoint that took the place of {first.where}, which '
                'a job deleted meanwhile, must hold what that held', 'other variables or tables',
                'Start again: it is compared with the model then.'))
        self._restore_by_plan(session, opened.prefix)

    def _restore_by_plan(self, session: tf.Session, checkpoint: str) -> None:
        assert self._rest is not None
        self._rest.restore(session, checkpoint)
        for operation in self._begin:  # One by one, as each needs memory of its own.
            session.run(operation)
        if self._tables:
            bundle = Bundle.open(checkpoint)
            for table in self._tables:
                table.restore(session, bundle)


class StreamedRows:
    """The parts of one variable, and the operations that fill them."""

    def __init__(self, name: str, parts: Sequence[tf.Variable], source: Source):
        """Makes the operations; E609 if the parts do not have the rows of the hosts."""
        here, width = source.here, parts[0].shape.as_list()[-1]
        wanted = [[here.rows_on(host), width] for host in range(len(parts))]
        if [part.shape.as_list() for part in parts] != wanted:
            raise IncompatibleCheckpointError(Problem(
                'E609', f'table "{name}"', 'its parts must be those of tf.fixed_size_partitioner '
                'for rows to be put into them',
                f'parts of {[part.shape.as_list() for part in parts]}', 'Use that one, or none.'))
        self._source = source
        with tf.name_scope('restored_rows'):
            self._parts = [_Part(part, is_whole=source.is_whole) for part in parts]

    def restore(self, session: tf.Session, bundle: Bundle) -> None:
        """Writes every row that a checkpoint stores to its place."""
        source = self._source
        for part in self._parts:
            session.run(part.begin)
        for stored in batches(bundle.tensors[source.tensor], _CHUNK_BYTES):
            first, stop = int(stored[0]), int(stored[-1]) + 1
            rows = bundle.read(source.tensor, first, stop)
            ids = source.stored.ids_of_stored_rows(first, stop)
            hosts, places = source.here.locate(ids, np.maximum)
            for host in np.unique(hosts).tolist():
                chosen = hosts == host
                part = self._parts[host]
                session.run(part.write, {part.places: places[chosen], part.values: rows[chosen]})
        session.run([part.end for part in self._parts if part.end is not None])


class _Part:
    """The operations that fill a part of a variable, on the device of that part.

    `begin` gives it a buffer of its own. `write` writes the rows that are fed as `places` and
    `values`. `end` ends the mode in which TensorFlow copies all of a variable whenever it is read
    as a whole, after rows of it were written; `None` if it has no such mode.
    """

    def __init__(self, part: tf.Variable, *, is_whole: bool):
        """Makes them in the default graph; values from before matter unless `is_whole`."""
        kind, (rows, width) = part.dtype.base_dtype, part.shape.as_list()
        with tf.device(part.device):
            self.places = tf.placeholder(tf.int64, [None])
            self.values = tf.placeholder(kind, [None, width])
            self.begin, self.end = part.initializer, None
            if isinstance(part, TableVariable) and part.in_pieces and (
                    is_whole or part.begins_in_engine):
                if is_whole:
                    self.begin = part.assign(part.memory(), read_value=False)
                self.write = part.write_rows(self.places, self.values)
                return
            if is_whole:
                empty = tf.raw_ops.Empty(shape=[rows, width], dtype=kind)
                self.begin = part.assign(empty, read_value=False)
            if hasattr(part, 'handle'):
                self.write = tf.raw_ops.ResourceScatterUpdate(
                    resource=part.handle, indices=self.places, updates=self.values)
                self.end = tf.raw_ops.DisableCopyOnRead(resource=part.handle)
            else:
                self.write = tf.scatter_update(part, self.places, self.values).op
