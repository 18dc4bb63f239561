"""Publishes the files of a checkpoint as the newest one; a crash at any instant loses nothing.

A commit has these stages:

    stage    writes the files into a folder of their own
    guard    checks that shapes are those of the plan and that every number is finite
    sync     makes every file and the manifest durable, then the folder
    publish  renames all files into the directory: first the manifest, to a name that ends in
             `.partial`; then the others, the index last; last the manifest again, to its own name.
             Now the checkpoint exists
    point    renames the manifests of old checkpoints to `.partial`, then replaces the file
             `checkpoint`
    retain   deletes the files of these old checkpoints

`removal` renames and deletes. It also replaces a checkpoint of the same name, which is damaged or
of another training.

A `.partial` lists files that belong to no checkpoint: a job was publishing or deleting them. The
next job in the directory deletes them. A file of a published checkpoint is never written again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from absl import logging

from ..errors import CheckpointWriteError, NonFiniteCheckpointError, Problem, shown
from . import file_names, pointer, removal
from .bundle import Bundle
from .file_names import BASE, manifest_path, partial_of
from .integrity import scan
from .manifest import Manifest, StoredFile
from .opened_checkpoint import Opened
from .recover import Known, is_whole
from .retention import Retention, Saved, in_order
from .storage import Storage, free_bytes

Write = Callable[[str], None]


class Staged(NamedTuple):
    """Files that wait in the folder of a stage, of a checkpoint with this base and step."""

    folder: str
    base: str
    step: int

    @property
    def name(self) -> str:
        """The name of the checkpoint that the files will be."""
        return file_names.name_of(self.base, self.step)


def commit(storage: Storage, step: int, write: Write,
           manifest: Callable[[dict[str, StoredFile]], Manifest], *,
           saved: Sequence[Saved] = (), retention: Retention = Retention()) -> list[Saved]:
    """Commits a checkpoint, unless the directory has a whole one of that step.

    Args:
      storage: of the directory.
      step: its global step.
      write: writes the files of a checkpoint; it gets their prefix.
      manifest: makes the manifest from the sizes and hashes of the files.
      saved: the checkpoints that `retention` decides about, oldest first.
      retention: says which of them are deleted then.

    Returns:
      `saved` for the next commit.

    Raises:
      NonFiniteCheckpointError: if a number is not finite.
      CheckpointWriteError: if the checkpoint could not be written.
      CheckpointError: if a link is in the way.
      Any error of `write` that is no OSError.
      After each of these the checkpoints are as before, and the stage is gone.
    """
    kept = keep(storage, step, saved)
    if kept is not None:
        return kept
    return publish(storage, stage(storage, step, write), manifest, saved=saved, retention=retention)


def keep(storage: Storage, step: int, saved: Sequence[Saved], *, base: str = BASE,
         known: Known | None = None) -> list[Saved] | None:
    """Leaves a whole checkpoint as it is, and makes the file `checkpoint` name it.

    It returns as `commit` does; `None` if there is no whole one of that step.
    """
    name = file_names.name_of(base, step)
    if not is_whole(storage.path(name), known):
        return None
    logging.info('Step %d is saved already; %s is left as it is.', step, name)
    return point(storage, step, saved, base)


def point(storage: Storage, step: int, saved: Sequence[Saved], base: str) -> list[Saved]:
    """Makes the file `checkpoint` name the checkpoint of a step; returns as `commit`."""
    ordered = in_order(saved, Saved(step))
    with _writing(storage, step):
        _point(storage, file_names.name_of(base, step), base, ordered)
    return ordered


def stage(storage: Storage, step: int, write: Write, *, base: str = BASE) -> Staged:
    """Writes the files of a checkpoint into a folder of their own; see `commit`."""
    staged = Staged(file_names.new_stage(step), base, step)
    with _writing(storage, step, staged.folder):
        storage.make_folder(staged.folder)
        write(storage.path(f'{staged.folder}/{staged.name}'))
    return staged


def publish(storage: Storage, staged: Staged,
            manifest: Callable[[dict[str, StoredFile]], Manifest], *,
            saved: Sequence[Saved] = (), retention: Retention = Retention()) -> list[Saved]:
    """Makes a checkpoint of staged files; see `commit`."""
    last = file_names.name_of(staged.base, saved[-1].step) if saved else None
    with _writing(storage, staged.step, staged.folder):
        complete = _complete_manifest(
            storage.path(f'{staged.folder}/{staged.name}'), staged.step, last, manifest)
        _sync(storage, staged, complete)
        for target in (manifest_path(staged.name), partial_of(staged.name), *complete.files):
            removal.require_kind(storage, target, stat.S_ISREG)
        if removal.is_there(storage, staged.name):
            removal.replace(storage, staged.folder, staged.name)
        else:
            removal.move_in(storage, staged.folder, staged.name)
    with _writing(storage, staged.step):
        left, released = retention.split(in_order(saved, Saved(staged.step, time.monotonic())))
        marked = removal.mark(storage, [
            file_names.name_of(staged.base, one.step) for one in released])
        _point(storage, staged.name, staged.base, left)
        for name in marked:
            removal.delete_marked(storage, name)
    return left


def _sync(storage: Storage, staged: Staged, complete: Manifest) -> None:
    """Writes the manifest, and makes all files of the stage durable."""
    storage.create(f'{staged.folder}/{removal.STAGED_MANIFEST}', complete.to_json())
    for name in (*complete.files, removal.STAGED_MANIFEST):
        storage.sync(f'{staged.folder}/{name}')
    storage.sync(staged.folder)


def _point(storage: Storage, newest: str, base: str, saved: Sequence[Saved]) -> None:
    """Makes the file `checkpoint` name the newest and all of `saved`, unless it does."""
    names = tuple(file_names.name_of(base, one.step) for one in saved)
    if pointer.read(storage.path('')) != (newest, names):
        pointer.write(storage, newest, names)


@contextlib.contextmanager
def _writing(storage: Storage, step: int, stage: str = '') -> Iterator[None]:
    """Turns an OSError of the body into E621, which says how much room there was.

    Whatever the body fails with, it removes the stage.
    """
    try:
        yield
    except BaseException as error:
        written = storage.size_of(f'{stage}/') if stage else 0
        free = free_bytes(storage.path('')) if isinstance(error, OSError) else 0
        with contextlib.suppress(OSError):
            if stage:
                storage.remove_folder(stage)
        if not isinstance(error, OSError):
            raise
        named = pointer.read(storage.path(''))
        last = (storage.size_of(file_names.beginning_of_files(named.newest)) if named is not None
                else 0)
        raise CheckpointWriteError(Problem(
            'E621', f'step {step}', f'a checkpoint must be written to {storage.path("")}',
            f'{shown(error, 300)}; {written:,} bytes were written, {free:,} '
            f'are free, the last checkpoint has {last:,}', 'What was saved before is as it was.'
            )) from error


def _complete_manifest(prefix: str, step: int, last: str | None,
                       manifest: Callable[[dict[str, StoredFile]], Manifest]) -> Manifest:
    """Returns the manifest of files that may be published.

    Tables that the files do not hold are left out: a saver of the user may save a part of the
    model. `last` names the last good checkpoint in messages.

    Raises:
      NonFiniteCheckpointError: E620 if a number is not finite.
      CheckpointWriteError: E621 if a slot of a table is missing, or a tensor has another shape.
      CorruptCheckpointError: if a file cannot be read.
    """
    remedy = ('There is no checkpoint before it.' if last is None
              else f'{last} is the last good checkpoint.')
    bundle = Bundle.open(prefix)
    files, nonfinite = scan(bundle)
    if nonfinite:
        raise NonFiniteCheckpointError(*[Problem(
            'E620', f'variable "{shown(name, 200)}" at step {step}',
            'all numbers of a checkpoint must be finite',
            f'{rows} rows with NaN or infinity', remedy, step)
            for name, rows in nonfinite.items()])
    complete = manifest(files)
    opened = Opened(bundle, complete)
    complete = dataclasses.replace(complete, tables={
        name: table for name, table in complete.tables.items() if name in opened.shapes})
    wrong = [f'"{shown(name, 200)}"' for variable, table in complete.tables.items()
             for name in opened.lacking(variable, table)]
    if wrong:
        raise CheckpointWriteError(Problem(
            'E621', f'step {step}', 'what was written must hold the tables of the plan',
            f'nothing, or another shape, for {", ".join(wrong[:10])}',
            'A saver of the model must save all variables. ' + remedy))
    return complete
