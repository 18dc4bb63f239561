"""Prepares a model_dir for a training job: locks it, cleans it, and says where training begins.

The system releases the lock when a process ends, in whatever way. A record in the file then tells
the next process who had it.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import os
import socket
import stat
from collections.abc import Iterator
from io import FileIO

from absl import logging

from ..errors import CheckpointError, CheckpointWriteError, Problem, shown
from ..proto import files
from . import commit, file_names, pointer
from .commit import Saved
from .file_names import INDEX, POINTER
from .options import CheckpointOptions
from .recover import Known, Opened, recover
from .storage import Storage, set_aside

LOCK = '.ete-lock'
_MOST_BYTES = 4096
_open: set[FileIO] = set()


@contextlib.contextmanager
def claimed(directory: str) -> Iterator[int]:
    """Keeps a directory for this job alone while the body runs; makes it if it is missing.

    It first deletes what killed jobs left there.

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
    with _locked(directory), Storage(directory) as storage:
        count = commit.clean(storage)
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
        commit.clean(storage)


def saved_in(directory: str, base: str) -> list[Saved]:
    """Returns the checkpoints that the retention of this job may delete, oldest first.

    As in TensorFlow, the file `checkpoint` lists them. A checkpoint that an earlier job keeps
    forever is not in that list.
    """
    named = pointer.read(directory)
    steps = {file_names.step_of(name) for name in (named.all if named is not None else ())
             if file_names.base_of(name) == base
             and os.path.lexists(os.path.join(directory, name + INDEX))}
    return [Saved(step) for step in sorted(step for step in steps if step is not None)]


def continue_from(directory: str, found: Opened) -> list[str]:
    """Makes the file `checkpoint` name the checkpoint from which training continues.

    Newer ones are damaged. They stay until their step is saved again, and the retention no longer
    counts them. It returns facts for the user: which ones, and whether `checkpoint` named another.
    """
    folder, name = os.path.split(found.prefix)
    facts = [f'{problem}  {name} is restored instead.' for problem in found.skipped]
    if os.path.realpath(folder) != os.path.realpath(directory) or found.step is None:
        return facts
    other = pointer.named_in(directory)
    if not facts and other and other != name and os.path.lexists(
            os.path.join(directory, other) + INDEX):
        facts.append(f'the file "checkpoint" names {shown(other)}, but {name} is restored, the '
                     f'newest that is whole; to go back, move those after {shown(other)} away')
    base = file_names.base_of(name)
    with Storage(directory) as storage:
        commit.point(storage, found.step, saved_in(directory, base), base)
    return facts


def settle(directory: str, options: CheckpointOptions, known: Known | None = None
           ) -> Opened | None:
    """Makes the file `checkpoint` name the newest whole checkpoint, which `recover` finds."""
    found = recover(directory, options, known)
    if found is not None:
        continue_from(directory, found)
    elif os.path.lexists(os.path.join(directory, POINTER)):
        _set_pointer_aside(directory)  # It names nothing, and TensorFlow would read all of it.
    return found


def _set_pointer_aside(directory: str) -> None:
    """Renames a file `checkpoint` that names no checkpoint; E621 if it cannot."""
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


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Holds the lock of a directory; no other process or thread can."""
    with _opened(directory) as file:
        if not _is_taken(file, directory):
            yield  # Some network file systems have no locks; there nothing can be promised.
            return
        before = file.read(_MOST_BYTES)
        if before:
            logging.warning('%s was left by a job that did not end in order: %s', directory,
                            _who(before))
        _write_record(file, json.dumps({
            'pid': os.getpid(), 'host': socket.gethostname(),
            'since': datetime.datetime.now().astimezone().isoformat(timespec='seconds'),
        }).encode())
        try:
            yield
        finally:
            _write_record(file, b'')


@contextlib.contextmanager
def _opened(directory: str) -> Iterator[FileIO]:
    """Opens the file of the lock; child processes do not keep it open when this one has ended."""
    try:
        opened = FileIO(os.path.join(directory, LOCK), 'r+', opener=_descriptor)
    except OSError as error:
        raise CheckpointWriteError(Problem(
            'E621', f'model_dir {directory}', f'the file {LOCK} of its lock must be a regular '
            'file that can be written', shown(error.strerror or error), 'Use a directory that '
            f'this process may write to; if {LOCK} is no regular file, remove it.')) from error
    with opened as file:
        _open.add(file)
        try:
            yield file
        finally:
            _open.discard(file)


def _descriptor(path: str, flags: int) -> int:
    """Opens the file, or makes it; a pipe or the like in its place, which may hang, is refused."""
    with contextlib.suppress(FileNotFoundError):
        files.require_regular(os.stat(path, follow_symlinks=False))
    descriptor = os.open(
        path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        files.require_regular(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_taken(file: FileIO, directory: str) -> bool:
    """Takes the lock; returns `False` if the file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise CheckpointError(Problem(
                'E622', f'model_dir {directory}', 'one job at a time may train in it',
                f'another one: {_who(file.read(_MOST_BYTES))}',
                'Wait for its end, stop it, or use another model_dir.')) from None
        logging.warning('%s cannot be locked (%s): make sure that no other job trains in it.',
                        directory, error.strerror)
        return False
    return True


def _write_record(file: FileIO, content: bytes) -> None:
    """Writes who holds the lock, if the disk is not full; the lock is held in any case."""
    with contextlib.suppress(OSError, ValueError):  # In a child of a fork it is closed.
        file.seek(0)
        file.truncate()
        file.write(content)


def _close_all() -> None:
    """Closes the files in a forked child: a lock lasts while any process has its file open."""
    for file in _open:
        file.close()


def _who(record: bytes) -> str:
    """Returns who wrote the record in the file of a lock, safe to print."""
    try:
        fields = json.loads(record)
        return (f'pid {int(fields["pid"])} on {shown(fields["host"])} since '
                f'{shown(fields["since"])}')
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 'it left no readable note'

os.register_at_fork(after_in_child=_close_all)
