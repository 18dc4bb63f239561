"""Makes the files of a checkpoint the newest one, so that a crash at any instant loses neither.

    stage    write the files into .ete-stage-<step>-<nonce>
    guard    shapes are those of the plan, every number is finite
    sync     every file and the manifest, then the stage
    publish  rename all into the directory, the manifest first as <prefix>.tables.json.partial and
             at last to its name: from then on the checkpoint is there
    point    rename the manifests of old ones to .partial, then replace the file `checkpoint`
    retain   delete what these manifests list

What a `.partial` lists belongs to no checkpoint: it was being published or deleted. The next job
in the directory deletes it. No file of a checkpoint that is there is ever written again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from absl import logging

from ..errors import (
    CheckpointError, CheckpointWriteError, CorruptCheckpointError, NonFiniteCheckpointError,
    Problem, shown)
from . import file_names, pointer, recover
from .bundle import Bundle
from .file_names import BASE, manifest_path, partial_of
from .files import Storage
from .manifest import Manifest, StoredFile, read_file
from .retention import Retention, Saved
from .scan import scan

_MANIFEST = 'manifest'
OnPhase = Callable[[str], None]


class Staged(NamedTuple):
    """Files that wait in a stage.

    Attributes:
      folder: the name of the stage.
      base: what the names of checkpoints begin with.
      step: of the model.
    """

    folder: str
    base: str
    step: int

    @property
    def name(self) -> str:
        """The name of the checkpoint that it is to become."""
        return file_names.name_of(self.base, self.step)


def commit(storage: Storage, step: int, write: Callable[[str], None],
           manifest: Callable[[dict[str, StoredFile]], Manifest], *,
           saved: Sequence[Saved] = (), retention: Retention = Retention(),
           clock: Callable[[], float] = time.monotonic, base: str = BASE,
           on_phase: OnPhase = lambda phase: None) -> list[Saved]:
    """Commits a checkpoint, unless the directory has one of that step that is whole.

    Args:
      storage: of the directory.
      step: its global step.
      write: writes the files of a checkpoint with a prefix, which it gets.
      manifest: of the checkpoint, from what is known of its files.
      saved: the checkpoints that `retention` is to decide upon, oldest first.
      retention: which ones are deleted then.
      clock: gives seconds, for `Saved.at`.
      base: what its name begins with.
      on_phase: told what has just been done; see the phases in the code. For tests.

    Returns:
      `saved` for the next commit.

    Raises:
      NonFiniteCheckpointError: if a number is not finite.
      CheckpointWriteError: if the checkpoint could not be written.
      CheckpointError: if a link is in the way.
      Whatever `write` raises that is no OSError.
      After each of these the checkpoints are as before, and the stage is gone.
    """
    known = keep(storage, step, saved, base=base)
    if known is not None:
        return known
    staged = stage(storage, step, write, base=base, on_phase=on_phase)
    return publish(storage, staged, manifest, saved=saved, retention=retention, clock=clock,
                   on_phase=on_phase)


def keep(storage: Storage, step: int, saved: Sequence[Saved], *, base: str = BASE
         ) -> list[Saved] | None:
    """Leaves a checkpoint that is whole as it is, and makes `checkpoint` name it.

    Returns:
      As `commit`; `None` if there is none of that step.
    """
    name = file_names.name_of(base, step)
    if not recover.is_whole(storage.path(name)):
        return None
    logging.info('Step %d is saved already; %s is left as it is.', step, name)
    ordered = _in_order(saved, Saved(step))
    with _writing(storage, step):
        _point(storage, name, base, ordered)
    return ordered


def stage(storage: Storage, step: int, write: Callable[[str], None], *,
          base: str = BASE, on_phase: OnPhase = lambda phase: None) -> Staged:
    """Writes the files of a checkpoint into a folder of its own; see `commit`."""
    staged = Staged(file_names.new_stage(step), base, step)
    with _stage_removed(storage, staged), _writing(storage, step, staged.folder):
        storage.make_folder(staged.folder)
        on_phase('stage')
        write(storage.path(f'{staged.folder}/{staged.name}'))
        on_phase('staged')
    return staged


def publish(storage: Storage, staged: Staged,
            manifest: Callable[[dict[str, StoredFile]], Manifest], *,
            saved: Sequence[Saved] = (), retention: Retention = Retention(),
            clock: Callable[[], float] = time.monotonic,
            on_phase: OnPhase = lambda phase: None) -> list[Saved]:
    """Makes what was staged a checkpoint; see `commit`."""
    with _stage_removed(storage, staged), _writing(storage, staged.step, staged.folder):
        complete = _guarded(storage, staged, manifest, saved)
        on_phase('guarded')
        _sync(storage, staged, complete)
        on_phase('synced')
        _rename_all(storage, staged, complete, on_phase)
        on_phase('published')
        storage.remove_folder(staged.folder)
    recover.remember(storage.path(staged.name))
    with _writing(storage, staged.step):
        left, released = retention.split(_in_order(saved, Saved(staged.step, clock())))
        on_phase('point')
        marked = _mark(storage, [file_names.name_of(staged.base, one.step) for one in released])
        _point(storage, staged.name, staged.base, left)
        on_phase('pointed')
        for number, name in enumerate(marked):
            on_phase(f'retain.{number}')
            _delete_listed(storage, name)
        on_phase('retained')
    return left


def clean(storage: Storage) -> int:
    """Deletes what jobs left behind that were killed; returns how many such things there were.

    Nobody else may be committing into the directory.

    Raises:
      CheckpointError: E623 if a link or something else is where a stage should be.
    """
    count = 0
    for name in storage.names():
        is_stage, part = file_names.is_stage(name), file_names.parse(name)
        if is_stage:
            _require(storage, name, stat.S_ISDIR)
        try:
            if is_stage:
                storage.remove_folder(name)
            elif file_names.is_unfinished(name):
                storage.remove(name)
            elif part is not None and part.kind == file_names.PARTIAL and (
                    file_names.step_of(part.checkpoint) is not None):
                _delete_listed(storage, part.checkpoint)
            else:
                continue
            count += 1
        except OSError as error:  # It takes room, but is in nobody's way.
            logging.warning('%s is left where it is: %s', storage.path(name), error)
    return count


def _in_order(saved: Sequence[Saved], newest: Saved) -> list[Saved]:
    """Those of lower steps, and the newest, which comes last: it must outlive them.

    What has a higher step is damaged, or of another training; nobody decides upon it here.
    """
    older = {each.step: each for each in saved if each.step < newest.step}
    same = [each for each in saved if each.step == newest.step]
    return [*sorted(older.values()), *(same[:1] or [newest])]


def _guarded(storage: Storage, staged: Staged,
             manifest: Callable[[dict[str, StoredFile]], Manifest], saved: Sequence[Saved]
             ) -> Manifest:
    """The manifest of files that are what they should be."""
    prefix = storage.path(f'{staged.folder}/{staged.name}')
    last = ('There is no checkpoint before it.' if not saved else
            f'{file_names.name_of(staged.base, saved[-1].step)} is the last good checkpoint.')
    files, nonfinite = scan(prefix)
    if nonfinite:
        raise NonFiniteCheckpointError(*[Problem(
            'E620', f'variable "{shown(name, 200)}" at step {staged.step}',
            'all numbers of a checkpoint must be finite',
            f'{rows} rows with NaN or infinity', last, staged.step)
            for name, rows in nonfinite.items()])
    tensors = Bundle.open(prefix).tensors
    complete = manifest(files)
    complete = dataclasses.replace(complete, tables={  # A saver of the user may save a part.
        name: table for name, table in complete.tables.items() if name in tensors})
    wrong = [f'"{shown(name, 200)}"' for table, stored in complete.tables.items()
             for name in (table, *[f'{table}/{slot}' for slot in stored.slots])
             if name not in tensors or tensors[name].shape != (stored.rows, stored.width)]
    if wrong:
        raise CheckpointWriteError(Problem(
            'E621', f'step {staged.step}', 'what was written must hold the tables of the plan',
            f'nothing, or another shape, for {", ".join(wrong[:10])}',
            'A saver of the model must save all variables. ' + last))
    return complete


def _sync(storage: Storage, staged: Staged, complete: Manifest) -> None:
    """Makes all that was staged durable."""
    storage.create(f'{staged.folder}/{_MANIFEST}', complete.to_json())
    for name in (*complete.files, _MANIFEST):
        storage.sync(f'{staged.folder}/{name}')
    storage.sync(staged.folder)


def _rename_all(storage: Storage, staged: Staged, complete: Manifest, on_phase: OnPhase) -> None:
    """Moves what was staged to its place; what is there of that step is damaged
    or of another training."""
    name = staged.name
    for target in (manifest_path(name), partial_of(name), *complete.files):
        _require(storage, target, stat.S_ISREG)
    for damaged in _mark(storage, [name]):
        _delete_listed(storage, damaged)
    storage.rename(f'{staged.folder}/{_MANIFEST}', partial_of(name))
    storage.sync()
    on_phase('publish.0')
    for number, file in enumerate(complete.files, 1):
        storage.rename(f'{staged.folder}/{file}', file)
        on_phase(f'publish.{number}')
    storage.sync()
    storage.rename(partial_of(name), manifest_path(name))
    storage.sync()


def _require(storage: Storage, name: str, is_kind: Callable[[int], bool]) -> None:
    """Makes sure that a name is free, or that of what it should be."""
    status = storage.status(name)
    if status is not None and not is_kind(status.st_mode):
        raise CheckpointError(Problem(
            'E623', shown(storage.path(name), 200), 'a checkpoint must consist of files, and what '
            'is staged lies in a folder', 'a link or something else in that place', 'Remove it.'))


def _point(storage: Storage, newest: str, base: str, saved: Sequence[Saved]) -> None:
    """Makes the file `checkpoint` name the newest and all of `saved`, unless it does."""
    names = tuple(file_names.name_of(base, one.step) for one in saved)
    if pointer.read(storage.path('')) != (newest, names):
        pointer.write(storage, newest, names)


def _mark(storage: Storage, names: Sequence[str]) -> list[str]:
    """Has checkpoints no longer count; returns those that have a manifest, others are left alone.

    The next job deletes what is marked. So nothing may be forgotten by `checkpoint` before.
    """
    marked = [name for name in names if storage.status(manifest_path(name)) is not None]
    for name in marked:
        storage.rename(manifest_path(name), partial_of(name))
    if marked:
        storage.sync()
    return marked


def _delete_listed(storage: Storage, name: str) -> None:
    """Deletes the files that the `.partial` of a checkpoint lists, and then that file."""
    marker = partial_of(name)
    if storage.status(manifest_path(name)) is None:
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


@contextlib.contextmanager
def _stage_removed(storage: Storage, staged: Staged) -> Iterator[None]:
    """Removes the stage if the body fails."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            storage.remove_folder(staged.folder)
        raise


@contextlib.contextmanager
def _writing(storage: Storage, step: int, folder: str = '') -> Iterator[None]:
    """Turns an OSError of the body into one that says what there was room for."""
    try:
        yield
    except OSError as error:
        room = os.statvfs(storage.path(''))
        size = storage.size_of(f'{folder}/') if folder else 0
        named = pointer.read(storage.path(''))
        last = (storage.size_of(file_names.beginning_of_files(named.newest)) if named is not None
                else 0)
        raise CheckpointWriteError(Problem(
            'E621', f'step {step}', f'a checkpoint must be written to {storage.path("")}',
            f'{shown(error, 300)}; {size:,} bytes were written, {room.f_bavail * room.f_frsize:,} '
            f'are free, the last checkpoint has {last:,}', 'What was saved before is as it was.'
            )) from error
