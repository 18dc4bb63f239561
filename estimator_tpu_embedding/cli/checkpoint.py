"""`etpe checkpoint`: what a model_dir and its checkpoints hold, read without TensorFlow.

JSON of `ls`: `"directory"`, `"pointer"` (the name that the file `checkpoint` names, or `null`),
`"stages"` (folders of saves that did not end), `"partial"` (names of checkpoints that are being
published or deleted, or were when a job was killed), `"findings"`, each with `code` and `message`,
and `"checkpoints"`, each with `name`, `step`, `state` (`committed`, `legacy`, `v1`, which is not
read here, or `incomplete`), `why` (it is one of the last two), `bytes`, `tables` (their number;
`null` without a manifest) and `created` (seconds since 1970, or `null`).
JSON of `verify`: `"checkpoints"`, each with `where`, `by` (`"sha256"` or `"crc32c"`), `unchecked`
(tensors that have no checksum that is understood) and `findings` as those of `ls`; and `"deleted"`,
names of those that a job deleted before they were read.
That of the others is documented in `stored_view.py` and `stored_diff.py`.
"""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ..checkpoint import scan
from ..checkpoint.file_names import label
from ..checkpoint.manifest import StoredFile, read_manifest
from ..checkpoint.steady import LOOKS, rotated_away
from ..errors import CorruptCheckpointError, Problem, bytes_text, shown
from ..proto import reading
from . import stored, stored_diff, stored_directory, stored_looks, stored_view
from .render import Grid, Line, Report, as_command
from .stored_directory import COMMITTED, INCOMPLETE, LEGACY, V1
from .stored_options import as_data, as_lines, count_text
from .stored_view import time_text

_LINES = {
    'ls': 'list the checkpoints in a directory',
    'show': 'show the tables and variables of a checkpoint',
    'diff': 'compare two checkpoints, row by row in the order of ids',
    'verify': 'read all of a checkpoint, or of all in a directory, and say what is damaged'}
_TONES = {COMMITTED: '', LEGACY: 'warn', V1: 'bad', INCOMPLETE: 'bad'}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Reads checkpoints of this package and of TensorFlow. PATH is a model_dir or a checkpoint '
        'such as model_dir/model.ckpt-7; of a model_dir the one is taken that a job would restore.')
    commands = parser.add_subparsers(title='commands', required=True, metavar='COMMAND')
    for name, work in (('ls', _list), ('show', stored_view.report), ('diff', stored_diff.report),
                       ('verify', _verify)):
        command = commands.add_parser(name, help=_LINES[name], allow_abbrev=False)
        paths = {'ls': ['DIR'], 'diff': ['A', 'B']}.get(name, ['PATH'])
        for path in paths:
            command.add_argument(path.lower(), metavar=path)
        if name == 'show':
            stored_view.configure(command)
        elif name == 'diff':
            stored_diff.configure(command)
        as_command(command, work)


def _list(parsed: argparse.Namespace) -> Report:
    found = stored_directory.directory(parsed.dir)
    problems = [problem for problem in (*(one.problem for one in found.checkpoints),
                                        found.problem) if problem is not None]
    rows = [(one.name, '' if one.step is None else f'{one.step:,}', one.state,
             bytes_text(sum(one.files.values())),
             '' if one.manifest is None else str(len(one.manifest.tables)),
             '' if one.manifest is None else time_text(one.manifest.created),
             'checkpoint' if one.name == found.pointer else '') for one in found.checkpoints]
    blocks: list[Line | Grid] = [Grid(
        ('name', '>step', 'state', '>bytes', '>tables', 'created', 'named by'), rows,
        [_TONES[one.state] for one in found.checkpoints])] if rows else [
            Line('no checkpoints')]
    if found.partial:
        blocks.append(Line(
            f'{count_text(len(found.partial), "checkpoint")} being published or deleted, or left '
            f'by a job that was killed: {", ".join(found.partial)}'))
    if found.stages:
        blocks.append(Line(
            f'{count_text(len(found.stages), "folder")} of saves that did not end, or are still '
            f'being written: {", ".join(found.stages)}'))
    blocks += as_lines(problems)
    data = {'directory': parsed.dir, 'pointer': found.pointer, 'stages': found.stages,
            'partial': found.partial,
            'findings': as_data(problems),
            'checkpoints': [_listed(one) for one in found.checkpoints]}
    return Report(blocks, data, status=1 if problems else 0)


def _listed(one: stored_directory.Found) -> dict[str, Any]:
    manifest = one.manifest
    return {'name': one.name, 'step': one.step, 'state': one.state, 'why': _why(one.problem),
            'bytes': sum(one.files.values()),
            'tables': None if manifest is None else len(manifest.tables),
            'created': (manifest.created or None) if manifest is not None else None}


def _why(problem: Problem | None) -> str:
    """A problem in a line of a list, where the name of the checkpoint is."""
    return '' if problem is None else f'{problem.rule}; got {problem.got}'


def _verify(parsed: argparse.Namespace) -> Report:
    results, deleted = _all_verified(parsed.path)
    blocks: list[Line | Grid] = []
    for one in results:
        blocks.append(Line(one['where'], 'head'))
        blocks += [Line(finding['message'], 'bad') for finding in one['findings']]
        if one['unchecked']:
            blocks.append(Line('cannot be checked, since their kind is not understood: '
                               + ', '.join(one['unchecked']), 'warn'))
        if not one['findings']:
            blocks.append(Line('sound by the SHA-256 of its files' if one['by'] == 'sha256' else
                               'sound by the CRC32C of its tensors', 'good'))
    if deleted:
        blocks.append(Line('deleted by a job before they were read: ' + ', '.join(deleted), 'warn'))
    return Report(blocks, {'checkpoints': results, 'deleted': deleted},
                  status=1 if any(one['findings'] for one in results) else 0)


def _all_verified(path: str) -> tuple[list[dict[str, Any]], list[str]]:
    """What is wrong with the checkpoints of a path, and which of them a job deleted meanwhile.

    Raises:
      CheckpointError: E628 if it deleted one after the other, or the one that was named.
    """
    deleted: list[str] = []
    for _ in range(LOOKS if os.path.isdir(path) else 1):
        prefixes = stored_directory.prefixes(path)
        results = {prefix: stored_looks.of_one(
            prefix, functools.partial(_verified, prefix), lambda one: not one['findings'])
            for prefix in prefixes}
        deleted += [os.path.basename(prefix) for prefix, one in results.items() if one is None]
        found = [one for one in results.values() if one is not None]
        if found:
            return found, deleted
    raise rotated_away(prefixes[-1])


def _verified(prefix: str) -> dict[str, Any]:
    """What is wrong with a checkpoint, all of which is read."""
    result: dict[str, Any] = {'where': reading.label(prefix), 'by': 'crc32c', 'unchecked': []}
    problems: list[Problem] = []
    try:
        stored_directory.check_format(prefix)
        manifest = read_manifest(prefix)
        if manifest is not None and manifest.files:
            result['by'] = 'sha256'
            scanned = _compared(prefix, manifest.files)
        else:
            result['unchecked'] = scan.check_crcs(prefix)
            scanned = scan.scan(prefix)
        problems = [*stored.Stored(prefix).problems(), *_not_finite(prefix, scanned.nonfinite)]
    except CorruptCheckpointError as error:
        problems += error.problems
    return {**result, 'findings': as_data(problems)}


def _compared(prefix: str, files: Mapping[str, StoredFile]) -> scan.Scanned:
    """Reads a checkpoint once if it is what its manifest says.

    Raises:
      CorruptCheckpointError: if it is not.
    """
    try:
        scanned = scan.scan(prefix)
    except CorruptCheckpointError:
        scan.check_files(prefix, files, 'sha256')  # It says more of what is wrong.
        raise
    if scanned.files != files:
        scan.check_files(prefix, files, 'sha256')
    return scanned


def _not_finite(prefix: str, tensors: Mapping[str, int]) -> Iterator[Problem]:
    for name, count in sorted(tensors.items()):
        yield Problem('E646', label(prefix),
                      f'the numbers of tensor "{shown(name, 255)}" must be finite',
                      f'{count_text(count, "row")} with NaN or infinity', 'Use an older one.')
