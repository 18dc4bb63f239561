"""Lists the checkpoints in a directory, and says which can be read."""

from __future__ import annotations

import argparse
import contextlib
import os
from typing import Any, NamedTuple

from ..checkpoint import file_names, pointer
from ..checkpoint.concurrent_changes import steady_each
from ..checkpoint.file_names import POINTER
from ..checkpoint.manifest import Manifest, read_manifest
from ..checkpoint.options import CheckpointOptions
from ..errors import CorruptCheckpointError, Problem, bytes_text, counted, shown
from ..proto import reading
from .checkpoint_argument import listed, names_in, partial, report_of
from .report import Grid, Line, Report, as_command, as_data, as_lines, time_text

COMMITTED, LEGACY, INCOMPLETE = 'committed', 'legacy', 'incomplete'
"""The states of a checkpoint: whole and with a manifest of its files; whole without one; damaged.
"""
_TONES = {COMMITTED: '', LEGACY: 'warn', INCOMPLETE: 'bad'}


class Found(NamedTuple):
    """A checkpoint in a directory."""

    name: str
    files: dict[str, int]  # The bytes of its files, by name.
    problem: Problem | None  # Why it cannot be read.
    manifest: Manifest | None  # If there is one that can be read.

    @property
    def step(self) -> int | None:
        """The step that it was saved at, by its name."""
        return file_names.step_of(self.name)

    @property
    def state(self) -> str:
        """One of the three above."""
        if self.problem is not None:
            return INCOMPLETE
        return COMMITTED if self.manifest is not None else LEGACY


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('dir', metavar='DIR')
    as_command(parser, lambda parsed: report_of([parsed.dir], lambda: listing(parsed.dir)))


def listing(path: str) -> Report:
    """Lists a directory once, and looks at each of its checkpoints until nobody changes it."""
    names = names_in(path)
    unfinished = partial(names)
    stages = sorted(name for name in names
                    if file_names.is_stage(name) or file_names.replaced_by(name) is not None)
    found, _ = steady_each(listed(path, names), _found, lambda one: one.state != COMMITTED)
    named = pointer.named_in(path)
    problems = [one.problem for one in found if one.problem is not None]
    if named not in file_names.by_checkpoint(names):
        named = None
        if POINTER in names:
            problems.append(_pointer_problem(path))
    blocks: list[Line | Grid] = [_grid(found, named) if found else Line('no checkpoints')]
    if unfinished:
        blocks.append(Line(
            f'{counted(len(unfinished), "checkpoint")} being published or deleted, or left '
            f'by a job that was killed: {", ".join(unfinished)}'))
    if stages:
        blocks.append(Line(
            f'{counted(len(stages), "folder")} of saves that did not end, or are still '
            f'being written: {", ".join(stages)}'))
    data = {'directory': path, 'pointer': named, 'stages': stages, 'partial': unfinished,
            'findings': as_data(problems), 'checkpoints': list(map(_data, found))}
    return Report([*blocks, *as_lines(problems)], data, status=1 if problems else 0)


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
    return Found(name, sizes, problem, manifest)


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
