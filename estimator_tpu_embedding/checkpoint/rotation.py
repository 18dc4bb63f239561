"""Notices that a training job deletes or replaces a checkpoint while somebody reads it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ..errors import CheckpointError, Problem
from .file_names import beginning_of_files, index_of, label, manifest_path, partial_of

LOOKS = 50
"""The most looks at something that a job keeps changing, as it saves and deletes."""

GONE = 'E628'

Signature = tuple[tuple[str, int, int, int, int], ...]


def signature(checkpoint: str) -> Signature:
    """Returns a value that changes if a file of a checkpoint is replaced, written or deleted."""
    return tuple(sorted(_stats(checkpoint)))


def is_gone(checkpoint: str) -> bool:
    """Whether a checkpoint does not exist any more, or not yet: a job deletes or publishes it.

    A job takes the manifest away first and puts it there last. A checkpoint without a manifest is
    there as long as its index is. A checkpoint that lacks other files is damaged, and not gone.
    """
    return not os.path.lexists(manifest_path(checkpoint)) and (
        os.path.lexists(partial_of(checkpoint)) or not os.path.lexists(index_of(checkpoint)))


def rotated_away(checkpoint: str) -> CheckpointError:
    """Returns the error for a checkpoint that was deleted before it was read."""
    return CheckpointError(Problem(
        GONE, label(checkpoint), 'it must stay until it '
        'is read', 'a job deleted it meanwhile, to make room for newer ones', 'Name a newer one, '
        'or the directory alone; or let the job keep more, by keep_checkpoint_max of its '
        'RunConfig.'))


def _stats(checkpoint: str) -> Iterator[tuple[str, int, int, int, int]]:
    directory, base = os.path.split(checkpoint)
    # The reader of a file says that it is missing.
    with contextlib.suppress(FileNotFoundError), os.scandir(directory or '.') as entries:
        for entry in entries:
            if entry.name.startswith(beginning_of_files(base)):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield (entry.name, status.st_dev, status.st_ino, status.st_size,
                           status.st_mtime_ns)
