"""Small files by which the processes of a job find out whether they see one disk.

These are the functions that a worker calls for its client; the client calls them for itself, too.
What an operating system refuses is part of an answer, and no error.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from typing import Any

from ..checkpoint import file_names
from ..checkpoint.files import Storage, free_bytes
from ..proto import files

_MOST = 4096
_CHUNK = 2**20


def note(directory: str, name: str, action: str, text: str = '') -> dict[str, Any]:
    """Writes, reads or removes a note.

    Args:
      directory: that should be the same for all processes.
      name: of the note, letters and digits.
      action: `'write'`, `'read'` or `'remove'`.
      text: to be written.

    Returns:
      The `text` of a note that was read. `problem` says why nothing was done, and `is_missing`
      whether that is because there is no such directory or note.

    Raises:
      ValueError: for another name or action.
    """
    if not re.fullmatch('[0-9A-Za-z]{1,64}', name):
        raise ValueError(f'the name of a note must have letters and digits only, not {name!r}')
    if action not in ('write', 'read', 'remove'):
        raise ValueError(f'a note can be written, read and removed, but not {action!r}')
    file = file_names.note(name)
    try:
        with Storage(directory) as storage:
            if action == 'write':
                storage.create(file, text.encode())
                storage.sync(file)
            elif action == 'remove':
                storage.remove(file)
            else:
                with storage.open(file) as stream:
                    return {'text': stream.read(_MOST).decode(errors='replace')}
    except OSError as error:
        problem = error.strerror or str(error)
        if error.errno == errno.ENOSPC:
            problem += f'; {free_bytes(directory):,} bytes are free'
        return {'problem': problem, 'is_missing': error.errno == errno.ENOENT}
    return {}


def index(checkpoint: str) -> dict[str, Any]:
    """Returns the `sha256` of the index of a checkpoint, or the `problem` of reading it.

    Args:
      checkpoint: its prefix.
    """
    digest = hashlib.sha256()
    try:
        with files.open_regular(os.path.abspath(file_names.index_of(checkpoint)),
                                follow=True) as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        return {'problem': error.strerror or str(error)}
    return {'sha256': digest.hexdigest()}
