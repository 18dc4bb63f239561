"""What `--fix` wrote, or would write, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...doctor.rewriting import Rewritten
from ...errors import counted
from ..report import Block, Line, Source, printable
from .data import finding_data
from .places import where


def blocks_of(files: Sequence[Rewritten], *, is_written: bool) -> Iterator[Block]:
    """Yields the diffs, or a line for each file that was written, and what was left."""
    for file in files:
        if is_written and file.done:
            yield Line(f'fixed: {printable(file.path, 200)}: {counted(len(file.done), "place")}',
                       'good')
        elif file.done:
            yield Source(_safe(file.diff()))
    for file in files:
        for finding, reason in file.left:
            yield Line(f'not fixed: {where(finding.place)}  {finding.code}  '
                       f'{printable(finding.written, 100)}: {reason}', 'warn')
    if not is_written:
        done = sum(len(file.done) for file in files)
        yield Line(f'{counted(done, "place")} would be fixed; nothing was written')


def data_of(files: Sequence[Rewritten]) -> list[dict[str, Any]]:
    """Returns an object for each file that has something to fix."""
    return [{'path': file.path, 'fixed': [finding_data(finding) for finding in file.done],
             'left': [finding_data(finding) | {'reason': reason} for finding, reason in file.left],
             'diff': file.diff()} for file in files]


def _safe(diff: str) -> str:
    """A diff without characters that steer a terminal; tabs and line ends stay."""
    return ''.join(char if char in '\t\n' or char.isprintable() else
                   char if diff[place:place + 2] == '\r\n' else printable(char)
                   for place, char in enumerate(diff))
