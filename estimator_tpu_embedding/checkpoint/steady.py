"""What a job that trains does to a checkpoint while somebody else reads it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ..errors import CheckpointError, Problem
from .file_names import beginning_of_files, index_of, label, manifest_path, partial_of

LOOKS = 50
"""So often something is looked at again that changes meanwhile: a job saves and deletes there."""

Signature = tuple[tuple[str, int, int, int, int], ...]


def signature(checkpoint: str) -> Signature:
    """What would change if a file of a checkpoint were replaced, written or deleted."""
    return tuple(sorted(_stats(checkpoint)))


def is_gone(checkpoint: str) -> bool:
    """Whether a checkpoint is none any more, or not yet: a job deletes or publishes it.

    The manifest is what a job takes away first and puts there last, and the index is that of
    TensorFlow. A checkpoint that lacks other files is damaged, and not gone.
    """
    return not os.path.lexists(manifest_path(checkpoint)) and (
        os.path.lexists(partial_of(checkpoint)) or not os.path.lexists(index_of(checkpoint)))


def rotated_away(checkpoint: str) -> CheckpointError:
    """The error for a checkpoint that was deleted before it was read."""
    return CheckpointError(Problem(
        'E628', label(checkpoint), 'it must stay until it '
        'is read', 'a job deleted it meanwhile, to make room for newer ones', 'Name a newer one, '
        'or the directory alone; or let the job keep more, by keep_checkpoint_max of its '
        'RunConfig.'))


def _stats(checkpoint: str) -> Iterator[tuple[str, int, int, int, int]]:
    directory, base = os.path.split(checkpoint)
    # What is not there any more is told by who reads it.
    with contextlib.suppress(FileNotFoundError), os.scandir(directory or '.') as entries:
        for entry in entries:
            if entry.name.startswith(beginning_of_files(base)):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield (entry.name, status.st_dev, status.st_ino, status.st_size,
                           status.st_mtime_ns)
