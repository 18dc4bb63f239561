"""Notices that a training job deletes or replaces a checkpoint while somebody reads it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import TypeVar

from ..errors import (
    CheckpointError,
    ConfigError,
    CorruptCheckpointError,
    IncompatibleCheckpointError,
    Problem,
    UnreadableConfigError,
)
from .file_names import INDEX, MANIFEST, PARTIAL, beginning_of_files, by_checkpoint, label

_T = TypeVar('_T')

MOST_TRIES = 50
"""How often something is read that a job keeps changing, as it saves and deletes."""

GONE = 'E628'

SPOILT = (CorruptCheckpointError, IncompatibleCheckpointError, ConfigError, UnreadableConfigError)
"""What reading a checkpoint may raise because a job deletes it. Its manifest goes first: from then
on nothing says how rows are ordered and what a table is.
"""

Signature = tuple[tuple[str, int, int, int, int], ...]


def signature(checkpoint: str) -> Signature:
    """Returns a value that changes if a file of a checkpoint is replaced, written or deleted."""
    directory, base = os.path.split(checkpoint)
    found = []
    # The reader of a file says that it is missing.
    with contextlib.suppress(FileNotFoundError), os.scandir(directory or '.') as entries:
        for entry in entries:
            if entry.name.startswith(beginning_of_files(base)):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    found.append((entry.name, status.st_dev, status.st_ino, status.st_size,
                                  status.st_mtime_ns))
    return tuple(sorted(found))


def is_gone(checkpoint: str) -> bool:
    """Whether a checkpoint does not exist any more, or not yet: a job deletes or publishes it.

    A job takes the manifest away first and puts it there last. A checkpoint without a manifest is
    there as long as its index is. A checkpoint that lacks other files is damaged, and not gone.
    """
    return not os.path.lexists(checkpoint + MANIFEST) and (
        os.path.lexists(checkpoint + PARTIAL) or not os.path.lexists(checkpoint + INDEX))


def rotated_away(checkpoint: str) -> CheckpointError:
    """Returns the error for a checkpoint that was deleted before it was read."""
    return CheckpointError(Problem(
        GONE, label(checkpoint), 'it must stay until it '
        'is read', 'a job deleted it meanwhile, to make room for newer ones', 'Name a newer one, '
        'or the directory alone; or let the job keep more, by keep_checkpoint_max of its '
        'RunConfig.'))


def steady(read: Callable[[], _T], state: Callable[[], object],
           is_doubtful: Callable[[_T], object]) -> _T:
    """Looks at something, and again as long as a job changes it and may so have spoilt the look.

    What a job deleted is not damaged, so nobody may report it as damaged.

    Args:
      read: returns a result; a change may explain an error of `SPOILT`.
      state: returns something that differs when a job has changed what is looked at.
      is_doubtful: whether a change may explain a result; any other is returned at once.
    """
    for _ in range(MOST_TRIES - 1):
        before = state()
        try:
            found = read()
        except SPOILT:
            if before == state():
                raise
        else:
            if not is_doubtful(found) or before == state():
                return found
    return read()


def watch(path: str) -> Callable[[], object]:
    """Returns a `state` for `steady`, of a checkpoint or of a directory in which one is chosen.

    It raises E628 if a job deleted the checkpoint.
    """
    first = signature(path)

    def state() -> object:
        if os.path.isdir(path):
            with contextlib.suppress(OSError):  # `read` says that it cannot be.
                return sorted(name for name in os.listdir(path) if name.endswith((MANIFEST, INDEX)))
        now = signature(path)
        folder, name = os.path.split(path)
        if is_gone(path) and (now != first or os.path.lexists(path + PARTIAL)
                              or name not in by_checkpoint(os.listdir(folder or '.'))):
            raise rotated_away(path)
        return now

    return state


def steady_each(checkpoints: Iterable[str], read: Callable[[str], _T],
                is_doubtful: Callable[[_T], object]) -> tuple[list[_T], list[str]]:
    """Looks at several checkpoints that are there; returns results, and those deleted meanwhile."""
    found, deleted = [], []
    for checkpoint in checkpoints:
        try:
            found.append(steady(lambda: read(checkpoint), watch(checkpoint), is_doubtful))
        except CheckpointError as error:
            if error.code != GONE:
                raise
            deleted.append(checkpoint)
    return found, deleted
