"""The file `checkpoint`, by which TensorFlow finds the newest checkpoint of a directory.

It is a hint for legacy tools. What is complete is what the manifests say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from ..proto import files
from .files import Storage

NAME = 'checkpoint'
_STAGED = f'{NAME}.tmp'
_MAX_BYTES = 2**20
_ENTRY = re.compile(r'^\s*(model_checkpoint_path|all_model_checkpoint_paths)\s*:\s*'
                    r'"((?:[^"\\\n]|\\.)*)"\s*$', re.MULTILINE)
_ESCAPE = re.compile(rb'\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))', re.DOTALL)
_LETTERS = {b'n': b'\n', b't': b'\t', b'r': b'\r'}


class Pointer(NamedTuple):
    """What the file says: paths as they are there, relative to its directory or absolute."""

    newest: str
    all: tuple[str, ...]

    def name_in(self, directory: str) -> str | None:
        """What the newest is called in a directory; `None` if it lies elsewhere."""
        folder, name = os.path.split(os.path.join(directory, self.newest))
        return name if os.path.realpath(folder) == os.path.realpath(directory) else None


def read(directory: str) -> Pointer | None:
    """What the file of a directory says; `None` if it is missing, garbled or no plain file."""
    try:
        with files.open_regular(os.path.join(directory, NAME), follow=False) as file:
            text = files.read_at_most(file, _MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return None
    found = [(key, _unescaped(value)) for key, value in _ENTRY.findall(text)]
    newest = [value for key, value in found if key == 'model_checkpoint_path']
    if len(newest) != 1 or not newest[0] or '\0' in newest[0]:
        return None
    return Pointer(newest[0], tuple(value for key, value in found
                                    if key == 'all_model_checkpoint_paths'))


def _unescaped(text: str) -> str:
    """A string of a text proto without its escapes.

    >>> _unescaped(r'a\\303\\244\\"')
    'aä"'
    """
    def one(found: re.Match[bytes]) -> bytes:
        octal, hexadecimal, letter = found.groups()
        if letter is not None:
            return _LETTERS.get(letter, letter)
        return bytes([int(octal, 8) & 255 if octal else int(hexadecimal, 16)])

    return _ESCAPE.sub(one, text.encode()).decode(errors='replace')


def write(storage: Storage, newest: str, others: Sequence[str]) -> None:
    """Replaces the file so that a crash leaves the old one or the new one.

    Args:
      storage: of its directory.
      newest: the name of the newest checkpoint, such as `'model.ckpt-7'`.
      others: of all that are not kept forever, with that one, in the order of their steps.
    """
    lines = [f'model_checkpoint_path: "{newest}"',
             *[f'all_model_checkpoint_paths: "{name}"' for name in others]]
    if storage.status(_STAGED) is not None:  # Of a process that was killed here.
        storage.remove(_STAGED)
    storage.create(_STAGED, ('\n'.join(lines) + '\n').encode())
    storage.sync(_STAGED)
    storage.rename(_STAGED, NAME)
    storage.sync()
