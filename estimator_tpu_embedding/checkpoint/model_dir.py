"""Prepares a model_dir for a training job: claims it, cleans it, and says where training begins."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from absl import logging

from ..errors import CheckpointError, CheckpointWriteError, Problem, shown
from . import commit, file_names, lock, pointer, removal
from .commit import Saved
from .file_names import POINTER, index_of
from .held import Held
from .options import CheckpointOptions
from .recover import Known, Recovered, recover
from .storage import Storage, make_writable, set_aside


@contextlib.contextmanager
def claimed(directory: str) -> Iterator[int]:
    """Keeps a directory for this job alone while the body runs.

    It first deletes what killed jobs left there.

    Args:
      directory: is made if it is missing.

    Yields:
      How many saves or deletions that did not end had left something.

    Raises:
      CheckpointWriteError: E621 if it cannot be made or written to.
      CheckpointError: E622 if another job trains in it; E624 if it is no directory of this
        machine: no promise of this package holds on another kind of storage.
    """
    if '://' in directory:
        raise CheckpointError(Problem(
            'E624', 'model_dir', 'it must be a directory of this machine', shown(directory, 200),
            'Train in a local directory and copy its checkpoints.'))
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise CheckpointWriteError(_unwritable(directory, error)) from error
    with lock.held(directory), Storage(directory) as storage:
        count = _tidy(storage)
        status = storage.status(POINTER)
        if status is not None and not (stat.S_ISREG(status.st_mode)
                                       or stat.S_ISLNK(status.st_mode)):
            _set_pointer_aside(directory)  # Some tools could neither read nor replace it.
        yield count


def tidy(directory: str) -> None:
    """Deletes what a save of this job left that was given up, as with a task that was lost.

    The job has claimed the directory, and saves nothing meanwhile. A task may have written while
    the save was given up, so part of a stage may be there. If it still runs and goes on, it can
    make no file: its stage is gone, and the next stage has another name.
    """
    with Storage(directory) as storage:
        _tidy(storage)


def _tidy(storage: Storage) -> int:
    """Ends or deletes what saves and deletions left; returns how many."""
    removal.finish_replacements(storage)
    count = removal.clean(storage)
    if count:
        logging.info('%s: removed what %d saves or deletions that did not end had left.',
                     storage.path(''), count)
    return count


def require_writable(directory: str) -> None:
    """Makes a directory of this machine if it is missing, and checks that it can be written to.

    Raises:
      CheckpointWriteError: E621 if not.
    """
    try:
        if '://' not in directory:
            make_writable(directory)
    except OSError as error:
        raise CheckpointWriteError(_unwritable(directory, error)) from error


def saved_in(directory: str, base: str) -> list[Saved]:
    """Returns the checkpoints that the retention of this job may delete, oldest first.

    As in TensorFlow, the file `checkpoint` lists them. A checkpoint that an earlier job keeps
    forever is not in that list.
    """
    named = pointer.read(directory)
    steps = {file_names.step_of(name) for name in (named.all if named is not None else ())
             if file_names.base_of(name) == base
             and os.path.lexists(os.path.join(directory, index_of(name)))}
    return [Saved(step) for step in sorted(step for step in steps if step is not None)]


def continue_from(directory: str, found: Recovered) -> list[str]:
    """Makes the file `checkpoint` name the checkpoint from which training continues.

    Newer ones are damaged. They stay until their step is saved again, and the retention no longer
    counts them.

    Returns:
      Facts for the user: which ones are damaged, and whether `checkpoint` named another.
    """
    folder, name = os.path.split(found.prefix)
    facts = [f'{problem}  {name} is restored instead.' for problem in found.skipped]
    if os.path.realpath(folder) != os.path.realpath(directory) or found.step is None:
        return facts
    other = pointer.named_in(directory)
    if not facts and other and other != name and os.path.lexists(
            index_of(os.path.join(directory, other))):
        facts.append(f'the file "checkpoint" names {shown(other)}, but {name} is restored, the '
                     f'newest that is whole; to go back, move those after {shown(other)} away')
    base = file_names.base_of(name)
    with Storage(directory) as storage:
        commit.point(storage, found.step, saved_in(directory, base), base)
    return facts


def settle(directory: str, options: CheckpointOptions, known: Known | None = None
           ) -> Held | None:
    """Makes the file `checkpoint` name the newest checkpoint that is whole.

    Returns:
      That checkpoint, if there is one.

    Raises:
      CheckpointError: as `recover`.
    """
    found = recover(directory, options, known)
    if found is not None:
        continue_from(directory, found)
    elif os.path.lexists(os.path.join(directory, POINTER)):
        _set_pointer_aside(directory)  # It names nothing, and TensorFlow would read all of it.
    return found.held if found is not None else None


def _set_pointer_aside(directory: str) -> None:
    """Renames a file `checkpoint` that names no checkpoint.

    Raises:
      CheckpointWriteError: E621 if it cannot be renamed.
    """
    try:
        aside = set_aside(os.path.join(directory, POINTER))
    except OSError as error:
        raise CheckpointWriteError(_unwritable(directory, error)) from error
    logging.warning('%s', Problem(
        'W618', f'model_dir {directory}', 'its file "checkpoint" must name a checkpoint',
        'something else', f'It is now called {os.path.basename(aside)}.'))


def _unwritable(directory: str, error: OSError) -> Problem:
    return Problem('E621', f'model_dir {directory}', 'it must be a directory that can be written '
                   'to', shown(error.strerror or error, 200), 'Use another one.')
