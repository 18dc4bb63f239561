"""Writes, renames and deletes files so that a crash leaves the old content or the new one."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, Self

from ..proto import files

_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_READ = os.O_RDONLY | os.O_NONBLOCK | _NO_LINK  # A pipe would be waited for.


class Storage:
    """The file operations by which checkpoints are committed, recovered and deleted.

    They work on one directory, which is opened once and may itself be a link. A name is
    `file` or `folder/file`. No link is followed at either place. A file that was
    created or renamed is durable only after `sync` of the file and of its folder.

    Every method raises OSError as the call of the system below it does.
    """

    def __init__(self, directory: str):
        self._directory = directory
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)

    def path(self, name: str) -> str:
        """Returns the path of a name, for code that opens files by itself."""
        return os.path.join(self._directory, name)

    def names(self, folder: str = '') -> list[str]:
        """Returns the names in the directory, or in a folder of it, sorted."""
        with self._opened(folder) as descriptor:
            return sorted(os.listdir(descriptor))

    def status(self, name: str) -> os.stat_result | None:
        """Returns the status of a name, links not followed; `None` if nothing is there."""
        with contextlib.suppress(FileNotFoundError), self._parent(name) as (descriptor, base):
            return os.stat(base, dir_fd=descriptor, follow_symlinks=False)
        return None

    def size_of(self, beginning: str) -> int:
        """Returns the bytes of all files whose names begin so (`'folder/'`); 0 if unknown."""
        folder, _, start = beginning.rpartition('/')
        with contextlib.suppress(OSError):
            found = [self.status(os.path.join(folder, name)) for name in self.names(folder)
                     if name.startswith(start)]
            return sum(status.st_size for status in found if status is not None)
        return 0

    def open(self, name: str) -> BinaryIO:
        """Opens a regular file for reading."""
        return files.open_regular(self.path(name), follow=False)

    def make_folder(self, name: str) -> None:
        """Makes a folder, which must not exist."""
        os.mkdir(name, dir_fd=self._descriptor)

    def create(self, name: str, content: bytes) -> None:
        """Writes a file, which must not exist."""
        with self._parent(name) as (descriptor, base):
            file = os.open(base, _CREATE, 0o666, dir_fd=descriptor)
            with os.fdopen(file, 'wb') as stream:
                stream.write(content)

    def replace(self, name: str, content: bytes, staged: str) -> None:
        """Writes a file, as `staged` first, so that a crash leaves the old content or the new."""
        try:
            self.create(staged, content)
            self.sync(staged)
            self.rename(staged, name)
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(staged)
            raise
        self.sync()

    def sync(self, name: str = '') -> None:
        """Makes the content of a file durable, or the names in a folder; `''` is the directory."""
        if not name:
            os.fsync(self._descriptor)
            return
        with self._parent(name) as (descriptor, base):
            file = os.open(base, _READ, dir_fd=descriptor)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def rename(self, source: str, target: str) -> None:
        """Renames a file, and replaces a file that has the new name."""
        with self._parent(source) as (before, old), self._parent(target) as (after, new):
            os.rename(old, new, src_dir_fd=before, dst_dir_fd=after)

    def remove(self, name: str) -> None:
        """Deletes a regular file; anything else is left alone and is an OSError."""
        with self._parent(name) as (descriptor, base):
            status = os.stat(base, dir_fd=descriptor, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(f'{name} is no regular file and is not deleted')
            os.unlink(base, dir_fd=descriptor)

    def remove_folder(self, name: str) -> None:
        """Deletes a folder with its content; a link is deleted, and its target is not."""
        with self._opened(name) as descriptor:
            for entry in sorted(os.listdir(descriptor)):
                mode = os.stat(entry, dir_fd=descriptor, follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):  # TensorFlow saves into one.
                    shutil.rmtree(entry, dir_fd=descriptor)
                elif stat.S_ISREG(mode):
                    self.remove(f'{name}/{entry}')
                else:
                    os.unlink(entry, dir_fd=descriptor)
        os.rmdir(name, dir_fd=self._descriptor)

    @contextlib.contextmanager
    def _opened(self, folder: str) -> Iterator[int]:
        """Opens a folder and gives its descriptor; `''` is the directory itself."""
        if not folder:
            yield self._descriptor
            return
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK,
                             dir_fd=self._descriptor)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _parent(self, name: str) -> Iterator[tuple[int, str]]:
        """Gives the descriptor of the folder that holds a name, and the last part of the name."""
        folder, _, base = name.rpartition('/')
        with self._opened(folder) as descriptor:
            yield descriptor, base


def created(path: str) -> BinaryIO:
    """Opens a new file for writing; raises OSError also if there is something at `path`."""
    return os.fdopen(os.open(path, _CREATE, 0o666), 'wb')


def write_atomically(path: str, content: bytes) -> None:
    """Writes a file so that a reader, or a crash at any instant, sees all of it or none."""
    directory, name = os.path.split(path)
    staged = f'{name}.{os.getpid()}.tmp'
    with Storage(directory or '.') as storage:
        with contextlib.suppress(OSError):
            storage.remove(staged)  # Of a process with this number that was killed here.
        storage.replace(name, content, staged)


def make_writable(directory: str) -> None:
    """Makes a directory if it is missing; raises OSError if files cannot be made in it."""
    os.makedirs(directory, exist_ok=True)
    descriptor, probe = tempfile.mkstemp(prefix='.', suffix='.tmp', dir=directory)
    os.close(descriptor)
    os.unlink(probe)


def require_free_block(directory: str) -> None:
    """Raises OSError (ENOSPC) if the file system of a directory has no free block."""
    disk = os.statvfs(directory)
    if disk.f_blocks and not disk.f_bfree:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory)


def free_bytes(directory: str) -> int:
    """Returns how many bytes are free on the disk of a directory; 2**63 - 1 if it does not say."""
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize if disk.f_blocks else 2**63 - 1


def set_aside(path: str) -> str:
    """Renames the file at `path` to a free name, which it returns."""
    number = 1
    while os.path.lexists(aside := f'{path}.unreadable-{number}'):
        number += 1
    os.rename(path, aside)
    return aside
