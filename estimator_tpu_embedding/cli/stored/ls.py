"""`etpe checkpoint ls`: lists the checkpoints in a directory.

The report in JSON has these fields:

- `directory`: as it was given.
- `pointer`: the name that the file `checkpoint` names, or `null`.
- `stages`: folders of saves that did not end.
- `partial`: names of checkpoints that a job publishes or deletes, or did when it was killed.
- `findings`: a `code` and a `message` each.
- `checkpoints`: each with `name`, `step`, `state`, `why`, `bytes`, `tables` and `created`. `state`
  is `committed`, `legacy`, `v1` (not read here) or `incomplete`; `why` gives the reason for the
  last two. `tables` is their number, `null` without a manifest. `created` is in seconds since
  1970, or `null`.
"""

from __future__ import annotations

import argparse
from typing import Any

from ...errors import Problem, bytes_text
from ..report import Grid, Line, Report, as_data, as_lines, count_text, time_text
from .directory import COMMITTED, INCOMPLETE, LEGACY, V1, Found, directory

HELP = 'list the checkpoints in a directory'
_TONES = {COMMITTED: '', LEGACY: 'warn', V1: 'bad', INCOMPLETE: 'bad'}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('dir', metavar='DIR')


def report(parsed: argparse.Namespace) -> Report:
    """Returns the report about a directory."""
    seen = directory(parsed.dir)
    problems = [problem for problem in (*(one.problem for one in seen.checkpoints), seen.problem)
                if problem is not None]
    blocks: list[Line | Grid] = [
        _grid(seen.checkpoints, seen.pointer) if seen.checkpoints else Line('no checkpoints')]
    if seen.partial:
        blocks.append(Line(
            f'{count_text(len(seen.partial), "checkpoint")} being published or deleted, or left '
            f'by a job that was killed: {", ".join(seen.partial)}'))
    if seen.stages:
        blocks.append(Line(
            f'{count_text(len(seen.stages), "folder")} of saves that did not end, or are still '
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
    manifest = one.manifest
    return {'name': one.name, 'step': one.step, 'state': one.state, 'why': _why(one.problem),
            'bytes': sum(one.files.values()),
            'tables': None if manifest is None else len(manifest.tables),
            'created': (manifest.created or None) if manifest is not None else None}


def _why(problem: Problem | None) -> str:
    """Returns a problem without the name of its checkpoint, which is beside it."""
    return '' if problem is None else f'{problem.rule}; got {problem.got}'
