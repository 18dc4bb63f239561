"""Saves checkpoints: TensorFlow's Saver writes the files, and `commit` publishes them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from .. import _tf
from ..core.vocabulary_digests import Vocabulary
from ..errors import CheckpointWriteError, ConfigError, EteError, Problem, shown
from ..version import VERSION
from . import commit, file_names, model_dir
from .commit import Retention, Saved
from .concurrent_changes import signature
from .manifest import Applied, Manifest, StoredFile, StoredTable
from .options import CheckpointOptions
from .recover import Known
from .storage import Storage, created, free_bytes

_OF_THE_DISK = (
    tf.errors.ResourceExhaustedError, tf.errors.PermissionDeniedError, tf.errors.NotFoundError,
    tf.errors.UnknownError, tf.errors.InternalError, tf.errors.DataLossError,
    tf.errors.OutOfRangeError, tf.errors.UnavailableError, tf.errors.AbortedError)
"""Errors that TensorFlow raises when it cannot write a file."""

_MOST_BYTES = 2**31
"""What a tensor must be smaller than to cross from a task to another one."""

_OF_A_LOST_TASK = (tf.errors.UnavailableError, tf.errors.AbortedError)
"""Those of them that mean in a cluster that a task is gone; a new session goes on then."""


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


class CommittingSaver:
    """Stands for a `tf.train.Saver` in `tf.train.CheckpointSaverHook(saver=...)`.

    A step that this training has restored or saved is never written again. The hook saves right
    after a restore, and a crash in that instant would destroy the only good checkpoint.
    """

    def __init__(self, saver: tf.train.Saver, tables: dict[str, StoredTable], config: bytes, *,
                 options: CheckpointOptions = CheckpointOptions(),
                 vocabularies: Mapping[str, Vocabulary] | None = None,
                 lineage: set[str] | None = None, known: Known | None = None,
                 background: Any = None,
                 place_at: Callable[[str], str] | None = None,
                 took: Callable[[int, float], None] | None = None):
        """Wraps `saver`.

        Args:
          saver: built, or to be built before the first save; says how many checkpoints are kept.
          tables: of the checkpoints, by variable name; may be empty.
          config: see `Manifest`.
          options: `max_save_failures` and `keep_every_steps` count here.
          vocabularies: see `Manifest`.
          lineage: the prefixes of the checkpoints that the training has restored or saved; it gets
            those that are saved. One that is not among them is of another training, and is
            replaced.
          known: gets what is saved, and what it has is not read again.
          background: checks and publishes the files while training goes on; `None` does it before
            `save` returns. TensorFlow has written the files by then, so the snapshot needs no
            memory.
          place_at: names the worker on a device of a cluster; `''` is the client. Left out, the job
            has no cluster. The `.meta` file names no device of a cluster, so any process can import
            the graph.
          took: is told the step of each checkpoint that was saved, and the seconds until it was
            published; perhaps in the background.
        """
        self._saver, self._tables, self._config = saver, tables, config
        self._vocabularies = dict(vocabularies or {})
        self._options, self._background = options, background
        self._place_at, self._took = place_at, took
        self._lineage = lineage if lineage is not None else set()
        self._known = known if known is not None else Known()
        self._saved: list[Saved] | None = None
        self._retention: Retention | None = None
        self._failures = 0
        self._failure: CheckpointWriteError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._saver, name)

    def save(self, session: tf.Session, save_path: str, global_step: int,
             write_meta_graph: bool = True) -> str:
        """Saves `save_path-global_step`, unless this training has, and it is whole; returns that.

        It raises the errors of `commit.publish`; with a background, those of the save before.
        Errors of the disk are only logged until there are `max_save_failures` in a row.
        """
        path, base = os.path.split(save_path)
        with self._counting_failures():
            self._wait()
        if self._saved is None:
            self._saved = model_dir.saved_in(path, base)
        with self._counting_failures():
            self._commit(path, base, int(global_step),
                         functools.partial(self._write, session, write_meta_graph))
        return file_names.name_of(save_path, global_step)

    def finish(self) -> None:
        """Waits for the last save, and raises its error, whatever `max_save_failures` is."""
        self._wait()
        if self._failure is not None:
            raise self._failure

    def _wait(self) -> None:
        if self._background is not None:
            self._background.wait()

    @contextlib.contextmanager
    def _counting_failures(self) -> Iterator[None]:
        """Tolerates some failures of the disk in a row."""
        try:
            yield
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
        began = time.monotonic()
        prefix = os.path.join(path, file_names.name_of(base, step))
        with Storage(path) as storage:
            kept = (commit.keep(storage, step, self._saved or [], base=base, known=self._known)
                    if os.path.realpath(prefix) in map(os.path.realpath, self._lineage) else None)
            if kept is not None:
                self._succeed(kept)
                return
            staged = commit.stage(storage, step, write, base=base)
        work = functools.partial(self._publish, path, staged, began)
        if self._background is None:
            work()
        else:
            self._background.submit(work)

    def _publish(self, path: str, staged: commit.Staged, began: float) -> None:
        if self._retention is None:
            asked = self._saver.saver_def
            self._retention = Retention(
                asked.max_to_keep, self._options.keep_every_steps,
                asked.keep_checkpoint_every_n_hours, after=time.monotonic())
        with Storage(path) as storage:
            self._succeed(commit.publish(
                storage, staged, functools.partial(self._manifest, staged.step),
                saved=self._saved or [], retention=self._retention))
        prefix = os.path.join(path, staged.name)
        self._lineage.add(prefix)
        self._known.add(prefix, signature(prefix), is_own=True)
        if self._took is not None:
            self._took(staged.step, time.monotonic() - began)

    def _succeed(self, saved: list[Saved]) -> None:
        self._saved, self._failures, self._failure = saved, 0, None

    def _manifest(self, step: int, stored: dict[str, StoredFile]) -> Manifest:
        return Manifest(
            step=step, tables=self._tables, config=self._config, files=stored,
            plan_digest=hashlib.sha256(self._config).hexdigest() if self._config else '',
            created=time.time(), created_by=f'estimator_tpu_embedding {VERSION}',
            applied=Applied(rename=dict(self._options.rename),
                            reset_slots=tuple(self._options.reset_slots)),
            vocabularies=self._vocabularies)

    def _write(self, session: tf.Session, write_meta_graph: bool, prefix: str) -> None:
        """Lets TensorFlow write the files of a checkpoint, and no file `checkpoint`."""
        self._require_sharded()
        try:
            self._saver.save(session, file_names.base_of(prefix), write_state=False,
                             global_step=file_names.step_of(prefix),
                             write_meta_graph=write_meta_graph and self._place_at is None)
        except EteError:  # Such as the loss of a host, which TensorFlow's class makes unavailable.
            raise
        except _OF_THE_DISK as error:
            if self._place_at is not None and isinstance(error, _OF_A_LOST_TASK):
                raise
            raise OSError(self._told(error)) from None  # The stacks of a graph say no more.
        if write_meta_graph and self._place_at is not None:
            with session.graph.as_default(), created(prefix + file_names.GRAPH) as file:
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
        device, text = _tf.cause_of(error)
        place = self._place_at(device) if self._place_at is not None else ''
        return f'{place}: {text}' if place else text


def _without_devices(meta_graph: Any) -> Any:
    """Takes the devices out of a graph and its functions, in place, and returns it."""
    graph = meta_graph.graph_def
    for nodes in (graph.node, *[function.node_def for function in graph.library.function]):
        for node in nodes:
            node.device = ''
    return meta_graph
