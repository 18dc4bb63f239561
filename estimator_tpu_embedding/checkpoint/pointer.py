"""The file `checkpoint`, by which TensorFlow finds the newest checkpoint of a directory.

It is a hint for legacy tools. What is complete is what the manifests say.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import CorruptCheckpointError, Problem, shown
from ..proto import files, text
from .file_names import POINTER, STAGED_POINTER, new_staged_pointer
from .files import Storage

_MAX_BYTES = 2**20
_MAX_PATH = 4096
"""Bytes of a path that the system opens; what is longer names no file and is long to resolve."""
_NEWEST, _ALL = b'model_checkpoint_path', b'all_model_checkpoint_paths'


class Pointer(NamedTuple):
    """What the file says: paths as they are there, relative to its directory or absolute."""

    newest: str
    all: tuple[str, ...]

    def name_in(self, directory: str) -> str | None:
        """What the newest is called in a directory; `None` if it lies elsewhere."""
        folder, name = os.path.split(os.path.join(directory, self.newest))
        return name if os.path.realpath(folder) == os.path.realpath(directory) else None


def read(directory: str, name: str = POINTER) -> Pointer | None:
    """What the file of a directory says; `None` if it is missing, garbled or no plain file.

    Args:
      directory: where it is.
      name: of the file; there is one of the same format for the states of iterators.
    """
    try:
        with files.open_regular(os.path.join(directory, name), follow=False) as file:
            content = files.read_at_most(file, _MAX_BYTES)
        if len(content) == _MAX_BYTES:  # There may be more, so its last line may be cut.
            del content[content.rfind(b'\n') + 1:]
        found = list(_paths(content))
    except (OSError, ValueError):
        return None
    newest = [path for field, path in found if field == _NEWEST]
    if len(newest) != 1 or not _can_be_path(newest[0]):
        return None
    return Pointer(newest[0], tuple(path for field, path in found
                                    if field == _ALL and _can_be_path(path)))


def require_harmless(directory: str) -> None:
    """Makes sure that TensorFlow, which reads all of whatever is called so, can be let read it.

    Raises:
      CorruptCheckpointError: E616 if it is a pipe or the like, or a file that is too large.
    """
    path = os.path.join(directory, POINTER)
    if not os.path.exists(path):
        return
    try:
        with files.open_regular(path, follow=True) as file:
            size = files.size_of(file)
            content = files.read_at_most(file, _MAX_BYTES)
        got = f'{size:,} bytes that name no checkpoint' if size > _MAX_BYTES else ''
        if b'\\' * (text.MAX_BACKSLASHES + 1) in content:  # It takes the square of their number.
            got = f'more than {text.MAX_BACKSLASHES} backslashes in a row'
    except OSError as error:
        got = shown(error.strerror or error)
    if got:
        raise CorruptCheckpointError(Problem(
            'E616', f'model_dir {directory}', 'its file "checkpoint" must be a regular file of at '
            f'most {_MAX_BYTES:,} bytes where there is no checkpoint', got, 'Remove it.'))


def _paths(content: bytearray) -> Iterator[tuple[bytes, str]]:
    """Yields (field, value) of the two fields that hold paths.

    Raises:
      ValueError: if a string has no end, or is no UTF-8.
    """
    field = b''
    for token in text.tokens(content, of_graph=False):
        is_string = token[:1] in (b'"', b"'")
        if is_string and field in (_NEWEST, _ALL):
            yield field, text.unescaped(token[1:-1]).decode()
        field = b'' if is_string else token


def _can_be_path(path: str) -> bool:
    return 0 < len(os.fsencode(path)) <= _MAX_PATH and '\0' not in path


def write(storage: Storage, newest: str, others: Sequence[str]) -> None:
    """Replaces the file so that a crash leaves the old one or the new one.

    Args:
      storage: of its directory.
      newest: the name of the newest checkpoint, such as `'model.ckpt-7'`.
      others: of all that are not kept forever, with that one, in the order of their steps.
    """
    lines = [f'model_checkpoint_path: "{newest}"',
             *[f'all_model_checkpoint_paths: "{name}"' for name in others]]
    staged, status = STAGED_POINTER, storage.status(STAGED_POINTER)
    if status is not None and not stat.S_ISREG(status.st_mode):  # It is left alone.
        staged = new_staged_pointer()
    elif status is not None:  # Of a process that was killed here.
        storage.remove(STAGED_POINTER)
    storage.create(staged, ('\n'.join(lines) + '\n').encode())
    storage.sync(staged)
    storage.rename(staged, POINTER)
    storage.sync()
