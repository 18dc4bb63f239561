"""`etpe explain`: prints the title of one code, and the page of the documents that treats it.

JSON: `code`, `severity`, `title` and `topic`.
"""

from __future__ import annotations

import argparse

from ..errors import did_you_mean
from .codes import ENTRIES
from .report import Line, Report, as_command
from .rules import SEVERITIES


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.description = 'Says what a code means, and where to read about it.'
    parser.add_argument('code', metavar='CODE', type=_code, help='such as E412; etpe rules '
                        'lists all')
    as_command(parser, _report)


def _code(text: str) -> str:
    if text.upper() not in ENTRIES:
        raise argparse.ArgumentTypeError(
            f'unknown code {text[:20]!r}.  {did_you_mean(text.upper(), ENTRIES)}'.rstrip())
    return text.upper()


def _report(parsed: argparse.Namespace) -> Report:
    title, topic = ENTRIES[parsed.code]
    severity = SEVERITIES[parsed.code[0]]
    return Report([
        Line(f'{parsed.code} ({severity}): {title}', 'head'),
        Line('The message says what was expected, what came and what to do.'),
        Line(f'More: etpe docs {topic}')],
        {'code': parsed.code, 'severity': severity, 'title': title, 'topic': topic})
