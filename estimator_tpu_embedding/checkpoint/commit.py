"""Publishes a checkpoint and deletes older ones; a crash at any instant loses nothing.

A commit has these stages:

    stage    writes the files into a folder of their own
    guard    checks that shapes are those of the plan and that every number is finite
    sync     makes every file and the manifest durable, then the folder
    publish  renames all files into the directory: first the manifest, to a name that ends in
             `.partial`; then the others, the index last; last the manifest again, to its own name.
             Now the checkpoint exists
    point    renames the manifests of old checkpoints to `.partial`, then replaces the file
             `checkpoint`
    retain   deletes the files of these old checkpoints, and each `.partial` last

A `.partial` lists files that belong to no checkpoint: a job was publishing or deleting them. The
next job in the directory deletes them. A file of a published checkpoint is never written again.

A checkpoint that is damaged or of another training may be replaced by one of the same name. Files
cannot be exchanged at once, so the folder of the new one, whose files are durable, first gets a
name that says so: `.ete-replaces-ckpt-7`. From then on the new one counts. The old one is deleted
and the files are moved. If the job is killed in between, the next one finds the folder and goes on.
Until then there is no checkpoint of that name, and never files of two.
"""

from __future__ import annotations

import contextlib
import dataclasses
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from absl import logging

from ..errors import (
    CheckpointError,
    CheckpointWriteError,
    CorruptCheckpointError,
    NonFiniteCheckpointError,
    Problem,
    shown,
)
from . import file_names, pointer
from .bundle import Bundle
from .file_names import BASE, INDEX, MANIFEST, PARTIAL
from .integrity import scan
from .manifest import Manifest, StoredFile, read_file
from .recover import Known, Opened, is_whole
from .storage import Storage, free_bytes

_STAGED_MANIFEST = 'manifest'
"""The name of the manifest in a stage."""


class Saved(NamedTuple):
    """A checkpoint: its step, and the time of its commit in seconds of a monotonic clock.

    The step alone says which one is newer. `at` is `None` if an earlier process committed it: as in
    `tf.train.Saver`, only the process that wrote it knows, by a clock that never jumps.
    """

    step: int
    at: float | None = None


@dataclasses.dataclass
class Retention:
    """Decides which checkpoints are kept: the newest ones, and some of the older ones for ever.

    Attributes:
      newest: so many of the newest are kept; 0 is all.
      every_steps: older ones whose step is a multiple of it are kept; `None` is none.
      every_hours: an older one is kept if so many hours passed since `after`, and so on after
        that: `keep_checkpoint_every_n_hours`. 0 is none.
      after: a time of the clock of `Saved.at`.

    >>> retention = Retention(2, every_steps=10)
    >>> retention.split([Saved(step) for step in (10, 15, 20, 25)])
    ([Saved(step=20, at=None), Saved(step=25, at=None)], [Saved(step=15, at=None)])
    """

    newest: int = 0
    every_steps: int | None = None
    every_hours: float = 0.
    after: float = 0.

    def split(self, saved: Sequence[Saved]) -> tuple[list[Saved], list[Saved]]:
        """Decides about checkpoints in the order of their steps.

        Returns:
          `(undecided, released)`: the checkpoints to decide about another time, and the ones to
          delete. A checkpoint in neither list is kept forever.
        """
        count = max(0, len(saved) - self.newest) if self.newest else 0
        return list(saved[count:]), [one for one in saved[:count] if not self._keeps(one)]

    def _keeps(self, one: Saved) -> bool:
        """Whether a checkpoint is kept forever; asked once, when newer ones displace it."""
        if self.every_hours and one.at is not None and (
                one.at > self.after + self.every_hours * 3600):
            self.after += self.every_hours * 3600
            return True
        return self.every_steps is not None and one.step % self.every_steps == 0


class Staged(NamedTuple):
    """Files that wait in the folder of a stage, of a checkpoint of this name and step."""

    folder: str
    name: str
    step: int


def keep(storage: Storage, step: int, saved: Sequence[Saved], *, base: str = BASE,
         known: Known | None = None) -> list[Saved] | None:
    """Leaves a whole checkpoint as it is, and makes the file `checkpoint` name it.

    It returns as `publish` does; `None` if there is no whole one of that step.
    """
    name = file_names.name_of(base, step)
    if not is_whole(storage.path(name), known):
        return None
    logging.info('Step %d is saved already; %s is left as it is.', step, name)
    return point(storage, step, saved, base)


def point(storage: Storage, step: int, saved: Sequence[Saved], base: str) -> list[Saved]:
    """Makes the file `checkpoint` name a checkpoint, and all of `saved`; returns as `publish`."""
    ordered = _in_order(saved, Saved(step))
    newest = file_names.name_of(base, step)
    names = tuple(file_names.name_of(base, one.step) for one in ordered)
    with _writing(storage, step):
        if pointer.read(storage.path('')) != (newest, names):
            pointer.write(storage, newest, names)
    return ordered


def stage(storage: Storage, step: int, write: Callable[[str], None], *, base: str = BASE) -> Staged:
    """Lets `write`, which gets their prefix, write the files of a checkpoint into a new folder.

    Raises as `publish`, and any error of `write` that is no OSError.
    """
    staged = Staged(file_names.new_stage(step), file_names.name_of(base, step), step)
    with _writing(storage, step, staged.folder):
        storage.make_folder(staged.folder)
        write(storage.path(f'{staged.folder}/{staged.name}'))
    return staged


def publish(storage: Storage, staged: Staged,
            manifest: Callable[[dict[str, StoredFile]], Manifest], *,
            saved: Sequence[Saved] = (), retention: Retention = Retention()) -> list[Saved]:
    """Makes a checkpoint of staged files, in the place of one of the same name.

    Args:
      storage: of the directory.
      staged: the files, as `stage` returns them.
      manifest: makes the manifest from the sizes and hashes of the files.
      saved: the checkpoints that `retention` decides about, oldest first.
      retention: says which of them are deleted then.

    Returns:
      `saved` for the next commit.

    Raises:
      NonFiniteCheckpointError: if a number is not finite.
      CheckpointWriteError: if the checkpoint could not be written.
      CheckpointError: if a link is in the way.
      After each of these the checkpoints are as before, and the stage is gone.
    """
    base = file_names.base_of(staged.name)
    last = file_names.name_of(base, saved[-1].step) if saved else None
    with _writing(storage, staged.step, staged.folder):
        complete = _complete_manifest(
            storage.path(f'{staged.folder}/{staged.name}'), staged.step, last, manifest)
        _sync(storage, staged, complete)
        for target in (staged.name + MANIFEST, staged.name + PARTIAL, *complete.files):
            _require_kind(storage, target, stat.S_ISREG)
        is_there = any(storage.status(file) is not None
                       for file in (staged.name + INDEX, staged.name + MANIFEST))
        (_replace if is_there else _move_in)(storage, staged.folder, staged.name)
    with _writing(storage, staged.step):
        left, released = retention.split(_in_order(saved, Saved(staged.step, time.monotonic())))
        marked = mark(storage, [file_names.name_of(base, one.step) for one in released])
        point(storage, staged.step, left, base)
        for name in marked:
            delete_marked(storage, name)
    return left


def _in_order(saved: Sequence[Saved], newest: Saved) -> list[Saved]:
    """Returns the checkpoints of lower steps in order, and the newest, which must outlive them.

    A checkpoint of a higher step is damaged, or of another training; it is left alone.
    """
    older = {each.step: each for each in saved if each.step < newest.step}
    same = [each for each in saved if each.step == newest.step]
    return [*sorted(older.values()), *(same[:1] or [newest])]


def _sync(storage: Storage, staged: Staged, complete: Manifest) -> None:
    """Writes the manifest, and makes all files of the stage durable."""
    storage.create(f'{staged.folder}/{_STAGED_MANIFEST}', complete.to_json())
    for name in (*complete.files, _STAGED_MANIFEST):
        storage.sync(f'{staged.folder}/{name}')
    storage.sync(staged.folder)


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


def clean(storage: Storage) -> int:
    """Ends or deletes what killed jobs have begun; returns how many things it deleted.

    Nobody else may be committing into the directory. E623 if a link or something else is where a
    folder should be.
    """
    for name in storage.names():
        replaced = file_names.replaced_by(name)
        if replaced is not None:
            _finish_replacement(storage, name, replaced)
    count = 0
    for name in storage.names():
        if file_names.is_stage(name):
            _require_kind(storage, name, stat.S_ISDIR)
        try:
            count += _clean_one(storage, name)
        except OSError as error:  # It takes room, but is in nobody's way.
            logging.warning('%s is left where it is: %s', storage.path(name), error)
    if count:
        logging.info('%s: removed what %d saves or deletions that did not end had left.',
                     storage.path(''), count)
    return count


def _finish_replacement(storage: Storage, folder: str, name: str) -> None:
    _require_kind(storage, folder, stat.S_ISDIR)
    try:
        _move_in(storage, folder, name)
    except CorruptCheckpointError as error:
        logging.warning('%s %s is left where it is.', error, storage.path(folder))
    else:
        logging.info('%s: a killed job was replacing it, and now that is done.',
                     storage.path(name))


def _clean_one(storage: Storage, name: str) -> bool:
    """Deletes what a name stands for, if a killed job left it; returns whether it did."""
    part = file_names.parse(name)
    if file_names.is_stage(name):
        storage.remove_folder(name)
    elif file_names.is_unfinished(name):
        storage.remove(name)
    elif part is not None and part.kind == PARTIAL and (
            file_names.step_of(part.checkpoint) is not None):
        delete_marked(storage, part.checkpoint)
    else:
        return False
    return True


def mark(storage: Storage, names: Sequence[str]) -> list[str]:
    """Marks checkpoints as deleted, by renaming their manifests; returns the names of these.

    A checkpoint without a manifest is left alone. If this job is killed, the next one deletes all
    that is marked. So the file `checkpoint` may forget a checkpoint only after it is marked.
    """
    marked = [name for name in names if storage.status(name + MANIFEST) is not None]
    for name in marked:
        storage.rename(name + MANIFEST, name + PARTIAL)
    if marked:
        storage.sync()
    return marked


def delete_marked(storage: Storage, name: str) -> None:
    """Deletes the files that the `.partial` of a checkpoint lists, and then the `.partial`."""
    marker = name + PARTIAL
    if storage.status(name + MANIFEST) is None:
        try:
            listed = read_file(storage.path(marker), name).files
        except CorruptCheckpointError as error:
            logging.warning('%s The files of this step are left where they are.', error)
            return
        for file in listed:
            status = storage.status(file)
            if status is not None and stat.S_ISREG(status.st_mode):
                storage.remove(file)
        storage.sync()
    storage.remove(marker)


def _require_kind(storage: Storage, name: str, is_kind: Callable[[int], bool]) -> None:
    """Raises E623 if a link or the like has a name that a checkpoint needs."""
    status = storage.status(name)
    if status is not None and not is_kind(status.st_mode):
        raise CheckpointError(Problem(
            'E623', shown(storage.path(name), 200), 'a checkpoint must consist of files, and what '
            'is staged lies in a folder', 'a link or something else in that place', 'Remove it.'))


def _replace(storage: Storage, stage: str, name: str) -> None:
    """Replaces a checkpoint by the files of a stage and their manifest, all of them durable."""
    folder = file_names.replacement_of(name)
    if storage.status(folder) is not None:
        _move_in(storage, folder, name)
    storage.rename(stage, folder)
    storage.sync()
    _move_in(storage, folder, name)


def _move_in(storage: Storage, folder: str, name: str) -> None:
    """Makes a checkpoint of the durable files in a folder, in the place of one of that name.

    It goes on where a killed job stopped, if the folder is that of a replacement.
    """
    staged, marker = f'{folder}/{_STAGED_MANIFEST}', name + PARTIAL
    if storage.status(staged) is not None:  # Nothing was moved yet.
        mark(storage, [name])
        # TensorFlow takes whatever has an index for a checkpoint. So it goes first and comes last.
        if storage.status(name + INDEX) is not None:
            storage.remove(name + INDEX)
        if storage.status(marker) is not None:
            delete_marked(storage, name)
        storage.sync()
        storage.rename(staged, marker)
        storage.sync()
    if storage.status(marker) is not None:
        listed = read_file(storage.path(marker), name).files
        for file in sorted(listed, key=lambda file: file == name + INDEX):
            if storage.status(f'{folder}/{file}') is not None:
                storage.rename(f'{folder}/{file}', file)
        storage.sync()
        storage.rename(marker, name + MANIFEST)
        storage.sync()
    storage.remove_folder(folder)
