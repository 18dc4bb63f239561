"""Says what a code means, and where to read about it; without CODE, lists all codes."""

from __future__ import annotations

import argparse

from ..errors import did_you_mean
from .codes import ENTRIES, SEVERITIES
from .report import Grid, Line, Report, as_command


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument('code', metavar='CODE', nargs='?', type=_code, help='such as E412')
    as_command(parser, _report)


def _code(text: str) -> str:
    if text.upper() not in ENTRIES:
        raise argparse.ArgumentTypeError(
            f'unknown code {text[:20]!r}.  {did_you_mean(text.upper(), ENTRIES)}'.rstrip())
    return text.upper()


def _report(parsed: argparse.Namespace) -> Report:
    found = [{'code': code, 'severity': SEVERITIES[code[0]], **entry._asdict()}
             for code, entry in ENTRIES.items() if parsed.code in (None, code)]
    if parsed.code is None:
        return Report([Grid(('code', 'severity', 'title', 'topic'),
                            [tuple(one.values()) for one in found])], {'codes': found})
    one, = found
    return Report([
        Line(f'{one["code"]} ({one["severity"]}): {one["title"]}', 'head'),
        Line('The message says what was expected, what came and what to do.'),
        Line(f'More: etpe docs {one["topic"]}')], one)
