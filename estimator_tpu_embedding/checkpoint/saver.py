"""Saves checkpoints: TensorFlow's Saver writes the files, and `commit` publishes them.

A table is stored in small pieces, so that a restore needs little memory: to restore a slice of a
stored tensor, TensorFlow copies every stored piece that the slice touches, and it never releases
that memory. So each part of a table is stored as many pieces of one tensor. Any number of hosts can
restore them. For example part 1 of a table `t` of 70 rows of width 2 on 2 hosts is stored so, with
16 rows in a piece:

    t   70 2 35,16:0,2      rows 35 to 50
    t   70 2 51,16:0,2      rows 51 to 66
    t   70 2 67,3:0,2       rows 67 to 69

The states of the iterators of an input are saved beside the checkpoints.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import pathlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.vocabulary_digests import Vocabulary
from ..errors import (
    CheckpointWriteError,
    ConfigError,
    CorruptCheckpointError,
    EteError,
    Problem,
    shown,
)
from ..native.graph_variable import is_of_engine
from ..proto import files
from ..version import VERSION
from . import commit, file_names, model_dir, pointer
from .commit import Policy, Retention, Saved, keep_every_hours, keep_every_steps
from .concurrent_changes import signature
from .manifest import Applied, Manifest, StoredFile, StoredTable
from .options import CheckpointOptions
from .recover import Known
from .storage import Storage, created, free_bytes

PIECE_BYTES = 2**22
"""The approximate size of a piece, unless a part would have more than `MOST_PIECES`."""

MOST_PIECES = 128

SHARD_BYTES = 2**26
"""Tables that are smaller together are saved into one file."""

MOST_SHARDS = 4

_ALIGNED = 16
"""A piece has a multiple of so many rows: TensorFlow copies slices that begin elsewhere."""

_TensorFlowsBuilder: Any = _tf.saver_builder()

_OF_THE_DISK = (
    tf.errors.ResourceExhaustedError, tf.errors.PermissionDeniedError, tf.errors.NotFoundError,
    tf.errors.UnknownError, tf.errors.InternalError, tf.errors.DataLossError,
    tf.errors.OutOfRangeError, tf.errors.UnavailableError, tf.errors.AbortedError)
"""Errors that TensorFlow raises when it cannot write a file."""

_MOST_BYTES = 2**31
"""What a tensor must be smaller than to cross from a task to another one."""

_OF_A_LOST_TASK = (tf.errors.UnavailableError, tf.errors.AbortedError)
"""Those of them that mean in a cluster that a task is gone; a new session goes on then."""


_FROM_TASK = re.compile(r'From (/job:\S+/task:\d+):\n([^\n]+)')
_AT_TASK = re.compile(r'^OOM .* on (/job:\S+/task:\d+)/')
_AFTER_NODE = re.compile(r"Node: '[^\n]*'\n(?!Detected at node|=====)([^\n]+)")


def default_saver(max_to_keep: int, keep_every_n_hours: float, client: str = ''
                  ) -> tf.train.Saver:
    """Returns a saver of all variables, with the names and layout of the original."""
    return tf.train.Saver(sharded=True, max_to_keep=max_to_keep,
                          keep_checkpoint_every_n_hours=keep_every_n_hours,
                          builder=SaverBuilder(client), defer_build=True,
                          save_relative_paths=True)


@contextlib.contextmanager
def graph_written(directory: str) -> Iterator[None]:
    """Raises E621 if the graph of a job does not fit on the disk; leaves no part of it there."""
    try:
        yield
    except (tf.errors.ResourceExhaustedError, tf.errors.PermissionDeniedError) as error:
        for part in pathlib.Path(directory).glob('graph.pbtxt.tmp*'):
            part.unlink(missing_ok=True)
        raise CheckpointWriteError(Problem(
            'E621', f'model_dir {directory}', 'graph.pbtxt must be written to it',
            f'{shown(error.message, 300)}; {free_bytes(directory):,} bytes are free',
            'What was saved before is as it was.')) from error


class Lineage:
    """The checkpoints that a training has restored or saved."""

    def __init__(self) -> None:
        self._prefixes: set[str] = set()

    def add(self, prefix: str) -> None:
        """Adds the prefix of a checkpoint."""
        self._prefixes.add(os.path.realpath(prefix))

    def __contains__(self, prefix: str) -> bool:
        return os.path.realpath(prefix) in self._prefixes


def cause_of(error: tf.errors.OpError) -> tuple[str, str]:
    """Returns (device, text) of an error of TensorFlow: of the task that raised it, without stacks.

    The device is `''` if it was this process.

    >>> message = "Node: 'save/SaveV2'\\nD/model.ckpt-7; No such file or directory\\n\\t [[...]]"
    >>> cause_of(tf.errors.NotFoundError(None, None, message))
    ('', 'D/model.ckpt-7; No such file or directory')
    """
    device, text = '', error.message
    if (from_task := _FROM_TASK.search(text)) is not None:
        device, text = from_task[1], from_task[2].strip()
    elif (after_node := _AFTER_NODE.search(text)) is not None:
        text = after_node[1].strip()
    if error.op is not None:  # The text may name another task, which waited for the first.
        device = error.op.device
    if (at_task := _AT_TASK.search(text)) is not None:
        device = at_task[1]
    return device, text


class CommittingSaver:
    """Stands for a `tf.train.Saver` in `tf.train.CheckpointSaverHook(saver=...)`.

    A step that this training has restored or saved is never written again. The hook saves right
    after a restore, and a crash in that instant would destroy the only good checkpoint.
    """

    def __init__(self, saver: tf.train.Saver, tables: dict[str, StoredTable], config: bytes, *,
                 options: CheckpointOptions = CheckpointOptions(),
                 vocabularies: Mapping[str, Vocabulary] | None = None,
                 lineage: Lineage | None = None, known: Known | None = None,
                 background: Any = None,
                 place_at: Callable[[str], str] | None = None):
        """Wraps `saver`.

        Args:
          saver: built, or to be built before the first save; says how many checkpoints are kept.
          tables: of the checkpoints, by variable name; may be empty.
          config: see `Manifest`.
          options: `max_save_failures` and `keep_every_steps` count here.
          vocabularies: see `Manifest`.
          lineage: of the training. A checkpoint of the same step of another training is replaced.
          known: gets what is saved, and what it has is not read again.
          background: checks and publishes the files while training goes on; `None` does it before
            `save` returns. TensorFlow has written the files by then, so the snapshot needs no
            memory.
          place_at: names the worker on a device of a cluster; `''` is the client. Left out, the job
            has no cluster. The `.meta` file names no device of a cluster, so any process can import
            the graph.
        """
        self._saver, self._tables, self._config = saver, tables, config
        self._vocabularies = dict(vocabularies or {})
        self._options, self._background = options, background
        self._place_at = place_at
        self._lineage = lineage if lineage is not None else Lineage()
        self._known = known if known is not None else Known()
        self._saved: list[Saved] | None = None
        self._retention: Retention | None = None
        self._failures = 0
        self._failure: CheckpointWriteError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def save(self, session: tf.Session, save_path: str, global_step: int,
             write_meta_graph: bool = True) -> str:
        """Saves `save_path-global_step`, unless this training has, and it is whole.

        Returns:
          The prefix of the checkpoint.

        Raises:
          The errors of `commit.commit`; with a background, the errors of the save before. Errors
          of the disk are only logged until there are `max_save_failures` in a row.
        """
        path, base = os.path.split(save_path)
        self._counting_failures(self._wait)
        if self._saved is None:
            self._saved = model_dir.saved_in(path, base)
        self._counting_failures(functools.partial(
            self._commit, path, base, int(global_step),
            functools.partial(self._write, session, write_meta_graph, int(global_step))))
        return file_names.name_of(save_path, global_step)

    def finish(self) -> None:
        """Waits for the last save, and raises its error, whatever `max_save_failures` is."""
        self._wait()
        if self._failure is not None:
            raise self._failure

    def _wait(self) -> None:
        if self._background is not None:
            self._background.wait()

    def _counting_failures(self, work: Callable[[], None]) -> None:
        """Does work, and tolerates some failures of the disk in a row."""
        try:
            work()
        except CheckpointWriteError as error:
            self._failures += 1
            self._failure = error
            if self._failures >= self._options.max_save_failures:
                raise
            tf.logging.error('%s Training goes on; %d saves in a row have failed, of which %d '
                             'would end it.', error, self._failures,
                             self._options.max_save_failures)

    def _commit(self, path: str, base: str, step: int, write: Callable[[str], None]) -> None:
        """Saves a step, or begins to, and leaves the rest to the background."""
        prefix = os.path.join(path, file_names.name_of(base, step))
        with Storage(path) as storage:
            kept = (commit.keep(storage, step, self._saved or [], base=base, known=self._known)
                    if prefix in self._lineage else None)
            if kept is not None:
                self._succeed(kept)
                return
            staged = commit.stage(storage, step, write, base=base)
        work = functools.partial(self._publish, path, staged)
        if self._background is None:
            work()
        else:
            self._background.submit(work)

    def _publish(self, path: str, staged: commit.Staged) -> None:
        if self._retention is None:
            self._retention = self._retention_of(self._saver.saver_def)
        with Storage(path) as storage:
            self._succeed(commit.publish(
                storage, staged, functools.partial(self._manifest, staged.step),
                saved=self._saved or [], retention=self._retention))
        prefix = os.path.join(path, staged.name)
        self._lineage.add(prefix)
        self._known.add(prefix, signature(prefix), is_own=True)

    def _succeed(self, saved: list[Saved]) -> None:
        self._saved, self._failures, self._failure = saved, 0, None

    def _retention_of(self, definition: Any) -> Retention:
        others: list[Policy] = []
        if definition.keep_checkpoint_every_n_hours:
            others.append(keep_every_hours(definition.keep_checkpoint_every_n_hours,
                                           time.monotonic()))
        if self._options.keep_every_steps is not None:
            others.append(keep_every_steps(self._options.keep_every_steps))
        return Retention(definition.max_to_keep, others)

    def _manifest(self, step: int, stored: dict[str, StoredFile]) -> Manifest:
        return Manifest(
            step=step, tables=self._tables, config=self._config, files=stored,
            plan_digest=hashlib.sha256(self._config).hexdigest() if self._config else '',
            created=time.time(), created_by=f'estimator_tpu_embedding {VERSION}',
            applied=Applied(rename=dict(self._options.rename),
                            reset_slots=tuple(self._options.reset_slots)),
            vocabularies=self._vocabularies)

    def _write(self, session: tf.Session, write_meta_graph: bool, step: int, prefix: str) -> None:
        """Lets TensorFlow write the files of a checkpoint, and no file `checkpoint`."""
        self._require_sharded()
        try:
            self._saver.save(session, file_names.base_of(prefix), global_step=step,
                             write_meta_graph=write_meta_graph and self._place_at is None,
                             write_state=False)
        except EteError:  # Such as the loss of a host, which TensorFlow's class makes unavailable.
            raise
        except _OF_THE_DISK as error:
            if self._place_at is not None and isinstance(error, _OF_A_LOST_TASK):
                raise
            raise OSError(self._told(error)) from None  # The stacks of a graph say no more.
        if write_meta_graph and self._place_at is not None:
            with session.graph.as_default(), created(file_names.graph_of(prefix)) as file:
                file.write(_without_devices(self._saver.export_meta_graph()).SerializeToString())

    def _require_sharded(self) -> None:
        """Makes sure that no saver of the user moves a large table of a cluster to one task."""
        largest = max((4 * one.width * -(-one.rows // one.hosts) for one in self._tables.values()),
                      default=0)
        if (self._place_at is not None and largest >= _MOST_BYTES
                and not self._saver.saver_def.sharded):
            raise ConfigError(Problem(
                'E743', 'scaffold', 'its saver must be sharded, since no tensor of '
                f'{_MOST_BYTES:,} bytes can leave its host', f'{largest:,} bytes of a table on one '
                'host', 'Make it with tf.train.Saver(sharded=True), or leave it out.'))

    def _told(self, error: tf.errors.OpError) -> str:
        """Returns what an error says, and on which worker it happened."""
        device, text = cause_of(error)
        place = self._place_at(device) if self._place_at is not None else ''
        return f'{place}: {text}' if place else text


def _without_devices(meta_graph: Any) -> Any:
    """Takes the devices out of a graph and its functions, in place, and returns it."""
    graph = meta_graph.graph_def
    for nodes in (graph.node, *[function.node_def for function in graph.library.function]):
        for node in nodes:
            node.device = ''
    return meta_graph


class SaverBuilder(_TensorFlowsBuilder):
    """A builder for `tf.train.Saver(builder=...)` with the same format as TensorFlow's own.

    Once rows of a variable were read or written, the variable is in a mode in which TensorFlow
    copies it at each read of its whole value. TensorFlow's own savers leave the mode, but in a
    graph their reads do not wait for that. So they hold a copy of every table at once. Here a read
    waits. The next look-up enters the mode again. That copies nothing, because the run that saved
    has ended by then, and nobody else holds the tensor.

    Each task of a cluster writes files of its own variables, so no table leaves its task. The
    client merges their indices into one.
    """

    def __init__(self, client: str = ''):
        """Takes the device of the client of a cluster; `''` without one."""
        super().__init__()
        self.merging_device = client

    def shards(self, saveables: Sequence[Any]) -> list[list[Any]]:
        """Returns the saveables of each file; parts of large tables are spread over several files.

        TensorFlow writes a file and computes its checksums in one thread. The hash of a file can
        only be computed from its beginning to its end. So one file keeps one core busy.
        """
        sizes = [_bytes_of_part(saveable) for saveable in saveables]
        count = min(MOST_SHARDS, sum(size > 0 for size in sizes))
        if sum(sizes) < SHARD_BYTES or count < 2:
            return [list(saveables)]
        shards: list[list[Any]] = [[] for _ in range(count)]
        filled = [0] * count
        for size, number in sorted(zip(sizes, range(len(sizes))), key=lambda one: -one[0]):
            smallest = filled.index(min(filled))
            shards[smallest].append(saveables[number])
            filled[smallest] += size
        return shards

    def save_op(self, filename_tensor: tf.Tensor, saveables: Sequence[Any]) -> tf.Operation:
        """Saves all `saveables` under a prefix."""
        names, slices, tensors = zip(*[
            piece for saveable in saveables for spec in saveable.specs
            for piece in _pieces(spec.name, spec.slice_spec, self._value(saveable, spec))])
        return tf.raw_ops.SaveV2(prefix=filename_tensor, tensor_names=names,
                                 shape_and_slices=slices, tensors=tensors)

    def _value(self, saveable: Any, spec: Any) -> tf.Tensor:
        """Returns the tensor to save; a variable is read in place."""
        if not isinstance(saveable, self.ResourceVariableSaveable):
            return spec.tensor
        if is_of_engine(saveable.op):
            return spec.tensor  # It can be read while a step runs, and copies nothing.
        with tf.control_dependencies([
                tf.raw_ops.DisableCopyOnRead(resource=saveable.handle_op)]):
            return tf.raw_ops.ReadVariableOp(resource=saveable.handle_op, dtype=spec.dtype)


def _bytes_of_part(saveable: Any) -> int:
    """Returns the bytes of a part of a float32 table; 0 for anything else.

    The end of its slice says it, as in `'70 2 35,35:0,2'`.
    """
    slice_spec = saveable.specs[0].slice_spec
    extents = slice_spec.split()[-1].split(':') if slice_spec else []
    return 4 * math.prod(int(extent.split(',')[1]) for extent in extents) if extents else 0


def _pieces(name: str, slice_spec: str, part: tf.Tensor
            ) -> Iterator[tuple[str, str, tf.Tensor]]:
    """Yields (name, slice, value) of the pieces of a part, which share its memory.

    The slice of a part is such as `'70 2 35,35:0,2'`, and empty for all of a tensor.
    """
    if not slice_spec or part.shape.rank != 2:
        yield name, slice_spec, part
        return
    *full_shape, extents = slice_spec.split()
    own_rows, own_columns = extents.split(':')
    first = int(own_rows.split(',')[0])
    rows, width = part.shape.as_list()
    step = max(PIECE_BYTES // (4 * width), -(-rows // MOST_PIECES))
    step += -step % _ALIGNED
    numbers = tf.reshape(part, [-1])
    for start in range(0, rows, step):
        count = min(step, rows - start)
        piece = tf.slice(numbers, tf.constant([start * width], tf.int64),
                         tf.constant([count * width], tf.int64))
        yield (name, f'{" ".join(full_shape)} {first + start},{count}:{own_columns}',
               tf.reshape(piece, [count, width]))


class IteratorStates:
    """The states beside the checkpoints of a model: `input.ckpt-7` belongs to `model.ckpt-7`.

    The file `checkpoint_input` lists them, as `checkpoint` lists the checkpoints of the model.
    """

    def __init__(self, directory: str, name: str, max_to_keep: int):
        """Names the files.

        `name` is `'input'`, or another one for each process that has an input. So many states are
        kept; older ones are deleted.
        """
        self._directory = directory
        self._prefix = os.path.join(directory, file_names.base_of_states(name))
        self._pointer = file_names.pointer_to_states(name)
        # One more than models, since a state is saved before its model.
        self._keep = max_to_keep + 1 if max_to_keep else max_to_keep
        self._saver: Any = None
        self._last: int | None = None
        self._seen: tuple[int, ...] = ()

    def build(self, saveables: Sequence[Any]) -> None:
        """Adds the operations that save and restore, one saveable per iterator."""
        self._saver = tf.train.Saver(
            saveables, sharded=True, max_to_keep=self._keep, save_relative_paths=True)

    def restore(self, session: tf.Session, step: int) -> bool:
        """Restores the state of a step, or the newest one if that step has none, if there is any.

        E627 if one of its files is no regular file.
        """
        state = pointer.read(self._directory, self._pointer)
        wanted = file_names.name_of(self._prefix, step)
        others = self._own([state.newest] if state else ())
        path = next((path for path in (wanted, *others) if _has_state(path)), None)
        if path is None:
            if step:
                tf.logging.warning('The model is at step %d, but there is no state of its input, '
                                   'which starts from its beginning.', step)
            return False
        if state is not None:
            self._saver.recover_last_checkpoints(self._own(state.all))
        self._last = step if path == wanted else None
        if path != wanted:
            tf.logging.warning('The model is at step %d, but the newest state of its input is '
                               '%s: some batches come twice, or not at all.', step, path)
        self._saver.restore(session, path)
        return True

    def _own(self, paths: Sequence[str]) -> list[str]:
        """Returns the paths that are states of these iterators; others must not be touched."""
        base = os.path.basename(self._prefix)
        names = [pointer.Pointer(path, ()).name_in(self._directory) for path in paths]
        return [os.path.join(self._directory, name) for name in names
                if name is not None and file_names.base_of(name) == base
                and file_names.step_of(name) is not None]

    def save(self, session: tf.Session, step: int) -> None:
        """Saves, unless that step is saved already."""
        if step == self._last:
            return
        tf.logging.info('Saving the state of the input for %d into %s.', step, self._prefix)
        self._saver.save(session, self._prefix, global_step=step,
                         latest_filename=self._pointer, write_meta_graph=False)
        self._last = step

    def has_new_model(self) -> bool:
        """Whether a checkpoint of the model was written since the last call."""
        try:
            status = os.stat(os.path.join(self._directory, file_names.POINTER))
        except FileNotFoundError:
            return False
        before, self._seen = self._seen, (status.st_ino, status.st_mtime_ns, status.st_size)
        return self._seen != before


def _has_state(prefix: str) -> bool:
    """Whether there is a state.

    E627 if one of its files is a pipe or the like. TensorFlow would wait for it when it reads the
    state, or saves that step again.
    """
    directory, base = os.path.split(prefix)
    names = [name for name in os.listdir(directory or '.')
             if name.startswith(file_names.beginning_of_files(base))]
    for name in names:
        try:
            files.open_regular(os.path.join(directory, name), follow=False).close()
        except OSError as error:
            raise CorruptCheckpointError(Problem(
                'E627', f'state of the input {shown(base, 255)}',
                f'its file {shown(name, 255)} must be a regular file that can be read',
                shown(error.strerror or error), 'Remove it: the input then starts from another '
                'state, or from its beginning.')) from error
    return file_names.index_of(base) in names
