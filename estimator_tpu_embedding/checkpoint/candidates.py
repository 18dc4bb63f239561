"""Lists the checkpoints that a directory may hold, judging by the names of its files alone."""

from __future__ import annotations

import os

from . import file_names, pointer
from .file_names import BASE, GRAPH, INDEX, MANIFEST, PARTIAL


def candidates(directory: str) -> list[str]:
    """Returns the name of every possible checkpoint, the newest last.

    The step in a name says how new it is. A checkpoint with a manifest and a step counts. One
    without a manifest counts if it is called `model.ckpt-<step>`; other files of TensorFlow, such
    as the states of iterators, have names of the same form. Any other name counts only if the file
    `checkpoint` says that it is the newest, and if it does not begin with `model.ckpt-`.

    If there is nothing else, the name in the file `checkpoint` counts even if no checkpoint has
    it: its loss must be noticed.
    """
    found: dict[tuple[int, str], set[str]] = {}
    for file in os.listdir(directory):
        part = file_names.parse(file)
        step = file_names.step_of(part.checkpoint) if part is not None else None
        if part is not None and part.kind != GRAPH and step is not None:
            found.setdefault((step, part.checkpoint), set()).add(part.kind)
    begun = [key for key, kinds in sorted(found.items())
             if MANIFEST in kinds or file_names.is_of_a_job(key[1]) and PARTIAL not in kinds]
    # TensorFlow writes the index last, so data alone is of a save that did not end. If there is
    # nothing else, something was lost.
    complete = [key for key in begun if found[key] & {INDEX, MANIFEST}]
    names = [name for _, name in complete or begun]
    name = pointer.named_in(directory)
    if name and name not in names and (not names or not name.startswith(f'{BASE}-')
                                       and os.path.lexists(
                                           file_names.index_of(os.path.join(directory, name)))):
        names.append(name)
    return names
