"""Says which names, packages and flags the code of a project needs, and how to run it. The code is
read and never run. The exit status is 1 if there are errors or warnings, or nothing to read.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..doctor.diagnose import diagnose
from ..doctor.findings import MOST_STOPS, Diagnosis, Finding, Place, Prescription
from ..errors import counted
from . import codes
from .codes import ENTRIES, SEVERITIES
from .report import Block, Line, Report, as_command, printable

_MOST_PATH, _MOST_WRITTEN, _MOST_STOPS = 200, 100, 5
_MEANINGS = {
    'there': 'there', 'restored': 'restored by etpe run', 'tf1': 'with --tf1',
    'contrib': 'with --contrib', 'package': 'need a package', 'moved': 'moved',
    'lost': 'not supported', 'unknown': 'unknown'}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('paths', metavar='PATH', nargs='*', default=['.'], type=_path,
                        help='files and folders; without one, the working directory')
    codes.add_selection(parser)
    parser.add_argument('--most', metavar='N', type=_number, default=40,
                        help='errors and warnings per program that the text has, and lines of '
                        'each other kind; 40 if not given')
    as_command(parser, _report)


def _path(text: str) -> str:
    try:
        os.lstat(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise argparse.ArgumentTypeError(f'cannot look at {text!r}: {reason}') from error
    return text


def _number(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f'a number of lines is at least 1; got {text[:20]!r}')
    return int(text)


def _report(parsed: argparse.Namespace) -> Report:
    diagnosis = diagnose(parsed.paths, parsed.select, parsed.ignore)
    is_bad = bool(of_severity(diagnosis.findings, 'EW')) or not diagnosis.files
    return Report(blocks_of(diagnosis, parsed.most), data_of(diagnosis), int(is_bad))


def where(place: Place | None) -> str:
    """Returns `path:line:column`, with the cell of a notebook, fit to be printed.

    >>> where(Place('job.ipynb', 3, 5, cell=2))
    'job.ipynb[code cell 2]:3:5'
    """
    if place is None:
        return 'environment'
    cell = f'[code cell {place.cell}]' if place.cell else ''
    return f'{printable(place.path, _MOST_PATH)}{cell}:{place.line}:{place.column}'


def _grouped(findings: Iterable[Finding]) -> list[tuple[Finding, int]]:
    """Returns the first finding and the count of each code and name: frequent names first."""
    found: dict[tuple[str, str], list[Finding]] = collections.defaultdict(list)
    for finding in findings:
        found[finding.code, finding.subject].append(finding)
    return sorted(((several[0], len(several)) for several in found.values()),
                  key=lambda group: (group[0].code, -group[1], group[0].subject))


def of_severity(findings: Iterable[Finding], letters: str) -> Sequence[Finding]:
    """Returns the findings whose codes begin with one of the letters `E`, `W` and `I`."""
    return [finding for finding in findings if finding.code[0] in letters]


def data_of(diagnosis: Diagnosis) -> dict[str, Any]:
    """Returns the report for programs."""
    return {
        'environment': [{'what': what, 'state': state} for what, state in diagnosis.environment],
        'findings': [finding_data(finding) for finding in diagnosis.findings],
        'programs': [{'path': one.path, 'command': one.command, 'reasons': list(one.reasons),
                      'stops': [finding_data(finding) for finding in one.stops]}
                     for one in diagnosis.prescriptions],
        'not_scanned': [{'path': path, 'reason': reason} for path, reason in diagnosis.left_out],
        'verdicts': dict(diagnosis.verdicts), 'ignored': dict(diagnosis.ignored),
        'files': diagnosis.files, 'lines': diagnosis.lines,
        **{name: len(of_severity(diagnosis.findings, letter)) for letter, name in
           (('E', 'errors'), ('W', 'warnings'), ('I', 'information'))}}


def finding_data(finding: Finding) -> dict[str, Any]:
    """Returns one of the objects in `findings`."""
    place = None if finding.place is None else finding.place._asdict()
    return {**finding._asdict(), 'severity': SEVERITIES[finding.code[0]], 'place': place}


def blocks_of(diagnosis: Diagnosis, most: int) -> list[Block]:
    """Returns the report for people, with so many errors and warnings per program at most, and so
    many lines of each other kind.
    """
    return [*(Line(f'{what}: {state}') for what, state in diagnosis.environment),
            *_findings(of_severity(diagnosis.findings, 'EW'),
                       most * max(1, len(diagnosis.prescriptions))),
            *_information(of_severity(diagnosis.findings, 'I'), most),
            *_not_checked(diagnosis, most), *_counts(diagnosis),
            *_programs(diagnosis.prescriptions, most), Line(_conclusion(diagnosis))]


def _findings(findings: Sequence[Finding], most: int) -> Iterator[Line]:
    """The first findings, and one of each code; the others are counted."""
    one_each = {finding.code: finding for finding in reversed(findings)}.values()
    shown = set(list(dict.fromkeys([*one_each, *findings]))[:most])
    for finding in findings:
        if finding in shown:
            yield Line(_line(finding), 'bad' if finding.code[0] == 'E' else 'warn')
    others = collections.Counter(finding.code for finding in findings if finding not in shown)
    if others:
        counts = ', '.join(f'{code} ({number})' for code, number in sorted(others.items()))
        yield Line(f'and {counted(sum(others.values()), "other finding")}: {counts}: --most '
                   f'{len(findings)}, or --format json')
    if {'E121', 'E122'}.intersection(finding.code for finding in findings):
        yield Line('ruff check --select NPY,UP --fix mends what NumPy and Python renamed')


def _line(finding: Finding) -> str:
    parts = (where(finding.place), finding.code, ENTRIES[finding.code].title,
             printable(finding.written or finding.subject, _MOST_WRITTEN), finding.message)
    return '  '.join(part for part in parts if part)


def _information(findings: Sequence[Finding], most: int) -> Iterator[Line]:
    """A line per name; names with the same message have it in a line before them."""
    for code, several in itertools.groupby(_grouped(findings), lambda group: group[0].code):
        groups = list(several)
        by_message = collections.defaultdict[str, list[str]](list)
        for finding, number in groups[:most]:
            by_message[finding.message].append(
                f'{printable(finding.subject, _MOST_WRITTEN)}  {counted(number, "place")}, first '
                f'{where(finding.place)}')
        for message, lines in by_message.items():
            if len(lines) == 1:
                yield Line(f'{code}  {lines[0]}  {message}')
            else:
                yield Line(f'{code}  {message}:')
                yield from (Line(f'  {line}') for line in lines)
        if (others := len(groups) - most) > 0:
            yield Line(f'{code}  and {counted(others, "other name")}: --most {len(groups)}, or '
                       '--format json')


def _not_checked(diagnosis: Diagnosis, most: int) -> Iterator[Line]:
    for path, reason in diagnosis.left_out[:most]:
        yield Line(f'not scanned: {printable(path, _MOST_WRITTEN)}: {reason}')
    if (others := len(diagnosis.left_out) - most) > 0:
        yield Line(f'not scanned: {counted(others, "other path")}')
    if unknown := diagnosis.verdicts.get('unknown'):
        yield Line(f'unknown: {counted(unknown, "use")} of names; nobody can tell whether they '
                   'are there')
    if diagnosis.ignored:
        yield Line('ignored: ' + ', '.join(
            f'{code} ({number})' for code, number in diagnosis.ignored.items()))


def _counts(diagnosis: Diagnosis) -> Iterator[Line]:
    yield Line(f'checked: {counted(diagnosis.files, "file")} with '
               f'{counted(diagnosis.lines, "line")}')
    asked = ', '.join(f'{number} {_MEANINGS[verdict]}'
                      for verdict, number in diagnosis.verdicts.items() if number)
    if asked:
        yield Line(f'uses of names: {asked}')


def _programs(prescriptions: Sequence[Prescription], most: int) -> Iterator[Line]:
    if not prescriptions:
        yield Line('no program was found: no file runs anything when it is started')
    for one in prescriptions[:most]:
        yield Line(f'{printable(one.path, _MOST_WRITTEN)}:  {one.command}', 'head')
        for reason in one.reasons:
            yield Line(f'  {reason}')
        for stop in one.stops[:_MOST_STOPS]:
            yield Line(f'  may be stopped by {_line(stop)}', 'bad')
        if (others := len(one.stops) - _MOST_STOPS) > 0:
            more = 'at least ' if len(one.stops) == MOST_STOPS else ''
            yield Line(f'  and then by {more}{counted(others, "other finding")}')
    if (others := len(prescriptions) - most) > 0:
        yield Line(f'and {counted(others, "other program")}')


def _conclusion(diagnosis: Diagnosis) -> str:
    """The last line, which never claims more than was checked."""
    errors, warnings, information = (
        len(of_severity(diagnosis.findings, letter)) for letter in 'EWI')
    total = (f'{counted(errors, "error")}, {counted(warnings, "warning")}, '
             f'{information} for information')
    if not diagnosis.files:
        return f'{total}: no Python file or notebook was read, so nothing was checked'
    if errors or warnings:
        return f'{total}  (etpe docs doctor says more)'
    if diagnosis.ignored or diagnosis.left_out or diagnosis.verdicts.get('unknown'):
        return f'{total} in what was checked; what is ignored, unknown or not scanned may fail'
    return (f'{total}: every file was read to its end, and every name of TensorFlow, Keras, NumPy '
            'and Python in it is there as said above; names of other packages, and all values, '
            'were not checked')
