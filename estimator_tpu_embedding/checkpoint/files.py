"""The one way this package writes a file, and what it does with one that is in its way."""

from __future__ import annotations

import os
import tempfile


def write_atomically(path: str, content: bytes) -> None:
    """Writes a file so that a reader, or a crash at any instant, sees all of it or none.

    Args:
      path: where; its directory must exist. What is there is replaced.
      content: all bytes of the file.
    """
    staged = f'{path}.{os.getpid()}.tmp'
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    descriptor = os.open(staged, flags, 0o666)
    try:
        with os.fdopen(descriptor, 'wb') as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(staged, path)
    except BaseException:
        os.unlink(staged)
        raise
    directory = os.open(os.path.dirname(path) or '.', os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def make_writable(directory: str) -> None:
    """Makes a directory unless it is there, and sees that files can be made in it.

    Raises:
      OSError: if not.
    """
    os.makedirs(directory, exist_ok=True)
    descriptor, probe = tempfile.mkstemp(prefix='.', suffix='.tmp', dir=directory)
    os.close(descriptor)
    os.unlink(probe)


def set_aside(path: str) -> str:
    """Renames what is at `path`, to a name that is free and returned."""
    number = 1
    while os.path.lexists(aside := f'{path}.unreadable-{number}'):
        number += 1
    os.rename(path, aside)
    return aside
