"""`etpe checkpoint ls`: lists the checkpoints in a directory, and says which can be read.

The report in JSON has `directory`, as it was given; `pointer`, the name that the file `checkpoint`
names, or `null`; `stages`, folders of saves that did not end; `partial`, names of checkpoints that
a job publishes or deletes, or did when it was killed; `findings`, a `code` and a `message` each;
and `checkpoints`. These have `name`, `step` and `bytes`; `state`, which is `committed`, `legacy` or
`incomplete`; `why`, the reason for the last one; `tables`, their number, `null` without a manifest;
and `created`, in seconds since 1970, or `null`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Collection
from typing import Any, NamedTuple

from ..checkpoint import file_names, pointer
from ..checkpoint.concurrent_changes import steady, steady_each
from ..checkpoint.file_names import MANIFEST, POINTER
from ..checkpoint.manifest import Manifest, read_manifest
from ..checkpoint.options import CheckpointOptions
from ..errors import CorruptCheckpointError, Problem, bytes_text, counted, shown
from ..proto import reading
from .input_argument import named_in_state
from .report import Grid, Line, Report, as_command, as_data, as_lines, time_text

COMMITTED, LEGACY, INCOMPLETE = 'committed', 'legacy', 'incomplete'
"""The states of a checkpoint: whole and with a manifest of its files; whole without one; damaged.
"""
_TONES = {COMMITTED: '', LEGACY: 'warn', INCOMPLETE: 'bad'}


class Found(NamedTuple):
    """A checkpoint in a directory.

    Attributes:
      prefix: its path without a suffix.
      name: in the directory.
      step: it was saved at, by its name.
      files: bytes of its files, by name.
      problem: why it cannot be read; `None` if it can.
      manifest: if there is one that can be read.
    """

    prefix: str
    name: str
    step: int | None
    files: dict[str, int]
    problem: Problem | None
    manifest: Manifest | None

    @property
    def state(self) -> str:
        """One of the three above."""
        if self.problem is not None:
            return INCOMPLETE
        return COMMITTED if self.manifest is not None else LEGACY


class Directory(NamedTuple):
    """A directory of checkpoints.

    Attributes:
      checkpoints: in the order of their steps, without those that are `partial`.
      pointer: the name of the one that the file `checkpoint` names; `None` if it names none.
      problem: why that file names none; `None` if it is missing or names one.
      stages: names of the folders in which a save began.
      partial: names of checkpoints that a job publishes or deletes, or did when it was killed.
    """

    checkpoints: list[Found]
    pointer: str | None
    problem: Problem | None
    stages: list[str]
    partial: list[str]


def directory(path: str) -> Directory:
    """Lists a directory; of data files it reads only the sizes."""
    return steady(lambda: _look(path), lambda: _pointer_state(path), lambda seen: seen.problem)


def _look(path: str) -> Directory:
    """Lists a directory once, and looks at each of its checkpoints until nobody changes it."""
    names = set(names_in(path))
    partial = _partial(names)
    whole = [os.path.join(path, name) for name in file_names.by_checkpoint(names)
             if name not in partial]
    found, _ = steady_each(whole, _found, lambda one: one.state != COMMITTED)
    named = named_in_state(path, names)
    return Directory(
        checkpoints=sorted(found, key=lambda one: (-1 if one.step is None else one.step, one.name)),
        pointer=named,
        problem=_pointer_problem(path) if POINTER in names and named is None else None,
        stages=sorted(name for name in names if file_names.is_stage(name)
                      or file_names.replaced_by(name) is not None), partial=partial)


def names_in(path: str) -> list[str]:
    """Lists a directory; E645 if that is not possible."""
    try:
        return os.listdir(path)
    except OSError as error:
        raise reading.unreadable(
            'E645', reading.label(path) or '""', 'it must be a directory that can be read',
            shown(error.strerror), 'Name the directory that the checkpoints are in.') from error


def _pointer_state(path: str) -> object:
    with contextlib.suppress(OSError):
        status = os.lstat(os.path.join(path, POINTER))
        return status.st_ino, status.st_size, status.st_mtime_ns
    return None


def _partial(entries: Collection[str]) -> list[str]:
    parts = [part for part in map(file_names.parse, entries) if part is not None]
    return sorted(part.checkpoint for part in parts if part.kind == file_names.PARTIAL
                  and part.checkpoint + MANIFEST not in entries)


def _found(prefix: str) -> Found:
    from ..checkpoint import recover
    problem, manifest = None, None
    folder, name = os.path.split(prefix)
    sizes = {}
    for file in file_names.by_checkpoint(names_in(folder)).get(name, ()):
        with contextlib.suppress(FileNotFoundError):  # Deleted since it was listed.
            sizes[file] = os.lstat(os.path.join(folder, file)).st_size
    try:
        manifest = read_manifest(prefix)
        recover.verify(prefix, CheckpointOptions(verify='size'))
    except CorruptCheckpointError as error:
        problem = error.problems[0]
    return Found(prefix, name, file_names.step_of(name), sizes, problem, manifest)


def _pointer_problem(path: str) -> Problem:
    """Returns the problem of a file `checkpoint` that names nothing in its directory."""
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


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('dir', metavar='DIR')
    as_command(parser, _report)


def _report(parsed: argparse.Namespace) -> Report:
    seen = directory(parsed.dir)
    problems = [problem for problem in (*(one.problem for one in seen.checkpoints), seen.problem)
                if problem is not None]
    blocks: list[Line | Grid] = [
        _grid(seen.checkpoints, seen.pointer) if seen.checkpoints else Line('no checkpoints')]
    if seen.partial:
        blocks.append(Line(
            f'{counted(len(seen.partial), "checkpoint")} being published or deleted, or left '
            f'by a job that was killed: {", ".join(seen.partial)}'))
    if seen.stages:
        blocks.append(Line(
            f'{counted(len(seen.stages), "folder")} of saves that did not end, or are still '
            f'being written: {", ".join(seen.stages)}'))
    data = {'directory': parsed.dir, 'pointer': seen.pointer, 'stages': seen.stages,
            'partial': seen.partial, 'findings': as_data(problems),
            'checkpoints': [_data(one) for one in seen.checkpoints]}
    return Report([*blocks, *as_lines(problems)], data, status=1 if problems else 0)


def _grid(found: list[Found], pointer: str | None) -> Grid:
    return Grid(
        ('name', '>step', 'state', '>bytes', '>tables', 'created', 'named by'),
        [(one.name, '' if one.step is None else f'{one.step:,}', one.state,
          bytes_text(sum(one.files.values())),
          '' if one.manifest is None else str(len(one.manifest.tables)),
          '' if one.manifest is None else time_text(one.manifest.created),
          'checkpoint' if one.name == pointer else '') for one in found],
        [_TONES[one.state] for one in found])


def _data(one: Found) -> dict[str, Any]:
    manifest, problem = one.manifest, one.problem
    return {'name': one.name, 'step': one.step, 'state': one.state,
            'why': '' if problem is None else f'{problem.rule}; got {problem.got}',
            'bytes': sum(one.files.values()),
            'tables': None if manifest is None else len(manifest.tables),
            'created': (manifest.created or None) if manifest is not None else None}
