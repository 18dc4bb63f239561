"""Locks a model_dir, so that one job at a time trains in it."""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from io import FileIO

from absl import logging

from ..errors import CheckpointError, CheckpointWriteError, Problem, shown
from ..proto import files

NAME = '.ete-lock'
_MAX_BYTES = 4096
_open: set[FileIO] = set()


@contextlib.contextmanager
def held(directory: str) -> Iterator[None]:
    """Holds the lock of a directory while the body runs; no other process or thread can.

    The system releases the lock when a process ends, in whatever way. A note in the file then tells
    the next process who had it.

    Args:
      directory: which must exist.

    Raises:
      CheckpointError: E622 if another job holds it; says which process, on which host, since when.
      CheckpointWriteError: E621 if the file of the lock cannot be made.
    """
    with _opened(directory) as file:
        if not _is_taken(file, directory):
            yield  # Some network file systems have no locks; there nothing can be promised.
            return
        before = file.read(_MAX_BYTES)
        if before:
            logging.warning('%s was left by a job that did not end in order: %s', directory,
                            _who(before))
        _note(file, json.dumps({
            'pid': os.getpid(), 'host': socket.gethostname(),
            'since': datetime.datetime.now().astimezone().isoformat(timespec='seconds'),
        }).encode())
        try:
            yield
        finally:
            _note(file, b'')


@contextlib.contextmanager
def _opened(directory: str) -> Iterator[FileIO]:
    """Opens the file of the lock; child processes do not keep it open when this one has ended."""
    path = os.path.join(directory, NAME)
    try:
        descriptor = _descriptor(path)
    except OSError as error:
        raise CheckpointWriteError(Problem(
            'E621', f'model_dir {directory}', f'the file {NAME} of its lock must be a regular '
            'file that can be written', shown(error.strerror or error), 'Use a directory that '
            f'this process may write to; if {NAME} is no regular file, remove it.')) from error
    with FileIO(descriptor, 'r+') as file:
        _open.add(file)
        try:
            yield file
        finally:
            _open.discard(file)


def _descriptor(path: str) -> int:
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
                f'another one: {_who(file.read(_MAX_BYTES))}',
                'Wait for its end, stop it, or use another model_dir.')) from None
        logging.warning('%s cannot be locked (%s): make sure that no other job trains in it.',
                        directory, error.strerror)
        return False
    return True


def _note(file: FileIO, content: bytes) -> None:
    """Writes who holds the lock, if there is room; the lock is held in any case."""
    with contextlib.suppress(OSError, ValueError):  # In a child of a fork it is closed.
        file.seek(0)
        file.truncate()
        file.write(content)


def _close_all() -> None:
    """Closes the files in a forked child: a lock lasts while any process has its file open."""
    for file in _open:
        file.close()


def _who(note: bytes) -> str:
    """Returns the note in the file of a lock, safe to print."""
    try:
        fields = json.loads(note)
        return (f'pid {int(fields["pid"])} on {shown(fields["host"])} since '
                f'{shown(fields["since"])}')
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 'it left no readable note'


os.register_at_fork(after_in_child=_close_all)
