"""Moves in, replaces and deletes checkpoints so that no crash leaves half of one unnoticed.

A job first renames the manifest of a checkpoint to `.partial`: from then on the checkpoint does
not count. Then it deletes the files that the manifest lists, and the `.partial` last. If the job
is killed in between, the next one finds the `.partial` and goes on.

A checkpoint may be replaced by another of the same name. Files cannot be exchanged at once, so the
folder of the new one, whose files are durable, first gets a name that says so:
`.ete-replaces-ckpt-7`. From then on the new one counts. The old one is deleted and the files are
moved. If the job is killed in between, the next one finds the folder and goes on. Until then there
is no checkpoint of that name, and never files of two.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence

from absl import logging

from ..errors import CheckpointError, CorruptCheckpointError, Problem, shown
from . import file_names
from .file_names import PARTIAL, index_of, manifest_path, partial_of
from .manifest import read_file
from .storage import Storage

STAGED_MANIFEST = 'manifest'
"""The name of the manifest in a stage."""


def clean(storage: Storage) -> int:
    """Deletes what killed jobs left behind; returns how many such things there were.

    Nobody else may be committing into the directory. E623 if a link or something else is where a
    stage should be.
    """
    count = 0
    for name in storage.names():
        if file_names.is_stage(name):
            require_kind(storage, name, stat.S_ISDIR)
        try:
            count += _clean_one(storage, name)
        except OSError as error:  # It takes room, but is in nobody's way.
            logging.warning('%s is left where it is: %s', storage.path(name), error)
    return count


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
    marked = [name for name in names if storage.status(manifest_path(name)) is not None]
    for name in marked:
        storage.rename(manifest_path(name), partial_of(name))
    if marked:
        storage.sync()
    return marked


def delete_marked(storage: Storage, name: str) -> None:
    """Deletes the files that the `.partial` of a checkpoint lists, and then the `.partial`."""
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


def require_kind(storage: Storage, name: str, is_kind: Callable[[int], bool]) -> None:
    """Raises E623 if a link or the like has a name that a checkpoint needs."""
    status = storage.status(name)
    if status is not None and not is_kind(status.st_mode):
        raise CheckpointError(Problem(
            'E623', shown(storage.path(name), 200), 'a checkpoint must consist of files, and what '
            'is staged lies in a folder', 'a link or something else in that place', 'Remove it.'))


def is_there(storage: Storage, name: str) -> bool:
    """Whether there is a checkpoint of that name, in whatever state."""
    return any(storage.status(file) is not None for file in (index_of(name), manifest_path(name)))


def replace(storage: Storage, stage: str, name: str) -> None:
    """Replaces a checkpoint by the files of a stage and their manifest, all of them durable."""
    folder = file_names.replacement_of(name)
    if storage.status(folder) is not None:
        move_in(storage, folder, name)
    storage.rename(stage, folder)
    storage.sync()
    move_in(storage, folder, name)


def finish_replacements(storage: Storage) -> None:
    """Finishes the replacements that killed jobs have begun; E623 as `clean`."""
    for folder in storage.names():
        name = file_names.replaced_by(folder)
        if name is not None:
            require_kind(storage, folder, stat.S_ISDIR)
            try:
                move_in(storage, folder, name)
            except CorruptCheckpointError as error:
                logging.warning('%s %s is left where it is.', error, storage.path(folder))
            else:
                logging.info('%s: a killed job was replacing it, and now that is done.',
                             storage.path(name))


def move_in(storage: Storage, folder: str, name: str) -> None:
    """Makes a checkpoint of the durable files in a folder, in the place of one of that name.

    It goes on where a killed job stopped, if the folder is that of a replacement.
    """
    staged, marker = f'{folder}/{STAGED_MANIFEST}', partial_of(name)
    if storage.status(staged) is not None:  # Nothing was moved yet.
        mark(storage, [name])
        # TensorFlow takes whatever has an index for a checkpoint. So it goes first and comes last.
        if storage.status(index_of(name)) is not None:
            storage.remove(index_of(name))
        if storage.status(marker) is not None:
            delete_marked(storage, name)
        storage.sync()
        storage.rename(staged, marker)
        storage.sync()
    if storage.status(marker) is not None:
        listed = read_file(storage.path(marker), name).files
        for file in sorted(listed, key=lambda file: file == index_of(name)):
            if storage.status(f'{folder}/{file}') is not None:
                storage.rename(f'{folder}/{file}', file)
        storage.sync()
        storage.rename(marker, manifest_path(name))
        storage.sync()
    storage.remove_folder(folder)
