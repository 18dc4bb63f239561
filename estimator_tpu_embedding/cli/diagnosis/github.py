"""A diagnosis as commands of a GitHub workflow, which shows them beside the lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...doctor.facts import Diagnosis, Finding
from ...errors import counted
from ..report import printable
from .places import grouped, of_severity, where

_MOST_MESSAGE = 1000  # GitHub shows 4 KiB at most, and says nothing of the rest.
_KINDS = {'E': 'error', 'W': 'warning', 'I': 'notice'}


def text_of(diagnosis: Diagnosis) -> str:
    """Returns a line per error and warning, and one per name for information."""
    return ''.join(f'{line}\n' for line in _lines(diagnosis))


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    for finding in of_severity(diagnosis.findings, 'EW'):
        yield _line(finding, _message(finding))
    for finding, count in grouped(of_severity(diagnosis.findings, 'I')):
        yield _line(finding, f'{_message(finding)} ({counted(count, "place")})')
    for path, reason in diagnosis.left_out:
        yield f'::warning title=not scanned::{_escaped(f"{path}: {reason}")}'
    for one in diagnosis.prescriptions:
        yield f'::notice title=etpe run::{_escaped(f"{one.path}: {one.command}")}'


def _message(finding: Finding) -> str:
    message = f'{finding.written or finding.subject}: {finding.message}'
    return message if len(message) <= _MOST_MESSAGE else f'{message[:_MOST_MESSAGE]}…'


def _line(finding: Finding, message: str) -> str:
    place = finding.place
    properties: Sequence[tuple[str, object]] = [('title', finding.code)]
    if place is not None and place.cell:  # Lines of a cell are not those of the file.
        properties = [('file', place.path), *properties]
        message = f'{where(place)} {message}'
    elif place is not None:
        properties = [('file', place.path), ('line', place.line), ('col', place.column),
                      *properties]
    written = ','.join(f'{name}={_escaped(str(value), ":,")}' for name, value in properties)
    return f'::{_KINDS[finding.code[0]]} {written}::{_escaped(message)}'


def _escaped(text: str, more: str = '') -> str:
    """`text` with `%`, line ends and the characters `more` as `%XX`; a terminal is safe from it."""
    return ''.join(f'%{ord(char):02X}' if char in '%\r\n' + more else printable(char)
                   for char in text)
