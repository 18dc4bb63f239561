"""`etpe doctor`: says what code needs to run, without running it.

JSON: `"environment"`, a list of objects with `what` and `state`. `"findings"`, a list of objects
with `code`, `severity`, `place`, `subject`, `written`, `message`, `verdict` and `successor`; a
place has `path`, `line`, `column`, `end_line`, `end_column` and `cell`, and is null for the
environment. `"programs"`, with `path`, `command`, `reasons` and `stops`: the first 100 findings
that may stop it. `"not_scanned"`, with `path` and `reason`. `"verdicts"` and `"ignored"` count uses
of names and findings that were not selected. `"files"`, `"lines"`, `"errors"`, `"warnings"` and
`"information"` are numbers.
"""

from __future__ import annotations

import argparse
import os

from ..doctor.diagnose import diagnose
from ..doctor.facts import Diagnosis
from . import selection
from .diagnosis import blocks_of, data_of, of_severity
from .report import Report, as_command


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = (
        'Says which names, packages and flags the code of a project needs, and how to run it. '
        'The code is read and never run. The exit status is 1 if there are errors or warnings, '
        'or nothing to read.')
    parser.add_argument('paths', metavar='PATH', nargs='*', default=['.'], type=_path,
                        help='files and folders; without one, the working directory')
    selection.add_to(parser)
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
    return Report(blocks_of(diagnosis, parsed.most), data_of(diagnosis), _status(diagnosis))


def _status(diagnosis: Diagnosis) -> int:
    return int(bool(of_severity(diagnosis.findings, 'EW')) or not diagnosis.files)
