"""The one way this package writes a file."""

from __future__ import annotations

import os


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
