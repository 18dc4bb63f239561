"""Checkpoints as the commands about them find them in a directory."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ..checkpoint import file_names, pointer
from ..checkpoint.bundle import Bundle
from ..checkpoint.file_names import POINTER, index_of, label, manifest_path, partial_of
from ..checkpoint.manifest import Manifest, read_manifest
from ..checkpoint.options import CheckpointOptions
from ..checkpoint.steady import LOOKS
from ..errors import CorruptCheckpointError, Problem, UnreadableConfigError, shown
from ..proto import reading
from .inputs import named_in_state

COMMITTED, LEGACY, V1, INCOMPLETE = 'committed', 'legacy', 'v1', 'incomplete'
"""What a checkpoint is: with a manifest of its files, which are there; without; of a format that
is not read here; none of these."""

_A_CHECKPOINT = 'Name a model_dir, or a checkpoint such as dir/model.ckpt-7.'
_A_DIRECTORY = 'Name the directory that the checkpoints are in.'
_MOST_NAMED = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A checkpoint in a directory.

    Attributes:
      prefix: its path without a suffix.
      files: bytes of its files, by name.
      state: one of the four above.
      problem: why it is not read.
      manifest: if there is one that can be read.
    """

    prefix: str
    files: dict[str, int]
    state: str
    problem: Problem | None
    manifest: Manifest | None

    @property
    def name(self) -> str:
        """Its name in the directory."""
        return os.path.basename(self.prefix)

    @property
    def step(self) -> int | None:
        """The step it was saved at, by its name."""
        return file_names.step_of(self.name)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """What a directory of checkpoints holds.

    Attributes:
      checkpoints: in the order of their steps.
      pointer: the name of the one that the file `checkpoint` names; `None` if it names none.
      problem: what is wrong with that file.
      stages: names of the folders in which a save began.
      partial: names of checkpoints that are being published or deleted, or were when a job was
        killed: they are none, and their files are not among `checkpoints`.
    """

    checkpoints: list[Found]
    pointer: str | None
    problem: Problem | None
    stages: list[str]
    partial: list[str]


class Chosen(NamedTuple):
    """A checkpoint that a path stands for.

    Attributes:
      prefix: its path without a suffix.
      newer: names of newer ones in its directory, which a job would not restore.
      skipped: what is wrong with them, as far as a job looks at them.
    """

    prefix: str
    newer: tuple[str, ...] = ()
    skipped: tuple[Problem, ...] = ()


def directory(path: str) -> Directory:
    """Looks at what is in a directory; of data files only at their sizes.

    It looks again while a job deletes or publishes what does not seem whole.

    Raises:
      UnreadableConfigError: if it is none, or cannot be read.
    """
    for _ in range(LOOKS):
        entries = _entries(path)
        partial = _partial(entries)
        groups = {name: files for name, files in file_names.by_checkpoint(entries).items()
                  if name not in partial}
        found = {name: _found(os.path.join(path, name), {
            file: entries[file].st_size for file in files}) for name, files in groups.items()}
        named = named_in_state(path, set(entries))
        is_lost = POINTER in entries and named is None
        doubtful = {name for name, one in found.items() if one.state != COMMITTED}
        if not doubtful and not is_lost:
            break
        after = _entries(path)
        changed = {name for name in doubtful if any(
            _identity(entries.get(file)) != _identity(after.get(file))
            for file in (*groups[name], manifest_path(name), partial_of(name)))}
        if not changed and not (is_lost and _identity(entries[POINTER])
                                != _identity(after.get(POINTER))):
            break
        found = {name: one for name, one in found.items() if name not in changed}
    return Directory(
        checkpoints=sorted(found.values(), key=lambda one: (
            -1 if one.step is None else one.step, one.name)),
        pointer=named, problem=_pointer_problem(path) if is_lost else None,
        stages=sorted(name for name in entries if file_names.is_stage(name)), partial=partial)


def _entries(path: str) -> dict[str, os.stat_result]:
    """What is in a directory."""
    found = {}
    try:
        with os.scandir(path) as listed:
            for one in listed:
                with contextlib.suppress(FileNotFoundError):  # Deleted since it was listed.
                    found[one.name] = one.stat(follow_symlinks=False)
    except OSError as error:
        raise _nothing(path, 'it must be a directory that can be read', shown(error.strerror),
                       _A_DIRECTORY) from error
    return found


def _partial(entries: Collection[str]) -> list[str]:
    """The names of what a job publishes or deletes."""
    parts = [part for part in map(file_names.parse, entries) if part is not None]
    return sorted(part.checkpoint for part in parts if part.kind == file_names.PARTIAL
                  and manifest_path(part.checkpoint) not in entries)


def _identity(status: os.stat_result | None) -> tuple[int, ...]:
    """What differs of a file that was deleted, made or written meanwhile."""
    return () if status is None else (status.st_ino, status.st_size, status.st_mtime_ns)


def _pointer_problem(path: str) -> Problem:
    """What is wrong with a file `checkpoint` that names nothing in its directory."""
    found = pointer.read(path)
    code, got = 'E645', 'nothing that can be read'
    remedy = 'It is a hint for other tools: the next save writes it anew.'
    if found is not None:
        got = f'"{shown(found.newest, 300)}"'
        if found.name_in(path) is None:
            code, got = 'E619', f'{got}, which leads outside of it'
            remedy = ('If that is meant, use etpe run --follow-pointer or CheckpointOptions('
                      'follow_pointer=True); else remove the file.')
    return Problem(code, reading.label(path), 'its file "checkpoint" must name a checkpoint in it',
                   got, remedy)


def _found(prefix: str, sizes: dict[str, int]) -> Found:
    name = os.path.basename(prefix)
    state, problem, manifest = INCOMPLETE, None, None
    if file_names.is_of_format_v1(name, sizes):
        state, problem = V1, _not_read(name)
    else:
        try:
            manifest = read_manifest(prefix)
            problem = _first_other_size(name, manifest, sizes)
            if problem is None:
                Bundle.open(prefix)
                state = COMMITTED if manifest is not None and manifest.files else LEGACY
        except CorruptCheckpointError as error:
            problem = error.problems[0]
    return Found(prefix=prefix, files=sizes, state=state, problem=problem, manifest=manifest)


def _not_read(name: str) -> Problem:
    return Problem('E613', label(name), 'it must have the format V2',
                   'V1 format, not read here', 'Restore it with TensorFlow, and save it with '
                   'write_version=tf.train.SaverDef.V2.')


def _first_other_size(name: str, manifest: Manifest | None, sizes: dict[str, int]
                      ) -> Problem | None:
    for file, stored in sorted(manifest.files.items()) if manifest is not None else ():
        if sizes.get(file) != stored.size:
            return Problem(
                'E618', label(name), f'file {shown(file, 255)} must have '
                f'{stored.size:,} bytes', f'{sizes[file]:,}' if file in sizes else 'no such file',
                'Use an older checkpoint, or restore the file from a copy.')
    return None


def prefixes(path: str) -> list[str]:
    """The checkpoints that a path stands for, in the order of their steps.

    Args:
      path: a directory, a prefix such as `dir/model.ckpt-7`, or a file of a checkpoint.

    Raises:
      UnreadableConfigError: if there is none.
    """
    if os.path.isdir(path):
        found = directory(path).checkpoints
        if not found:
            raise _none_in(path)
        return [one.prefix for one in found]
    folder, name = os.path.split(path)
    try:
        known = file_names.by_checkpoint(os.listdir(folder or '.'))
    except OSError as error:
        raise _nothing(path, 'it must be in a directory that can be read',
                       shown(error.strerror)) from error
    part = file_names.parse(name)
    chosen = name if name in known or part is None else part.checkpoint
    if chosen not in known:
        raise _nothing(path, 'there must be a checkpoint', 'none of that name',
                       _there(list(known)))
    return [os.path.join(folder, chosen)]


def check_format(prefix: str) -> None:
    """Makes sure that a checkpoint that is there is of a format that can be read.

    Raises:
      CorruptCheckpointError: E613 if it has the format V1.
    """
    folder, name = os.path.split(prefix)
    if not os.path.lexists(index_of(prefix)) and file_names.is_of_format_v1(
            name, file_names.by_checkpoint(os.listdir(folder or '.')).get(name, ())):
        raise CorruptCheckpointError(_not_read(name))


def chosen(path: str, options: CheckpointOptions) -> Chosen:
    """The checkpoint that a path stands for; of a directory the one that a job would restore.

    Args:
      path: as `prefixes` takes it.
      options: `verify` counts.

    Raises:
      UnreadableConfigError: if there is none.
      CorruptCheckpointError: if a job would end with an error.
    """
    if not os.path.isdir(path):
        prefix, = prefixes(path)
        check_format(prefix)
        return Chosen(prefix)
    from ..checkpoint import recover
    with _quiet():
        found = recover.recover(path, options)
    if found is None:
        raise _none_in(path)
    # A name that only the file `checkpoint` gives is of the newest, whatever its step.
    step = found.step if file_names.is_of_a_job(os.path.basename(found.prefix)) else None
    newer = [] if step is None else [
        one.name for one in directory(path).checkpoints if one.step is not None and one.step > step]
    return Chosen(found.prefix, tuple(newer), found.skipped)


def damage(prefix: str, options: CheckpointOptions) -> tuple[Problem, ...]:
    """What `recover.verify` finds wrong with the files of a checkpoint."""
    from ..checkpoint import recover
    try:
        with _quiet():
            recover.verify(prefix, options)
    except CorruptCheckpointError as error:
        return error.problems
    return ()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """A report says what a job would log."""
    from absl import logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _none_in(path: str) -> UnreadableConfigError:
    """The error for a directory without a checkpoint that a job would restore."""
    names = [one.name for one in directory(path).checkpoints]
    inside = os.path.join(path, 'variables', 'variables')
    if os.path.lexists(index_of(inside)):
        return _nothing(path, 'it must hold checkpoints', 'a SavedModel',
                        f'Its variables are {reading.label(inside)}.')
    return _nothing(path, 'it must hold checkpoints of a job' if names else
                    'it must hold checkpoints', 'others' if names else 'none', _there(names))


def _there(names: list[str]) -> str:
    """A remedy that names checkpoints which are there."""
    if not names:
        return _A_CHECKPOINT
    names.sort(key=lambda name: (file_names.step_of(name) or 0, name))
    more = f'{len(names) - _MOST_NAMED:,} more, ' if len(names) > _MOST_NAMED else ''
    return f'There: {more}{", ".join(shown(name, 255) for name in names[-_MOST_NAMED:])}.'


def _nothing(path: str, rule: str, got: str, remedy: str = _A_CHECKPOINT
             ) -> UnreadableConfigError:
    return reading.unreadable('E645', reading.label(path) or '""', rule, got, remedy)
