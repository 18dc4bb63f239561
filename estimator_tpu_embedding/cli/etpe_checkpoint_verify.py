"""Reads all bytes of checkpoints, and reports damage."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ..checkpoint import integrity
from ..checkpoint.bundle import Bundle
from ..checkpoint.concurrent_changes import MOST_TRIES, rotated_away, steady_each
from ..checkpoint.file_names import label
from ..checkpoint.manifest import StoredFile, read_manifest
from ..checkpoint.recover import Opened, check_manifest
from ..errors import CorruptCheckpointError, Problem, counted, shown
from ..proto import reading
from .checkpoint_argument import prefixes
from .report import Line, Report, as_command, as_data


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('path', metavar='PATH')
    as_command(parser, _report)


def _report(parsed: argparse.Namespace) -> Report:
    results, deleted = _all_verified(parsed.path)
    blocks = [block for one in results for block in _blocks(one)]
    if deleted:
        blocks.append(Line('deleted by a job before they were read: ' + ', '.join(deleted), 'warn'))
    return Report(blocks, {'checkpoints': results, 'deleted': deleted},
                  status=1 if any(one['findings'] for one in results) else 0)


def _blocks(one: Mapping[str, Any]) -> Iterator[Line]:
    yield Line(one['where'], 'head')
    for finding in one['findings']:
        yield Line(finding['message'], 'bad')
    if one['unchecked']:
        yield Line('cannot be checked, since their kind is not understood: '
                   + ', '.join(one['unchecked']), 'warn')
    if not one['findings']:
        yield Line('sound by the SHA-256 of its files' if one['by'] == 'sha256' else
                   'sound by the CRC32C of its tensors', 'good')


def _all_verified(path: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns an entry of the report for each checkpoint of a path, and names of those that a job
    deleted before they were read.
    """
    deleted: list[str] = []
    for _ in range(MOST_TRIES if os.path.isdir(path) else 1):
        there = prefixes(path)
        found, gone = steady_each(there, _verified, lambda one: one['findings'])
        deleted += map(os.path.basename, gone)
        if found:
            return found, deleted
    raise rotated_away(there[-1])


def _verified(prefix: str) -> dict[str, Any]:
    result: dict[str, Any] = {'where': reading.label(prefix), 'by': 'crc32c', 'unchecked': []}
    problems: list[Problem] = []
    try:
        manifest = read_manifest(prefix)
        if manifest is not None:
            result['by'] = 'sha256'
            bundle, scanned = _compared(prefix, manifest.files)
        else:
            bundle = Bundle.open(prefix)
            result['unchecked'] = integrity.check_crcs(bundle)
            scanned = integrity.scan(bundle)
        problems += _not_finite(prefix, scanned.nonfinite)
        check_manifest(Opened(bundle, manifest))
    except CorruptCheckpointError as error:
        problems += error.problems
    return {**result, 'findings': as_data(problems)}


def _compared(prefix: str, files: Mapping[str, StoredFile]) -> tuple[Bundle, integrity.Scanned]:
    """Opens and reads a checkpoint, once if it is what its manifest says."""
    try:
        bundle = Bundle.open(prefix)
        scanned = integrity.scan(bundle)
    except CorruptCheckpointError:
        integrity.check_files(prefix, files, 'sha256')  # It says more of what is wrong.
        raise
    if scanned.files != files:
        integrity.check_files(prefix, files, 'sha256')
    return bundle, scanned


def _not_finite(prefix: str, tensors: Mapping[str, int]) -> Iterator[Problem]:
    for name, count in sorted(tensors.items()):
        yield Problem('E646', label(prefix),
                      f'the numbers of tensor "{shown(name, 255)}" must be finite',
                      f'{counted(count, "row")} with NaN or infinity', 'Use an older one.')
