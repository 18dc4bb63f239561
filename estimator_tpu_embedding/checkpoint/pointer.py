"""Reads and writes the file `checkpoint`, by which TensorFlow finds the newest checkpoint.

It is a hint for legacy tools. The manifests say which checkpoints are complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import CorruptCheckpointError, Problem, shown
from ..proto import files
from .file_names import POINTER, new_staged_pointer
from .storage import Storage

_MAX_BYTES = 2**20
_MAX_PATH = 4096
"""The longest path that the system opens, in bytes; a longer one would take long to resolve."""
_NEWEST, _ALL = b'model_checkpoint_path', b'all_model_checkpoint_paths'


class Pointer(NamedTuple):
    """The content of the file: paths, relative to its directory or absolute."""

    newest: str
    all: tuple[str, ...]

    def name_in(self, directory: str) -> str | None:
        """Returns the name of the newest in a directory; `None` if it lies elsewhere."""
        folder, name = os.path.split(os.path.join(directory, self.newest))
        return name if os.path.realpath(folder) == os.path.realpath(directory) else None


def read(directory: str, name: str = POINTER) -> Pointer | None:
    """Reads the file of a directory; returns `None` if it is missing, garbled or no plain file.

    The states of iterators have a file of the same format under another name.
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


def named_in(directory: str) -> str | None:
    """Returns the name of the newest checkpoint; `None` if the file names none in its directory."""
    found = read(directory)
    return found.name_in(directory) if found is not None else None


def require_harmless(directory: str) -> None:
    """Makes sure that TensorFlow, which reads all of the file, can do so safely: else E616."""
    path = os.path.join(directory, POINTER)
    if not os.path.exists(path):
        return
    try:
        with files.open_regular(path, follow=True) as file:
            size = files.size_of(file)
            content = files.read_at_most(file, _MAX_BYTES)
        got = f'{size:,} bytes that name no checkpoint' if size > _MAX_BYTES else ''
        if b'\\' * (files.MAX_BACKSLASHES + 1) in content:  # It takes the square of their number.
            got = f'more than {files.MAX_BACKSLASHES} backslashes in a row'
    except OSError as error:
        got = shown(error.strerror or error)
    if got:
        raise CorruptCheckpointError(Problem(
            'E616', f'model_dir {directory}', 'its file "checkpoint" must be a regular file of at '
            f'most {_MAX_BYTES:,} bytes where there is no checkpoint', got, 'Remove it.'))


def _paths(content: bytearray) -> Iterator[tuple[bytes, str]]:
    """Yields (field, value) of the two fields of paths; ValueError if a string is garbled."""
    field = b''
    for token in files.tokens(content):
        is_string = token[:1] in (b'"', b"'")
        if is_string and field in (_NEWEST, _ALL):
            yield field, files.unescaped(token[1:-1]).decode()
        field = b'' if is_string else token


def _can_be_path(path: str) -> bool:
    return 0 < len(os.fsencode(path)) <= _MAX_PATH and '\0' not in path


def write(storage: Storage, newest: str, others: Sequence[str]) -> None:
    """Replaces the file so that a crash leaves the old one or the new one.

    `others` are the names of all that may be deleted later, with the newest, in the order of steps.
    """
    lines = [f'model_checkpoint_path: "{newest}"',
             *[f'all_model_checkpoint_paths: "{name}"' for name in others]]
    storage.replace(POINTER, ('\n'.join(lines) + '\n').encode(), new_staged_pointer())
