"""What in a directory could be a checkpoint, from the names of files alone."""

from __future__ import annotations

import os
import re

from . import pointer
from .manifest import PARTIAL, SUFFIX

BASE = 'model.ckpt'
"""What the names of checkpoints begin with, unless somebody chose another beginning."""

_FILE = re.compile(r'(.+)-(\d{1,19})(\.index|\.data-\d{5}-of-\d{5}|' + re.escape(SUFFIX) + '|'
                   + re.escape(SUFFIX + PARTIAL) + ')')


def candidates(directory: str) -> list[str]:
    """The names of all that could be a checkpoint, the newest last.

    Steps tell what is newer. What has no manifest and is not called `model.ckpt-<step>` counts
    only where the file `checkpoint` says that it is the newest: other files of TensorFlow, such as
    the states of iterators, have the same form. Where nothing else is, that name counts even if
    there is nothing of it: somebody must know that it is lost.
    """
    found: dict[tuple[int, str], set[str]] = {}
    for file in os.listdir(directory):
        match = _FILE.fullmatch(file)
        if match is not None:
            found.setdefault((int(match[2]), match[1]), set()).add(match[3])
    begun = [key for key, endings in sorted(found.items())
             if SUFFIX in endings or key[1] == BASE and SUFFIX + PARTIAL not in endings]
    # TensorFlow writes the index last, so data alone is of a save that did not end; but where
    # nothing else is, something was lost.
    complete = [key for key in begun if found[key] & {'.index', SUFFIX}]
    names = [f'{base}-{step}' for step, base in complete or begun]
    named = pointer.read(directory)
    name = named.name_in(directory) if named is not None else None
    if name and name not in names and (not names or not name.startswith(f'{BASE}-')
                                       and os.path.lexists(
                                           os.path.join(directory, f'{name}.index'))):
        names.append(name)
    return names
