"""`etpe checkpoint verify`: reads all bytes of checkpoints, and reports damage.

The report in JSON has these fields:

- `checkpoints`: each with `where`, `by` (`"sha256"` or `"crc32c"`), `unchecked` (tensors without
  a checksum that is understood) and `findings` (a `code` and a `message` each).
- `deleted`: names of the checkpoints that a job deleted before they were read.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from typing import Any

from ...checkpoint import scan
from ...checkpoint.bundle import Bundle
from ...checkpoint.file_names import label
from ...checkpoint.layout import Held, check_manifest
from ...checkpoint.manifest import StoredFile, read_manifest
from ...checkpoint.rotation import LOOKS, rotated_away, steady_each
from ...errors import CorruptCheckpointError, Problem, shown
from ...proto import reading
from ..report import Grid, Line, Report, as_data, count_text
from . import opened

HELP = 'read all of a checkpoint, or of all in a directory, and say what is damaged'


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('path', metavar='PATH')


def report(parsed: argparse.Namespace) -> Report:
    """Returns the report about all checkpoints that a path means."""
    results, deleted = _all_verified(parsed.path)
    blocks = [block for one in results for block in _blocks(one)]
    if deleted:
        blocks.append(Line('deleted by a job before they were read: ' + ', '.join(deleted), 'warn'))
    return Report(blocks, {'checkpoints': results, 'deleted': deleted},
                  status=1 if any(one['findings'] for one in results) else 0)


def _blocks(one: Mapping[str, Any]) -> Iterator[Line | Grid]:
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
    """Verifies the checkpoints of a path.

    Returns:
      `(results, deleted)`: an entry of the report for each that was read, and the names of the
      others, which a job deleted meanwhile.

    Raises:
      CheckpointError: E628 if a job deleted one after the other, or the one that was named.
    """
    deleted: list[str] = []
    for _ in range(LOOKS if os.path.isdir(path) else 1):
        prefixes = opened.prefixes(path)
        found, gone = steady_each(prefixes, _verified, lambda one: one['findings'])
        deleted += map(os.path.basename, gone)
        if found:
            return found, deleted
    raise rotated_away(prefixes[-1])


def _verified(prefix: str) -> dict[str, Any]:
    """Reads all of a checkpoint; returns its entry of the report."""
    result: dict[str, Any] = {'where': reading.label(prefix), 'by': 'crc32c', 'unchecked': []}
    problems: list[Problem] = []
    try:
        opened.check_format(prefix)
        manifest = read_manifest(prefix)
        if manifest is not None and manifest.files:
            result['by'] = 'sha256'
            bundle, scanned = _compared(prefix, manifest.files)
        else:
            bundle = Bundle.open(prefix)
            result['unchecked'] = scan.check_crcs(bundle)
            scanned = scan.scan(bundle)
        problems += _not_finite(prefix, scanned.nonfinite)
        check_manifest(Held(bundle, manifest))
    except CorruptCheckpointError as error:
        problems += error.problems
    return {**result, 'findings': as_data(problems)}


def _compared(prefix: str, files: Mapping[str, StoredFile]) -> tuple[Bundle, scan.Scanned]:
    """Opens and reads a checkpoint, once if it is what its manifest says.

    Raises:
      CorruptCheckpointError: if it is not.
    """
    try:
        bundle = Bundle.open(prefix)
        scanned = scan.scan(bundle)
    except CorruptCheckpointError:
        scan.check_files(prefix, files, 'sha256')  # It says more of what is wrong.
        raise
    if scanned.files != files:
        scan.check_files(prefix, files, 'sha256')
    return bundle, scanned


def _not_finite(prefix: str, tensors: Mapping[str, int]) -> Iterator[Problem]:
    for name, count in sorted(tensors.items()):
        yield Problem('E646', label(prefix),
                      f'the numbers of tensor "{shown(name, 255)}" must be finite',
                      f'{count_text(count, "row")} with NaN or infinity', 'Use an older one.')
