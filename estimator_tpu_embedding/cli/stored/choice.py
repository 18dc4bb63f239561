"""Finds the checkpoint, or the checkpoints, that a PATH of a command means."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...checkpoint import file_names
from ...checkpoint.options import CheckpointOptions
from ...errors import CorruptCheckpointError, Problem, UnreadableConfigError, shown
from ...proto import reading
from .directory import directory, require_readable_format

_MOST_NAMED = 5


class Chosen(NamedTuple):
    """The checkpoint that a path means.

    Attributes:
      prefix: its path without a suffix.
      newer: names of newer ones in its directory, which a job would not restore.
      skipped: problems of the newer ones that a job looks at.
      known: the `recover.Known` that has the checkpoint, if it was read; otherwise `None`.
    """

    prefix: str
    newer: tuple[str, ...] = ()
    skipped: tuple[Problem, ...] = ()
    known: Any = None


def chosen(path: str, options: CheckpointOptions) -> Chosen:
    """Finds the checkpoint that a path means; of a directory the one that a job would restore.

    Args:
      path: as `prefixes` takes it.
      options: `verify` counts.

    Raises:
      UnreadableConfigError: E645 if there is none.
      CorruptCheckpointError: if a job would end with an error.
    """
    if not os.path.isdir(path):
        prefix, = prefixes(path)
        check_format(prefix)
        return Chosen(prefix)
    from ...checkpoint import recover
    known = recover.Known()
    with _quiet():
        found = recover.recover(path, options, known)
    if found is None:
        names = [one.name for one in directory(path).checkpoints]
        raise _nothing(path, 'it must hold checkpoints of a job', 'others' if names else 'none',
                       names)
    # A name that only the file `checkpoint` gives is of the newest, whatever its step.
    step = found.step if file_names.is_of_a_job(os.path.basename(found.prefix)) else None
    newer = [] if step is None else [
        one.name for one in directory(path).checkpoints if one.step is not None and one.step > step]
    return Chosen(found.prefix, tuple(newer), found.skipped, known)


def prefixes(path: str) -> list[str]:
    """Finds the checkpoints that a path means, in the order of their steps.

    Args:
      path: a directory, a prefix such as `dir/model.ckpt-7`, or a file of a checkpoint.

    Raises:
      UnreadableConfigError: E645 if there is none.
    """
    if os.path.isdir(path):
        found = directory(path).checkpoints
        if not found:
            raise _nothing(path, 'it must hold checkpoints', 'none')
        return [one.prefix for one in found]
    folder, name = os.path.split(path)
    try:
        known = file_names.by_checkpoint(os.listdir(folder or '.'))
    except OSError as error:
        raise _nothing(path, 'it must be in a directory that can be read',
                       shown(error.strerror)) from error
    part = file_names.parse(name)
    meant = name if name in known or part is None else part.checkpoint
    if meant not in known:
        raise _nothing(path, 'there must be a checkpoint', 'none of that name', list(known))
    return [os.path.join(folder, meant)]


def check_format(prefix: str) -> None:
    """Makes sure that a checkpoint has a format that can be read.

    Raises:
      CorruptCheckpointError: E613 if it has the format V1.
    """
    folder, name = os.path.split(prefix)
    known = file_names.by_checkpoint(os.listdir(folder or '.'))
    require_readable_format(prefix, known.get(name, ()))


def damage(prefix: str, options: CheckpointOptions, known: Any = None) -> tuple[Problem, ...]:
    """Returns the problems that a job would find in the files of a checkpoint."""
    from ...checkpoint import recover
    try:
        with _quiet():
            recover.verify(prefix, options, known)
    except CorruptCheckpointError as error:
        return error.problems
    return ()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the body from logging; a report says the same."""
    from absl import logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _nothing(path: str, rule: str, got: str, names: list[str] | None = None
             ) -> UnreadableConfigError:
    """Returns the error for a path without a checkpoint; it names the newest of those there."""
    remedy = 'Name a model_dir, or a checkpoint such as dir/model.ckpt-7.'
    if names:
        names.sort(key=lambda name: (file_names.step_of(name) or 0, name))
        remedy = f'There: {", ".join(shown(name, 255) for name in names[-_MOST_NAMED:])}.'
    return reading.unreadable('E645', reading.label(path) or '""', rule, got, remedy)
