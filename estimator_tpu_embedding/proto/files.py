"""The one way this package opens what others wrote: regular files only, never more than asked.

A named pipe would block, a device would never end or do something, a link inside a directory may
lead out of it.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

NO_FILE = 'a pipe, socket or device'
"""What an error says of what can be read by its name only at a risk."""

_CHUNK = 2**20


def open_regular(path: str, *, follow: bool) -> BinaryIO:
    """Opens a regular file for reading.

    Args:
      path: where it is.
      follow: whether `path` itself may be a link; `False` for files that the user did not name.

    Raises:
      OSError: if it is not there, not readable, or not a regular file.
      ValueError: if no file can have that name.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    # Looked at before it is opened, since opening a device may already do something.
    require_regular(os.stat(path, follow_symlinks=follow))
    descriptor = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    try:
        require_regular(os.fstat(descriptor))
        return os.fdopen(descriptor, 'rb')
    except BaseException:
        os.close(descriptor)
        raise


def require_regular(status: os.stat_result) -> None:
    """Makes sure that what was looked at is a regular file.

    Raises:
      OSError: with what it is, if it is something else.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, 'a directory')
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, 'a link, which is not followed here')
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, NO_FILE)


def size_of(file: BinaryIO) -> int:
    """The size of an open file in bytes."""
    return os.fstat(file.fileno()).st_size


def read_at_most(stream: BinaryIO, most: int, begun: bytearray | None = None) -> bytearray:
    """The bytes of a stream up to its end, or the first `most` of them.

    Args:
      stream: what to read.
      most: bytes in all.
      begun: what was read of it before; it grows and is returned.
    """
    content = bytearray() if begun is None else begun
    # Piece by piece: one call would reserve room for all that is allowed.
    while len(content) < most and (chunk := stream.read(min(_CHUNK, most - len(content)))):
        content += chunk
    return content


def child(directory: str, names: tuple[str, ...]) -> str | None:
    """The path of the first of `names` that is in a directory; `None` if there is none.

    Links count, also dangling ones: what is there is opened or refused, not passed over.
    """
    paths = [os.path.join(directory, name) for name in names]
    return next((path for path in paths if os.path.lexists(path)), None)


def is_directory(path: str) -> bool:
    """Whether `path` is a directory, or a link to one."""
    return os.path.isdir(path)
