"""Replaces a checkpoint by another of the same name, so that a crash leaves the old or the new one.

Files cannot be exchanged at once. So the folder of the new one, whose files are durable, first gets
a name that says so: `.ete-replaces-ckpt-7`. From then on the new one counts. The old one is deleted
and the files are moved. If the job is killed in between, the next one finds the folder and goes on.
Until then there is no checkpoint of that name, and never files of two.
"""

from __future__ import annotations

import stat
from collections.abc import Callable

from absl import logging

from ..errors import CorruptCheckpointError
from . import file_names, removal
from .file_names import index_of, manifest_path, partial_of
from .files import Storage
from .manifest import read_file

MANIFEST = 'manifest'
"""The name of the manifest in a stage."""


def is_there(storage: Storage, name: str) -> bool:
    """Whether there is a checkpoint of that name, in whatever state."""
    return any(storage.status(file) is not None for file in (index_of(name), manifest_path(name)))


def replace(storage: Storage, stage: str, name: str, on_phase: Callable[[str], None]) -> None:
    """Replaces a checkpoint by the files of a stage.

    Args:
      storage: of the directory.
      stage: the folder with the new files and their manifest, all of them durable.
      name: of the checkpoint.
      on_phase: is told each phase that has ended. For tests.
    """
    folder = file_names.replacement_of(name)
    if storage.status(folder) is not None:
        _finish(storage, name, on_phase)
    storage.rename(stage, folder)
    storage.sync()
    on_phase('replace')
    _finish(storage, name, on_phase)


def finish_all(storage: Storage) -> None:
    """Finishes the replacements that killed jobs have begun.

    Raises:
      CheckpointError: E623 if a link or something else is in the place of a folder.
    """
    for folder in storage.names():
        name = file_names.replaced_by(folder)
        if name is not None:
            removal.require_kind(storage, folder, stat.S_ISDIR)
            try:
                _finish(storage, name)
            except CorruptCheckpointError as error:
                logging.warning('%s %s is left where it is.', error, storage.path(folder))
            else:
                logging.info('%s: a killed job was replacing it, and now that is done.',
                             storage.path(name))


def _finish(storage: Storage, name: str, on_phase: Callable[[str], None] = lambda phase: None
            ) -> None:
    folder, marker = file_names.replacement_of(name), partial_of(name)
    if storage.status(f'{folder}/{MANIFEST}') is not None:  # Nothing of the new one was moved.
        removal.mark(storage, [name])
        on_phase('old marked')
        # TensorFlow takes whatever has an index for a checkpoint. So it goes first and comes last.
        if storage.status(index_of(name)) is not None:
            storage.remove(index_of(name))
        if storage.status(marker) is not None:
            removal.delete_marked(storage, name)
        storage.sync()
        on_phase('old deleted')
        storage.rename(f'{folder}/{MANIFEST}', marker)
        storage.sync()
    if storage.status(marker) is not None:
        listed = read_file(storage.path(marker), name).files
        for number, file in enumerate(sorted(listed, key=lambda file: file == index_of(name))):
            on_phase(f'publish.{number}')
            if storage.status(f'{folder}/{file}') is not None:
                storage.rename(f'{folder}/{file}', file)
        storage.sync()
        on_phase('moved')
        storage.rename(marker, manifest_path(name))
        storage.sync()
    on_phase('published')
    storage.remove_folder(folder)
